#!/usr/bin/env bash
# What cargo does on this cluster. What makes or takes down clusters of its own, or builds for minutes, is not run within the
# suite: there has to be such a command, and it has to know the options.
set -euo pipefail

fail() {
  echo "$1" >&2
  exit 2
}

options_are_known() {
  local help=$1 argument
  shift
  for argument in "$@"; do
    [[ $argument != --* ]] || grep -q -- "${argument%%=*}\b" <<<"$help" || fail "there is no option $argument"
  done
}

case "${1-} ${2-}" in
"xtask kubectl" | "xtask helm")
  shift
  exec "$@"
  ;;
"xtask kubeconfig")
  echo "$KUBECONFIG"
  ;;
"xtask logs")
  [[ ${CATENA_ON-} != local ]] || HOME=$READERS_HOME exec "$CATENA_XTASK" logs "${@:3}"
  exec kubectl logs --namespace catena-system --selector "app.kubernetes.io/name=$3"
  ;;
"xtask "*)
  help=$("$CATENA_XTASK" "$2" --help)
  options_are_known "$help" "${@:3}"
  ;;
"install --locked")
  # cargo would build it for minutes; the suite has built it.
  [[ "$*" == "install --locked --path crates/kubectl-catena" && -f $4/Cargo.toml ]] || fail "the suite has not built it: $*"
  install -D target/debug/kubectl-catena "$HOME/.cargo/bin/kubectl-catena"
  ;;
*)
  fail "the suite does not know how to run cargo $*"
  ;;
esac

#!/usr/bin/env bash
# The cluster's own helm, with the values that every chart needs on this cluster: where its pods run, or which images it has.
values=()
for argument in "$@"; do
  if [[ $argument == charts/* && -d $CATENA_VALUES ]]; then
    values=(--values "$CATENA_VALUES/${argument#charts/}.yaml")
  elif [[ $argument == charts/* ]]; then
    values=(--values "$CATENA_VALUES")
  fi
done
HOME=$READERS_HOME exec "$CATENA_HELM" "$@" "${values[@]}"

//! Completion of a command line in a shell.
//!
//! kubectl asks a plugin's completer: a program `kubectl_complete-catena` on the PATH, which is a link to this one.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    time::Duration,
};

use catena_cluster::{Cluster, Options, context_names, labelled_kinds};
use clap::{Arg, Command, CommandFactory, FromArgMatches};
use clap_complete::{ArgValueCompleter, CompletionCandidate, engine::complete};
use kube::api::ListParams;

use crate::{cli::Cli, output::write};

/// The name under which kubectl asks for completions.
const COMPLETER: &str = "kubectl_complete-catena";
/// How long a completion may take: a shell that waits longer seems to hang.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(3);
/// Cobra's directive not to offer files if there is no candidate.
const NO_FILES: &str = ":4\n";

/// Whether this process was started for a completion.
pub fn is_requested() -> bool {
    let own = std::env::args_os().next();
    own.as_deref().map(Path::new).and_then(Path::file_stem) == Some(OsStr::new(COMPLETER))
}

/// Prints the candidates for the last word, in the format of Cobra. A completer that fails offers none.
pub fn offer() {
    let words = words();
    let last = words.len() - 1;
    let candidates = complete(&mut command_line(), words, last, None).unwrap_or_default();
    let line = |candidate: &CompletionCandidate| {
        let value = candidate.get_value().to_string_lossy();
        match candidate.get_help().map(ToString::to_string) {
            Some(help) => format!("{value}\t{}\n", help.lines().next().unwrap_or_default()),
            None => format!("{value}\n"),
        }
    };
    let lines: String = candidates.iter().map(line).collect();
    write(&(lines + NO_FILES)).ok();
}

/// The command line, with a completer for each argument that names something of the cluster.
fn command_line() -> Command {
    Cli::command().mut_args(completed).mut_subcommands(|command| command.mut_args(completed))
}

/// An argument that offers the names that begin with the word typed so far.
fn completed(argument: Arg) -> Arg {
    let names: fn(&str) -> Vec<String> = match argument.get_id().as_str() {
        "context" => |_| typed_options().kubeconfig().as_ref().map(context_names).unwrap_or_default(),
        "namespace" => |_| names("namespaces"),
        "object" => objects,
        "command-kind" => |_| command_kinds(),
        _ => return argument,
    };
    argument.add(ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let names = names(&current).into_iter().filter(|name| name.starts_with(&*current));
        names.map(CompletionCandidate::new).collect::<Vec<_>>()
    }))
}

/// The words typed so far, as if this program had been called with them.
fn words() -> Vec<OsString> {
    let typed = std::env::args_os().skip(1);
    let none = (typed.len() == 0).then(OsString::new);
    std::iter::once("kubectl-catena".into()).chain(typed).chain(none).collect()
}

/// `KIND/NAME`, and names of BasicDeployments.
fn objects(current: &str) -> Vec<String> {
    let (kind, prefix) = match current.split_once('/') {
        Some((kind, _)) => (kind, format!("{kind}/")),
        None => ("basicdeployments.catena.dev", String::new()),
    };
    names(kind).into_iter().map(|name| prefix.clone() + &name).collect()
}

/// The names of objects of a kind.
fn names(kind: &str) -> Vec<String> {
    ask(async |cluster: Cluster| match cluster.kinds.find(kind) {
        Ok(kind) => cluster.names(kind, ListParams::default()).await.unwrap_or_default(),
        Err(_) => Vec::new(),
    })
}

/// Kinds of commands.
fn command_kinds() -> Vec<String> {
    ask(async |cluster: Cluster| {
        let (labelled, _) = labelled_kinds(&cluster).await;
        labelled.commands.iter().map(|kind| kind.resource.kind.to_lowercase()).collect()
    })
}

/// The answer of the cluster that the words name.
fn ask(question: impl AsyncFnOnce(Cluster) -> Vec<String>) -> Vec<String> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let answer = runtime.block_on(async {
        tokio::time::timeout(COMPLETION_TIMEOUT, async {
            let cluster = typed_options().connect().await.ok()?;
            Some(question(cluster).await)
        })
        .await
    });
    answer.ok().flatten().unwrap_or_default()
}

/// The options among the words, which may be incomplete.
fn typed_options() -> Options {
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(words());
    matches.ok().and_then(|matches| Options::from_arg_matches(&matches).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_templates_are_completed_as_files() {
        let words = ["kubectl-catena", "templates", "check", "-f", "Car"].map(OsString::from).to_vec();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let offered = complete(&mut command_line(), words, 4, Some(here)).unwrap();
        let offered: Vec<_> = offered.iter().map(CompletionCandidate::get_value).collect();
        assert_eq!(offered, ["Cargo.toml"]);
    }

    #[test]
    fn every_argument_that_names_something_of_the_cluster_is_completed() {
        let of = |command: &Command| -> Vec<String> {
            let completed =
                command.get_arguments().filter(|argument| argument.get::<ArgValueCompleter>().is_some());
            completed.map(|argument| format!("{} {}", command.get_name(), argument.get_id())).collect()
        };
        let command = command_line();
        let mut completed = of(&command);
        completed.extend(command.get_subcommands().flat_map(of));
        let expected = [
            "kubectl-catena context",
            "kubectl-catena namespace",
            "tree object",
            "why object",
            "restart object",
            "rollback object",
            "history object",
            "run command-kind",
            "release object",
        ];
        assert_eq!(completed, expected);
    }
}

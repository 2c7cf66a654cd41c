//! `kubectl catena restart`, `rollback` and `run`: each issues a command.

use std::process::ExitCode;

use anyhow::{Context, Result};
use catena_cluster::{ObjectArgument, Options};
use clap::Args;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::ensure_basic_deployment;
use crate::{
    issue::{Issuing, set},
    output::Output,
};

/// The BasicDeployment to restart.
#[derive(Args)]
pub struct Restart {
    #[command(flatten)]
    object: ObjectArgument,
    #[command(flatten)]
    issuing: Issuing,
}

/// The BasicDeployment, and its revision.
#[derive(Args)]
pub struct Rollback {
    #[command(flatten)]
    object: ObjectArgument,
    /// The revision to return to, from `kubectl catena history`; 0 is the previous one
    #[arg(long, default_value_t = 0, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..))]
    to_revision: i64,
    #[command(flatten)]
    issuing: Issuing,
}

/// The command, and its target.
#[derive(Args)]
pub struct Run {
    /// The kind of the command, in any form that kubectl accepts
    #[arg(id = "command-kind", value_name = "KIND")]
    kind: String,
    /// The name of its target
    target: String,
    /// Set a field, for example `spec.toRevision=3` or `reason=upgrade` (spec. may be omitted; a path that is not below spec
    /// begins with a dot, as in `.action=RestartJob`); numbers, true, false and JSON keep their type
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// The path of the target's name in the kind
    #[arg(long, default_value = "spec.targetRef.name", value_name = "PATH")]
    target_path: String,
    #[command(flatten)]
    issuing: Issuing,
}

/// Issues a `BasicDeploymentRestart`.
pub async fn restart(options: &Options, output: Output, arguments: &Restart) -> Result<ExitCode> {
    ours(options, output, &arguments.object, "restart", |_| json!({}), &arguments.issuing).await
}

/// Issues a `BasicDeploymentRollback`.
pub async fn rollback(options: &Options, output: Output, arguments: &Rollback) -> Result<ExitCode> {
    let spec = |target: Option<&DynamicObject>| {
        let previous = target.and_then(previous_revision).filter(|_| arguments.to_revision == 0);
        json!({"toRevision": previous.unwrap_or(arguments.to_revision)})
    };
    ours(options, output, &arguments.object, "rollback", spec, &arguments.issuing).await
}

/// The number of the revision before the newest one. The user means the one that is there now, whatever comes before the
/// rollback has its turn; while the status lacks the newest one, only command-runner can tell.
fn previous_revision(target: &DynamicObject) -> Option<i64> {
    target.metadata.generation.filter(|&now| target.data["status"]["observedGeneration"] == now)?;
    let revisions = target.data.pointer("/status/revisions")?.as_array()?;
    revisions.iter().rev().nth(1)?["number"].as_i64()
}

/// Issues a command of ours, whose kind is named after its verb, with a spec that lacks only the target. It may depend on that,
/// unless nothing is sent.
async fn ours(
    options: &Options,
    output: Output,
    object: &ObjectArgument,
    verb: &str,
    spec: impl FnOnce(Option<&DynamicObject>) -> Value,
    issuing: &Issuing,
) -> Result<ExitCode> {
    let target = object.target()?;
    let cluster = options.connect().await?;
    ensure_basic_deployment(&cluster, &target)?;
    let kind = cluster.kinds.find(&format!("basicdeployment{verb}s.catena.dev"))?;
    let found = if issuing.is_sent() { Some(cluster.get(&target).await?) } else { None };
    let mut spec = spec(found.as_ref());
    spec["targetRef"] = json!({"name": target.name});
    issuing.issue(&cluster, output, kind, verb, &target.name, json!({"spec": spec})).await
}

/// Issues a command of any kind. The kind of its target is up to its own kind, and the existence of that to its controller.
pub async fn run(options: &Options, output: Output, arguments: &Run) -> Result<ExitCode> {
    let fields = fields(&arguments.target_path, &arguments.target, &arguments.set)?;
    let cluster = options.connect().await?;
    let kind = cluster.kinds.find(&arguments.kind)?;
    let verb = arguments.kind.split('.').next().unwrap_or_default().to_lowercase();
    arguments.issuing.issue(&cluster, output, kind, &verb, &arguments.target, fields).await
}

fn fields(target_path: &str, target: &str, assignments: &[String]) -> Result<Value> {
    let mut fields = json!({});
    set(&mut fields, target_path, target.into())?;
    for assignment in assignments {
        let (path, value) = assignment.split_once('=').with_context(|| {
            format!("--set {assignment:?} has no value: write PATH=VALUE, for example spec.toRevision=3")
        })?;
        // JSON where it is JSON, else text.
        set(&mut fields, path, serde_json::from_str(value).unwrap_or_else(|_| value.into()))?;
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_by_their_paths() {
        let set = ["toRevision=3", "spec.dry=true", "note=a b"].map(str::to_owned);
        let spec = json!({"targetRef": {"name": "web"}, "toRevision": 3, "dry": true, "note": "a b"});
        assert_eq!(fields("spec.targetRef.name", "web", &set).unwrap(), json!({"spec": spec}));
        for wrong in ["a..b=1", ".=1", "a"] {
            assert!(fields("spec.targetRef.name", "web", &[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    /// As those of Volcano.
    #[test]
    fn a_command_may_have_its_fields_beside_a_spec() {
        let set = [".action=RestartJob", ".target.kind=Job"].map(str::to_owned);
        let expected = json!({"action": "RestartJob", "target": {"kind": "Job", "name": "train"}});
        assert_eq!(fields(".target.name", "train", &set).unwrap(), expected);
    }

    #[test]
    fn a_name_with_other_characters_is_quoted() {
        let set = [".metadata.annotations['example.org/ticket']=4711".to_owned()];
        let fields = fields("spec.target", "web", &set).unwrap();
        assert_eq!(fields["metadata"]["annotations"]["example.org/ticket"], 4711);
    }

    #[test]
    fn the_previous_revision_is_the_one_before_the_newest_that_is_there_now() {
        let with = |numbers: &[i64], observed: i64| {
            let revisions: Vec<_> = numbers.iter().map(|number| json!({"number": number})).collect();
            let status = json!({"revisions": revisions, "observedGeneration": observed});
            let object = json!({"metadata": {"generation": 3}, "status": status});
            previous_revision(&serde_json::from_value(object).unwrap())
        };
        assert_eq!([with(&[2, 5, 7], 3), with(&[7], 3), with(&[], 3)], [Some(5), None, None]);
        assert_eq!(with(&[2, 5, 7], 2), None, "the newest one may not be there yet");
    }
}

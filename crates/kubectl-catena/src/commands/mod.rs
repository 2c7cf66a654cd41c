//! One file per command.

pub mod backup;
pub mod contract;
pub mod held;
pub mod history;
pub mod release;
pub mod restart;
pub mod restore;
pub mod rollback;
pub mod run;
pub mod templates;
pub mod tree;
pub mod upgrade;
pub mod why;

use std::process::ExitCode;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::{
    connection::Options,
    issue::{Issuing, Order},
    target::{ObjectArgument, Target},
};

/// The exit code of a check.
fn exit_code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// A target that must be a BasicDeployment: a name alone, or the kind by any of its names.
fn basic_deployment(target: Target) -> Result<Target> {
    const NAMES: [&str; 3] = ["basicdeployment", "basicdeployments", "bdep"];
    let kind = target.kind.to_lowercase();
    let kind = kind.split('.').next().unwrap_or_default();
    if !NAMES.contains(&kind) {
        bail!(
            "{}/{} is not a BasicDeployment, and only these have restarts and revisions; `kubectl catena run KIND NAME` \
             issues other commands",
            target.kind,
            target.name
        );
    }
    Ok(Target { kind: "basicdeployments.catena.dev".to_owned(), ..target })
}

/// Issues a command of ours, by its kind and its verb, with a spec that lacks only the reference to its BasicDeployment.
async fn issue(
    options: &Options,
    object: &ObjectArgument,
    command: &str,
    verb: &str,
    mut spec: Value,
    issuing: &Issuing,
) -> Result<ExitCode> {
    let Target { kind, name } = basic_deployment(object.target()?)?;
    spec["targetRef"] = json!({"name": name});
    let order = Order { kind: command, verb, target_kind: &kind, target: &name, spec };
    issuing.issue(options, &order).await
}

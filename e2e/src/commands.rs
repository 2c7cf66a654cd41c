//! Commands for a `BasicDeployment`, bound from the start in the way of command-binder.

use std::time::Duration;

use anyhow::Result;
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, BasicDeploymentRollback,
    BasicDeploymentRollbackSpec, CommandStatus, TargetRef, command::SUCCEEDED, keys,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};
use kube::{Resource, ResourceExt, core::object::HasStatus};
use serde_json::{Value, json};

use crate::{Namespace, Namespaced, condition, deployment, texts};

/// A `BasicDeployment` named web, ready to be commanded.
pub async fn ready(namespace: &Namespace, replicas: i32) -> Result<BasicDeployment> {
    namespace.create(&deployment("web", replicas)).await?;
    Ok(namespace.until_ready("web").await)
}

/// A change to a version whose pods never become ready.
#[must_use]
pub fn never_ready() -> Value {
    json!({"spec": {"parameters": {"image": "registry.invalid/missing:1"}}})
}

/// An owner reference in the form of command-binder.
#[must_use]
pub fn owned_by(parent: &BasicDeployment) -> OwnerReference {
    OwnerReference { controller: None, ..parent.controller_owner_ref(&()).unwrap_or_default() }
}

/// A restart.
#[must_use]
pub fn restart(parent: &BasicDeployment, name: &str) -> BasicDeploymentRestart {
    let spec = BasicDeploymentRestartSpec { target_ref: to(parent), ..Default::default() };
    let mut restart = BasicDeploymentRestart::new(name, spec);
    bind(&mut restart.metadata, parent);
    restart
}

/// A rollback to the revision of a number; 0 is the previous one.
#[must_use]
pub fn rollback(parent: &BasicDeployment, name: &str, to_revision: i64) -> BasicDeploymentRollback {
    let spec = BasicDeploymentRollbackSpec { target_ref: to(parent), to_revision, ..Default::default() };
    let mut rollback = BasicDeploymentRollback::new(name, spec);
    bind(&mut rollback.metadata, parent);
    rollback
}

fn to(parent: &BasicDeployment) -> TargetRef {
    TargetRef { name: parent.name_any(), namespace: None }
}

fn bind(metadata: &mut ObjectMeta, parent: &BasicDeployment) {
    metadata.owner_references = Some(vec![owned_by(parent)]);
    metadata.annotations = Some(texts! { keys::BOUND_TO => parent.uid().unwrap_or_default() });
}

/// The condition of a type on a command.
pub fn condition_of<'c>(
    command: &'c impl HasStatus<Status = CommandStatus>,
    r#type: &str,
) -> Option<&'c Condition> {
    condition(&command.status()?.conditions, r#type)
}

/// Waits until what is created next is newer than all before: commands of one second are in the order of their uids.
pub async fn next_second() {
    tokio::time::sleep(Duration::from_secs(1)).await;
}

/// Whether the condition Succeeded of a command has this status and reason.
pub fn has_outcome(command: &impl HasStatus<Status = CommandStatus>, status: &str, reason: &str) -> bool {
    condition_of(command, SUCCEEDED).is_some_and(|said| said.status == status && said.reason == reason)
}

/// Waits until the condition Succeeded of a command has this status and reason.
pub async fn until_outcome<K>(namespace: &Namespace, name: &str, status: &str, reason: &str) -> K
where
    K: Namespaced + HasStatus<Status = CommandStatus> + Send + 'static,
{
    namespace
        .until(name, &format!("says {status}, {reason}"), |command: &K| has_outcome(command, status, reason))
        .await
}

/// Waits until the condition Succeeded of a restart has this status and reason.
pub async fn until_restart_outcome(
    namespace: &Namespace,
    name: &str,
    status: &str,
    reason: &str,
) -> BasicDeploymentRestart {
    until_outcome(namespace, name, status, reason).await
}

/// Waits until a restart has been carried out.
pub async fn until_restarted(namespace: &Namespace, name: &str) -> BasicDeploymentRestart {
    until_restart_outcome(namespace, name, "True", "Complete").await
}

/// Creates restarts while the parent is paused, so that all of them wait before the first one can begin.
pub async fn queue_restarts(
    namespace: &Namespace,
    parent: &BasicDeployment,
    count: usize,
) -> Result<Vec<BasicDeploymentRestart>> {
    let name = parent.name_any();
    namespace.merge::<BasicDeployment>(&name, json!({"spec": {"paused": true}})).await?;
    // The commands come through another watch, which may be ahead.
    let has_seen = |parent: &BasicDeployment| {
        let seen = parent.status.as_ref().and_then(|status| status.observed_generation);
        parent.spec.paused && seen == parent.metadata.generation
    };
    namespace.until(&name, "is seen to be paused", has_seen).await;
    let mut made = Vec::new();
    for number in 0..count {
        made.push(namespace.create(&restart(parent, &format!("again-{number}"))).await?);
    }
    for command in &made {
        let waits = |restart: &BasicDeploymentRestart| {
            has_outcome(restart, "Unknown", "Paused") || has_outcome(restart, "Unknown", "Queued")
        };
        namespace.until(&command.name_any(), "is told to wait", waits).await;
    }
    Ok(made)
}

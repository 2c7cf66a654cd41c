//! `kubectl catena release`

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use catena_api::keys;
use catena_cluster::{Change, How, Identity, ObjectArgument, Options};
use catena_explain::explanation_aside;
use catena_terminal::sanitized;
use clap::Args;
use kube::{ResourceExt, core::DynamicObject, runtime::wait::await_condition};
use operator_watch::Lenient;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::output::write;

/// How long backup-controller may take to release an object.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// The object, and the reason.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    object: ObjectArgument,
    /// Why no backup is needed; the reason is kept in an Event
    #[arg(long)]
    reason: String,
    /// Let the server check the request without executing it
    #[arg(long)]
    dry_run: bool,
}

/// Releases a held object.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<()> {
    let reason = arguments.reason.trim();
    ensure!(!reason.is_empty(), "--reason is empty: give the reason why no backup is needed");
    let target = arguments.object.target()?;
    let cluster = options.connect().await?;
    let kind = cluster.kinds.find(&target.kind)?;
    let object = cluster.get(&target).await?;
    let identity = Identity::of(&object);
    ensure_held(&object)?;
    let (namespace, patch) = (identity.namespace.as_deref(), patch(&identity.uid, reason));
    let how = How { dry_run: arguments.dry_run, ..How::default() };
    let written = cluster.at(kind, namespace, &target.name).write::<Value>(Change::Merge(&patch), how).await;
    written.map_err(|error| cluster.refused(kind, &target.name, "patch", error))?;
    if arguments.dry_run {
        return write(&format!("{identity} would be released without a backup (dry run)\n"));
    }
    let is_released = |object: Option<&Lenient<DynamicObject>>| {
        object.is_none_or(|Lenient(object)| {
            object.metadata.uid.as_deref() != Some(&identity.uid) || !is_protected(object)
        })
    };
    let observed = await_condition(cluster.api(kind, namespace), &target.name, is_released);
    let marked = format!("{identity} is marked for release without a backup, but");
    match timeout(RELEASE_TIMEOUT, observed).await {
        Ok(Ok(_)) => write(&format!("{identity} was released without a backup\n")),
        Ok(Err(error)) => bail!("{marked} its release cannot be observed: {error}"),
        Err(_) => {
            let answer = explanation_aside(&cluster, &target).await;
            let why = answer.map_or_else(String::new, |answer| format!(": {}", sanitized(&answer.sentence)));
            bail!("{marked} was not released within {} s{why}", RELEASE_TIMEOUT.as_secs())
        }
    }
}

/// The uid protects a new object of the same name, and a copy of this one.
fn patch(uid: &str, reason: &str) -> Value {
    json!({"metadata": {"uid": uid, "annotations": {keys::FORCE_RELEASE: format!("{uid} {reason}")}}})
}

fn is_protected(object: &DynamicObject) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == keys::BACKUP_FINALIZER)
}

/// An annotation on an object that is not deleted would take effect later, unnoticed.
fn ensure_held(object: &DynamicObject) -> Result<()> {
    let identity = Identity::of(object);
    if !is_protected(object) {
        let others = object.metadata.finalizers.as_deref().unwrap_or_default().join(", ");
        let others = if others.is_empty() { others } else { format!("; it has: {others}") };
        bail!(
            "{identity} is not held by backup-controller: it has no finalizer {}{others}",
            keys::BACKUP_FINALIZER
        );
    }
    if object.metadata.deletion_timestamp.is_none() {
        bail!("{identity} is not being deleted, so that there is nothing to release: delete it first");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_names_the_object_that_it_is_for() {
        let patch = patch("u", "dumped by hand");
        assert_eq!(patch["metadata"]["uid"], "u");
        assert_eq!(patch["metadata"]["annotations"][keys::FORCE_RELEASE], "u dumped by hand");
    }

    #[test]
    fn only_a_held_object_can_be_released() {
        let said = |metadata: Value| {
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
            ensure_held(&serde_json::from_value(object).unwrap()).map_err(|error| error.to_string())
        };
        let at = "2026-01-01T00:00:00Z";
        assert!(
            said(json!({"name": "a", "deletionTimestamp": at, "finalizers": ["catena.dev/backup"]})).is_ok()
        );
        let other =
            said(json!({"name": "a", "deletionTimestamp": at, "finalizers": ["x.dev/y"]})).unwrap_err();
        assert!(other.contains("it has: x.dev/y"), "{other}");
        let early = said(json!({"name": "a", "finalizers": ["catena.dev/backup"]})).unwrap_err();
        assert!(early.contains("delete it first"), "{early}");
    }
}

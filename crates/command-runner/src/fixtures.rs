//! Commands that no process watches, for tests.

use std::{
    collections::HashSet,
    sync::{Arc, LazyLock},
};

use catena_api::command::RecentCommands;
use command_kinds::CommandKind;
use command_runner::{
    command::{Command, CommandRow},
    observed::{Look, Observed, Target},
};
use kube::discovery::ApiResource;
use operator_kit::run::Backoffs;
use operator_watch::{DynamicRow, WriteTarget};
use serde_json::{Value, json};

/// The time of all observations; commands are created in the hour before.
pub const NOW: &str = "2026-01-01T12:00:00Z";

/// The kind of shops.
static SHOPS: LazyLock<ApiResource> =
    LazyLock::new(|| kind("restarts", &json!({})).targets()[0].resource.clone());

/// A kind whose commands set `spec.at` of a shop to their creation. `more` replaces fields of `run`.
pub fn kind(resource: &str, more: &Value) -> Arc<CommandKind> {
    let mut file = json!({
        "id": resource, "group": "ops.example", "version": "v1", "resource": resource, "kind": "Restart",
        "target": {
            "name": "object.spec.target",
            "namespace": "object.spec.namespace",
            "kinds": [{"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop"}],
        },
        "run": {
            "patch": "spec: {at: {{ command.metadata.creationTimestamp }}}",
            "wait": [{"when": "target.spec.?paused.orValue(false)", "reason": "Paused", "message": "it is paused"}],
            "refuse": [{
                "when": "target.spec.?closed.orValue(false)", "reason": "Closed",
                "messageExpression": "'the shop ' + target.metadata.name + ' is closed'",
            }],
            "succeeded": "target.status.observedGeneration == target.metadata.generation && target.status.ready",
            "failed": [{"when": "target.status.broken", "reason": "Broken", "message": "it is broken"}],
            "progress": "string(target.status.done) + '/2'",
            "deadline": "command.spec.deadline",
        },
    });
    for (field, value) in more.as_object().unwrap() {
        file["run"][field] = value.clone();
    }
    Arc::new(CommandKind::compile(serde_json::from_value(file).unwrap()).unwrap())
}

/// A command for the shop `a` as the API server has it, created at this minute of the last hour, with the uid of its name. `more` is
/// merged into it.
pub fn stored(name: &str, minute: u32, more: &Value) -> Value {
    let mut object = json!({
        "metadata": {
            "name": name, "namespace": "here", "uid": name, "resourceVersion": "7", "generation": 1,
            "creationTimestamp": format!("2026-01-01T11:{minute:02}:00Z"),
            "ownerReferences": [{"apiVersion": "apps.example/v1", "kind": "Shop", "name": "a", "uid": "shop"}],
        },
        "spec": {"target": "a"},
    });
    merge(&mut object, more);
    object
}

/// The same as a process sees it.
pub fn command(kind: &Arc<CommandKind>, name: &str, minute: u32, more: &Value) -> Arc<Command> {
    let object: operator_watch::PrunedObject = serde_json::from_value(stored(name, minute, more)).unwrap();
    let write_target = Arc::new(WriteTarget::unwatched(kind.resource.clone()));
    let (kind_id, metadata) = (kind.id.clone(), object.metadata.clone());
    let row = CommandRow::of(kind, kind.run.as_ref().unwrap(), object);
    Arc::new(DynamicRow { metadata, kind_id, write_target, row })
}

/// The shop `a`, on which these commands ran. `more` is merged into it.
pub fn shop(ran: &[&Arc<Command>], more: &Value) -> Look {
    let mut object = json!({
        "metadata": {"name": "a", "namespace": "here", "uid": "shop", "resourceVersion": "9", "generation": 3},
        "spec": {},
        "status": {"observedGeneration": 3, "ready": false, "broken": false, "done": 1},
    });
    merge(&mut object, more);
    let ran = ran
        .iter()
        .fold(RecentCommands::default(), |ran, command| ran.with(command_runner::command::recent(command)));
    Look::Found(Box::new(Target { resource: SHOPS.clone(), object, ran }))
}

/// An observation of a command among these.
pub fn observed(command: &Arc<Command>, line: &[&Arc<Command>], target: Look) -> Observed {
    Observed {
        command: command.clone(),
        backoffs: Backoffs::default(),
        now: NOW.parse().unwrap(),
        line: line.iter().map(|command| Arc::clone(command)).collect(),
        unknown: None,
        target,
        refused: HashSet::new(),
        with_status: line.iter().map(|command| command.kind_id.clone()).collect(),
        was_proven: false,
        takes_status: Some(true),
        since_told: None,
    }
}

/// Merges objects, field by field.
pub fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

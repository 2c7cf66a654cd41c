//! Objects that controllers watch: fields that a schema leaves open may contain anything.

use std::sync::{Arc, LazyLock};

use backup_controller::annotation::BackupStatus;
use basic_deployment_controller::{
    child::{Child, projection},
    child_kind::ChildKind,
    revision::Revision,
};
use basic_replicaset_controller::{interner::Interner, pod::PodRow};
use catena_api::{Pin, command::RecentCommands};
use jiff::Timestamp;
use operator_kit::testing;
use operator_watch::PrunedObject;
use pod_state::PrunedPod;
use serde_json::Value;

static BOUND: LazyLock<Option<Arc<command_kinds::CommandKind>>> = LazyLock::new(|| {
    let kind = serde_json::json!({
        "id": "tasks", "version": "v1", "resource": "tasks", "kind": "Task", "reportsBound": true,
        "filter": "has(object.spec)", "refuseFinalizers": ["example.com/data"],
        "refuse": [{"when": "object.metadata.?name.orValue('') == 'no'", "message": "no"}],
        "target": {
            "name": "object.spec.targetRef.name", "namespace": "object.spec.?targetRef.?namespace",
            "uid": "object.spec.?uid", "kinds": [{"version": "v1", "resource": "pods", "kind": "Pod"}],
        },
    });
    command_kinds::CommandKind::compile(serde_json::from_value(kind).ok()?).ok().map(Arc::new)
});

/// A kind with outputs by expressions.
static DEPLOYMENT: LazyLock<Option<Arc<ChildKind>>> = LazyLock::new(|| {
    let values = include_str!("../../../examples/children/deployment.yaml");
    let settings: basic_deployment_controller::Settings = testing::settings(values).ok()?;
    settings.children.first().cloned()
});

static RUN: LazyLock<Option<command_kinds::Kinds>> = LazyLock::new(|| {
    let values = include_str!("../../../charts/command-runner/values.yaml");
    let values: Value = serde_saphyr::from_str(values).ok()?;
    serde_json::from_value(serde_json::json!({"kinds": values["kinds"]})).ok()
});

static REAPED: LazyLock<Option<command_reaper::Settings>> = LazyLock::new(|| {
    let values = include_str!("../../../charts/command-reaper/values.yaml");
    let values: Value = serde_saphyr::from_str(values).ok()?;
    let settings = serde_json::json!({"kinds": values["kinds"], "declaredBy": values["declaredBy"]});
    testing::settings(&settings.to_string()).ok()
});

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(pod) = serde_json::from_str::<PrunedPod>(&text) {
        let row = PodRow::of(pod, &Interner::default());
        assert!(!row.is_ready() || row.counts(), "a pod that serves counts");
    }
    let Ok(object) = serde_json::from_str::<PrunedObject>(&text) else { return };
    read_child(object.clone());
    read_commands(&object);
    let name = object.metadata.name.clone().unwrap_or_default();
    assert!(
        !Revision::of(object.clone()).is_genuine("web", &name),
        "a revision is forged by its words alone"
    );
    let _ = Revision::rendering(object.clone());
    let whole: Value = serde_json::from_str(&text).unwrap_or_default();
    let _ = RecentCommands::on(&object.metadata);
    if let Ok(deployment) = serde_json::from_value(whole.clone()) {
        let _ = Pin::on(&deployment);
    }
    let _ = BackupStatus::of(&whole);
}

fn read_child(object: PrunedObject) {
    let kind = DEPLOYMENT.as_ref().unwrap_or_else(|| panic!("the example is not understood"));
    let child = Child::of(object, kind);
    let _ = (child.hash(), child.restarted_at(), child.replicas());
    assert!(
        child.outputs.problem.is_none() || !child.outputs.ready,
        "a child that breaks the contract is not ready"
    );
    assert_eq!(projection(&child.object, &child.object), child.object, "it has what it has");
}

fn read_commands(object: &PrunedObject) {
    for kind in &RUN.as_ref().unwrap_or_else(|| panic!("the shipped settings are not understood")).listed {
        let Some(run) = &kind.run else { continue };
        let command = command_runner::command::CommandRow::of(kind, run, object.clone());
        let _ = (command.has_ended(), command.is_expired(Timestamp::MAX), command.target_id());
    }
    let bound = BOUND.clone().unwrap_or_else(|| panic!("the kind of the commands is not understood"));
    let _ = command_binder::command::CommandRow::of(&bound, object.clone());
    let reaped = REAPED.as_ref().unwrap_or_else(|| panic!("the shipped settings are not understood"));
    for kind in &reaped.listed {
        let Some(expiry) = reaped.expiry(kind) else { continue };
        let _ = command_reaper::command::CommandRow::of(object.clone(), kind.filter.as_ref(), &expiry);
    }
}

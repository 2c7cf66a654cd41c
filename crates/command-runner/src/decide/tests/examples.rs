//! The examples for objects of other operators.

use command_kinds::{CommandKind, Kinds};

use super::*;

fn example(id: &str) -> Arc<CommandKind> {
    let values = include_str!("../../../../../examples/command-runner/other-projects-values.yaml");
    let values: Value = serde_saphyr::from_str(values).unwrap();
    let kinds: Kinds = serde_json::from_value(json!({"kinds": values["kinds"]})).unwrap();
    assert_eq!(kinds.problems, Vec::<String>::new());
    kinds.listed.iter().find(|kind| &*kind.id == id).unwrap().clone()
}

/// A command that was created at the minute 0, and whether it has succeeded on a target; `None` without a value.
fn has_succeeded(id: &str, target: &Value) -> Option<bool> {
    let kind = example(id);
    let command = json!({"metadata": {"creationTimestamp": "2026-01-01T10:00:00Z"}});
    let run = kind.run.as_ref().unwrap();
    let inputs = command_kinds::run::Inputs {
        command: &command,
        target,
        ran: json!([]),
        now: json!("2026-01-01T11:00:00Z"),
    };
    run.succeeded.bool(&inputs.variables()).ok()
}

#[test]
fn an_argo_rollout_has_restarted_when_its_status_says_so() {
    let target =
        |at: &str| json!({"spec": {"restartAt": "2026-01-01T10:00:00Z"}, "status": {"restartedAt": at}});
    assert_eq!(has_succeeded("argo-rollout-restarts", &target("2026-01-01T09:00:00Z")), Some(false));
    assert_eq!(has_succeeded("argo-rollout-restarts", &target("2026-01-01T10:00:00Z")), Some(true));
    assert_eq!(has_succeeded("argo-rollout-restarts", &json!({"spec": {}, "status": {}})), Some(false));
}

#[test]
fn a_cluster_hibernates_when_its_condition_says_so() {
    let target = |status: &str| {
        json!({
            "metadata": {"annotations": {"cnpg.io/hibernation": "on"}},
            "status": {"conditions": [{"type": "cnpg.io/hibernation", "status": status}]},
        })
    };
    assert_eq!(has_succeeded("cnpg-hibernations", &target("False")), Some(false));
    assert_eq!(has_succeeded("cnpg-hibernations", &target("True")), Some(true));
}

#[test]
fn pods_are_rolled_when_the_operator_has_removed_the_annotation() {
    let asked = json!({"metadata": {"annotations": {"strimzi.io/manual-rolling-update": "true"}}});
    assert_eq!(has_succeeded("strimzi-rolling-updates", &asked), Some(false));
    assert_eq!(has_succeeded("strimzi-rolling-updates", &json!({"metadata": {}})), Some(true));
}

#[test]
fn a_reconciliation_has_succeeded_when_it_was_handled() {
    let target = |handled: &str| {
        json!({
            "metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "2026-01-01T10:00:00Z"}},
            "status": {"lastHandledReconcileAt": handled, "conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    assert_eq!(has_succeeded("flux-reconciliations", &target("2026-01-01T09:00:00Z")), Some(false));
    assert_eq!(has_succeeded("flux-reconciliations", &target("2026-01-01T10:00:00Z")), Some(true));
}

#[test]
fn a_secret_was_refreshed_after_the_command() {
    let target = |at: &str| {
        json!({
            "metadata": {"annotations": {"force-sync": "2026-01-01T10:00:00Z"}},
            "status": {"refreshTime": at, "conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    assert_eq!(has_succeeded("secret-refreshes", &target("2026-01-01T09:59:00Z")), Some(false));
    assert_eq!(has_succeeded("secret-refreshes", &target("2026-01-01T10:00:00Z")), Some(true));
}

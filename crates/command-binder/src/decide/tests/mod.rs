use std::sync::Arc;

use command_kinds::CommandKind;
use kube::{
    core::GroupVersionKind,
    discovery::{ApiResource, Scope},
};
use operator_kit::run::Backoffs;
use operator_watch::{DynamicRow, Failure};
use serde_json::{Value, json};

use super::*;
use crate::{
    command::{CommandRow, Finding},
    fixtures,
    observed::{Target, TargetObject},
};

const UID: &str = "uid-of-target";

fn kind(more: &Value) -> Arc<CommandKind> {
    let mut file = json!({
        "id": "restarts", "group": "ops.example", "version": "v1", "resource": "restarts", "kind": "Restart",
        "target": {
            "name": "object.spec.target.name",
            "namespace": "object.spec.target.namespace",
            "uid": "object.spec.target.uid",
            "kinds": [{"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop"}],
        },
    });
    json_merge(&mut file, more);
    Arc::new(CommandKind::compile(serde_json::from_value(file).unwrap()).unwrap())
}

fn json_merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (key, value) in more {
                json_merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

/// A command of the kind that names the shop `a`.
fn command(kind: &Arc<CommandKind>, more: &Value) -> DynamicRow<CommandRow> {
    let mut object = json!({
        "metadata": {
            "name": "c", "namespace": "here", "uid": "uid-of-command", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"target": {"name": "a"}},
    });
    json_merge(&mut object, more);
    fixtures::command(kind, serde_json::from_value(object).unwrap())
}

fn observed(kind: &Arc<CommandKind>, more: &Value, target: Option<Target>) -> Observed {
    fixtures::observed(command(kind, more), target, "2026-01-01T00:01:00Z")
}

/// The served kind of shops.
fn shops(scope: Scope) -> (ApiResource, Scope) {
    let kind = GroupVersionKind::gvk("apps.example", "v2", "Shop");
    (ApiResource::from_gvk_with_plural(&kind, "shops"), scope)
}

#[expect(clippy::unnecessary_wraps, reason = "as it stands in what is observed")]
fn found(uid: &str) -> Option<Target> {
    let object = TargetObject { uid: uid.into(), is_terminating: false, created: None };
    Some(Target::Served { kind: shops(Scope::Namespaced), object: Some(object) })
}

#[expect(clippy::unnecessary_wraps, reason = "as it stands in what is observed")]
fn missing() -> Option<Target> {
    Some(Target::Served { kind: shops(Scope::Namespaced), object: None })
}

fn bind() -> Action {
    Action::Bind(OwnerReference {
        api_version: "apps.example/v2".into(),
        kind: "Shop".into(),
        name: "a".into(),
        uid: UID.into(),
        ..OwnerReference::default()
    })
}

/// The report on a command, with the reason first.
fn told(kind: &Arc<CommandKind>, more: &Value, target: Option<Target>) -> (&'static str, String) {
    match decide(&observed(kind, more, target)) {
        Action::Tell { verdict, .. } => (verdict.reason, verdict.message),
        other => panic!("instead of telling something: {other:?}"),
    }
}

fn owner(kind: &str, name: &str, uid: &str) -> Value {
    let api_version = if kind == "Shop" { "apps.example/v1" } else { "v1" };
    json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid})
}

mod references;
mod rules;
mod telling;

#[test]
fn a_command_is_bound_to_the_target_that_was_found() {
    let action = decide(&observed(&kind(&json!({})), &json!({}), found(UID)));
    assert_eq!(action, bind());
}

#[test]
fn an_owner_is_a_controller_and_blocks_deletion_only_where_its_kind_says_so() {
    let kind = kind(&json!({"controller": true, "blockOwnerDeletion": true}));
    let Action::Bind(owner) = decide(&observed(&kind, &json!({}), found(UID))) else {
        panic!("it is not bound")
    };
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
}

#[test]
fn another_owner_stays_and_hinders_nothing() {
    let more = json!({"metadata": {"ownerReferences": [owner("Node", "n", "other")]}});
    assert_eq!(decide(&observed(&kind(&json!({})), &more, found(UID))), bind());
}

#[test]
fn an_owner_that_is_there_by_its_uid_means_no_write() {
    let more = json!({"metadata": {"ownerReferences": [owner("Shop", "a", UID)]}});
    assert_eq!(decide(&observed(&kind(&json!({})), &more, found(UID))), Action::Settle);
}

#[test]
fn what_was_bound_needs_no_look_at_its_target() {
    let more = json!({"metadata": {
        "ownerReferences": [owner("Shop", "a", UID)], "annotations": {"catena.dev/bound-to": UID},
    }});
    assert_eq!(decide(&observed(&kind(&json!({})), &more, None)), Action::Settle);
}

#[test]
fn a_target_of_the_same_name_with_another_uid_is_another_target() {
    let kind = kind(&json!({}));
    for more in [
        json!({"metadata": {"annotations": {"catena.dev/bound-to": "before"}}}),
        json!({"metadata": {"ownerReferences": [owner("Shop", "a", "before")]}}),
        json!({"spec": {"target": {"uid": "before"}}}),
    ] {
        let (reason, message) = told(&kind, &more, found(UID));
        assert!(reason == "TargetReplaced" && message.contains("before"), "{more}: {reason}: {message}");
        // A copy has the annotation of another command, and nothing else tells whoever made it.
        let is_recorded = more["metadata"]["annotations"].is_object();
        assert_eq!(
            message.contains("create a new command without that annotation"),
            is_recorded,
            "{message}"
        );
    }
}

#[test]
fn a_reference_to_another_target_does_not_rebind() {
    let more = json!({
        "metadata": {
            "ownerReferences": [owner("Shop", "a", "uid-of-a")], "annotations": {"catena.dev/bound-to": "uid-of-a"},
        },
        "spec": {"target": {"name": "b"}},
    });
    assert_eq!(told(&kind(&json!({})), &more, found("uid-of-b")).0, "TargetReplaced");
}

#[test]
fn what_lives_elsewhere_never_owns() {
    let (reason, message) =
        told(&kind(&json!({})), &json!({"spec": {"target": {"namespace": "there"}}}), missing());
    assert!(reason == "CrossNamespace" && message.contains("there"), "{reason}: {message}");
    let cluster_wide = json!({"metadata": {"namespace": null}});
    assert_eq!(told(&kind(&json!({})), &cluster_wide, missing()).0, "CrossNamespace");
    let own = json!({"spec": {"target": {"namespace": "here"}}});
    assert_eq!(decide(&observed(&kind(&json!({})), &own, found(UID))), bind());
}

#[test]
fn a_reference_is_checked_before_it_is_used() {
    let kind = kind(&json!({}));
    for name in [
        json!(null),
        json!(""),
        json!("."),
        json!(".."),
        json!("a/b"),
        json!("a?x=1"),
        json!("a%2fb"),
        json!(7),
    ] {
        let (reason, message) = told(&kind, &json!({"spec": {"target": {"name": name}}}), None);
        assert_eq!(reason, "InvalidReference", "{name}: {message}");
    }
    assert_eq!(told(&kind, &json!({"spec": {"target": {"namespace": "../x"}}}), None).0, "InvalidReference");
}

#[test]
fn it_waits_for_the_reference_of_others_where_told_to() {
    let kind = kind(&json!({"after": "has(object.metadata.ownerReferences)"}));
    assert_eq!(told(&kind, &json!({}), None).0, "WaitingForOthers");
    let more = json!({"metadata": {"ownerReferences": [owner("Node", "n", "other")]}});
    assert_eq!(decide(&observed(&kind, &more, found(UID))), bind());
}

#[test]
fn modes_that_own_nothing_own_nothing() {
    let label = kind(&json!({"mode": "Label"}));
    assert_eq!(decide(&observed(&label, &json!({}), found(UID))), bind());
    let labelled = json!({"metadata": {"labels": {"catena.dev/target-uid": UID}}});
    assert_eq!(decide(&observed(&label, &labelled, found(UID))), Action::Settle);
    let observe = kind(&json!({"mode": "Observe"}));
    assert_eq!(told(&observe, &json!({}), found(UID)).0, "WouldBind");
    let old = json!({"metadata": {"creationTimestamp": "2025-01-01T00:00:00Z"}});
    assert_eq!(decide(&observed(&observe, &old, found(UID))), Action::Settle);
}

#[test]
fn a_condition_is_written_only_when_it_changes() {
    let kind = kind(&json!({"reportsBound": true}));
    let bound =
        json!({"ownerReferences": [owner("Shop", "a", UID)], "annotations": {"catena.dev/bound-to": UID}});
    let mut first = observed(&kind, &json!({"metadata": bound}), None);
    first.can_report = Some(true);
    let Action::Report(condition) = decide(&first) else { panic!("nothing is reported") };
    assert_eq!((&*condition.status, &*condition.reason), ("True", "Bound"));
    let said = json!({"metadata": bound, "status": {"conditions": [condition]}});
    let mut again = observed(&kind, &said, None);
    again.can_report = Some(true);
    assert_eq!((decide(&again), &again.command.row.finding), (Action::Settle, &Finding::Settled));
    let mut changed = said.clone();
    changed["metadata"]["generation"] = 2.into();
    let mut changed = observed(&kind, &changed, None);
    changed.can_report = Some(true);
    assert!(matches!(decide(&changed), Action::Report(_)));
}

#[test]
fn while_backing_off_only_the_failure_is_reported() {
    let kind = kind(&json!({"reportsBound": true}));
    let failure = Failure::transient("Forbidden", "no right");
    let mut deferred = observed(&kind, &json!({}), None);
    deferred.backoffs = Backoffs::of_everything(failure);
    assert_eq!(decide(&deferred), Action::Settle);
    deferred.can_report = Some(true);
    let Action::Report(condition) = decide(&deferred) else { panic!("nothing is reported") };
    assert_eq!((&*condition.status, &*condition.reason), ("False", "Forbidden"));
}

#[test]
fn what_is_being_deleted_is_left_alone() {
    let more = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:30Z"}});
    assert_eq!(decide(&observed(&kind(&json!({})), &more, found(UID))), Action::Settle);
}

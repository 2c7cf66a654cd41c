//! The Events about what is decided.

use operator_kit::report::EventType;

use super::*;
use crate::events::of;

/// The type, the reason and the note of the Event about the next step.
fn next(observed: &Observed) -> Option<(EventType, String, String)> {
    of(observed, &decide(observed)).map(|event| (event.type_, event.reason, event.note.unwrap()))
}

fn told(observed: &Observed) -> (String, String) {
    match next(observed) {
        Some((EventType::Normal, reason, note)) => (reason, note),
        event => panic!("{event:?}"),
    }
}

#[test]
fn each_written_child_is_told_once() {
    let (reason, note) = told(&observed(Found::Nothing));
    assert_eq!(
        (reason.as_str(), note.as_str()),
        ("ChildCreated", "created BasicReplicaSet web with 3 of 3 replicas, on revision 1")
    );
    let (reason, note) = told(&ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    assert_eq!(
        (reason.as_str(), note.as_str()),
        ("ChildUpdated", "updated BasicReplicaSet web, which is on revision 1 now")
    );
    let (reason, note) = told(&ours(json!({"spec": {"replicas": 1}})));
    assert_eq!(
        (reason.as_str(), note.as_str()),
        ("ChildScaled", "scaled BasicReplicaSet web from 1 to 3 replicas")
    );
    let mut restarted = ours(json!({}));
    spec(&mut restarted).restarted_at = Some("2026-01-01T00:00:00Z".into());
    let (reason, note) = told(&restarted);
    assert_eq!(
        (reason.as_str(), note.as_str()),
        ("ChildRestarted", "restarted BasicReplicaSet web: spec.restartedAt is 2026-01-01T00:00:00Z")
    );
    assert_eq!(told(&observed(Found::Orphan(child(json!({}))))).0, "ChildAdopted");
}

#[test]
fn what_is_undone_or_at_rest_is_not_told() {
    let mut healed = ours(json!({"spec": {"replicas": 1}}));
    healed.given_replicas.insert("child".into(), 3);
    assert!(matches!(decide(&healed), Action::Scale { heals: true, is_former: false, .. }));
    assert_eq!(next(&healed), None);
    let changed = ours(json!({"spec": {"parameters": {"image": "theirs"}}}));
    assert!(matches!(decide(&changed), Action::Apply { heals: true, .. }));
    assert_eq!(next(&changed), None);
    let mut rest = ours(json!({}));
    Arc::make_mut(&mut rest.deployment).status = Some(status(&rest));
    assert_eq!(next(&rest), None);
}

#[test]
fn a_child_that_has_never_reported_on_its_spec_is_told_once_when_the_deadline_has_passed() {
    let stalled = |status: Value| {
        let mut stalled = ours(json!({"status": status}));
        Arc::make_mut(&mut stalled.deployment).status = None;
        stalled.since_progress = Duration::from_secs(600);
        stalled
    };
    let mut silent = stalled(json!({"observedGeneration": null, "conditions": null}));
    silent.behind_for = Duration::from_secs(60);
    let Some((EventType::Warning, reason, note)) = next(&silent) else { panic!("{:?}", decide(&silent)) };
    assert_eq!(reason, "ContractBroken");
    assert!(
        note.starts_with("BasicReplicaSet \"web\" has never reported contract.observedGeneration"),
        "{note}"
    );
    let reported = written(decide(&silent));
    Arc::make_mut(&mut silent.deployment).status = Some(BasicDeploymentStatus { active: 2, ..reported });
    assert!(matches!(decide(&silent), Action::WriteStatus(_)));
    assert_eq!(next(&silent), None);
    // A short deadline passes before the silence is one.
    silent.behind_for = Duration::from_secs(59);
    Arc::make_mut(&mut silent.deployment).status = None;
    let early = written(decide(&silent));
    assert_eq!(next(&silent), None);
    silent.behind_for = Duration::from_secs(60);
    Arc::make_mut(&mut silent.deployment).status = Some(early);
    assert_eq!(next(&silent).unwrap().1, "ContractBroken");
    let slow = stalled(json!({"active": 1, "conditions": null}));
    assert!(matches!(decide(&slow), Action::WriteStatus(_)));
    assert_eq!(next(&slow), None, "it reports");
}

//! The milestones of what is decided.

use catena_api::BlockedBy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::report::Milestone;

use super::{queue::restart, *};
use crate::milestones::{Change, News, of};

/// The milestone of the next step, with whether it begins or ends a change.
fn next(observed: &Observed, changing: Option<&Change>) -> Option<News> {
    of(observed, &decide(observed), changing)
}

/// A change that began some seconds ago.
fn since(seconds: u64, began: Milestone) -> Change {
    Change { began, since: Duration::from_secs(seconds) }
}

fn begun(observed: &Observed) -> Milestone {
    match next(observed, None) {
        Some(News::Begins(milestone)) => milestone,
        step => panic!("{step:?}"),
    }
}

/// A status of which the last report is still to be written.
fn unreported(mut observed: Observed) -> Observed {
    Arc::make_mut(&mut observed.deployment).status = None;
    observed
}

#[test]
fn a_creation_has_a_beginning_and_an_end_and_nothing_else_is_told_of_it() {
    let created = begun(&observed(Found::Nothing));
    assert_eq!((created.reason, created.action.as_str()), ("ChildCreated", "Create"));
    assert_eq!(created.note, "created BasicReplicaSet web with 3 replicas, revision 1");
    assert_eq!(created.related.clone().unwrap().kind.as_deref(), Some("ControllerRevision"));

    let serving = unreported(ours(json!({})));
    let change = since(7, created);
    let Some(News::Ends(ended)) = next(&serving, Some(&change)) else { panic!() };
    assert_eq!((ended.action.as_str(), &ended.related), ("ServeAfterCreate", &change.began.related));
    assert_eq!(
        (ended.reason, ended.note.as_str()),
        ("RolledOut", "3 of 3 replicas serve revision 1 after 7 s")
    );
    assert_eq!(next(&serving, None), None, "no change was under way: a pod has only come back");
    let starting = unreported(ours(json!({"status": {"active": 1, "conditions": []}})));
    assert_eq!(next(&starting, Some(&change)), None, "it has not ended");
}

#[test]
fn a_change_names_its_revision_and_field_and_guesses_no_cause() {
    let mut changed = ours(json!({
        "metadata": {"annotations": {keys::HASH: "old"}}, "spec": {"parameters": {"image": "former"}},
    }));
    let told = begun(&changed);
    assert_eq!(told.reason, "RollingOut");
    assert_eq!(told.note, "revision 1 rolls out, which changes spec.parameters.image");
    Arc::make_mut(&mut changed.deployment).status =
        Some(BasicDeploymentStatus { observed_generation: Some(1), ..BasicDeploymentStatus::default() });
    assert_eq!(begun(&changed).note, told.note, "the reported generation does not tell what was rendered");
}

#[test]
fn scaling_and_restarts_name_their_numbers_and_commands() {
    let scaled = begun(&ours(json!({"spec": {"replicas": 1}})));
    assert_eq!((scaled.reason, scaled.action.as_str()), ("Scaling", "ScaleFrom1To3"));
    let mut commanded = ours(json!({}));
    commanded.commands = Some(vec![restart("again", 10, json!({}))]);
    queue::prepare(&mut commanded);
    let restarted = begun(&commanded);
    assert_eq!((restarted.reason, restarted.related.unwrap().name.as_deref()), ("Restarting", Some("again")));
}

#[test]
fn what_is_undone_or_at_rest_is_no_milestone() {
    let mut healed = ours(json!({"spec": {"replicas": 1}}));
    healed.given_replicas.insert("child".into(), 3);
    assert!(matches!(decide(&healed), Action::Scale { heals: true, .. }));
    assert_eq!(next(&healed, None), None);
    assert_eq!(next(&reported(ours(json!({}))), None), None);
}

/// An observation whose status is written already.
fn reported(mut observed: Observed) -> Observed {
    Arc::make_mut(&mut observed.deployment).status = Some(status(&observed));
    observed
}

#[test]
fn a_change_that_leaves_the_status_as_it_is_ends_when_nothing_is_left_to_do() {
    let mut none = ours(json!({"spec": {"replicas": 0}, "status": {"active": 0}}));
    spec(&mut none).replicas = 0;
    let rest = reported(none);
    let change = since(7, begun(&observed(Found::Nothing)));
    assert_eq!(decide(&rest), Action::Settle);
    let Some(News::Ends(ended)) = next(&rest, Some(&change)) else { panic!("it is told a day later") };
    assert_eq!(ended.note, "0 of 0 replicas serve revision 1 after 7 s");
    assert_eq!(next(&rest, None), None, "it is told once");

    let starting = reported(ours(json!({"status": {"active": 1, "conditions": []}})));
    assert!(matches!(decide(&starting), Action::Wait(_)));
    assert_eq!(next(&starting, Some(&change)), None, "it goes on");
    let mut leaving = ours(json!({}));
    let deleted = Timestamp::from_second(999_000).unwrap();
    Arc::make_mut(&mut leaving.deployment).metadata.deletion_timestamp = Some(Time(deleted));
    let leaving = reported(leaving);
    assert_eq!(decide(&leaving), Action::Settle);
    assert_eq!(next(&leaving, Some(&change)), None, "nothing serves for long");
}

#[test]
fn a_pause_is_told_once() {
    let mut paused = unreported(ours(json!({"metadata": {"annotations": {keys::HASH: "old"}}})));
    spec(&mut paused).paused = true;
    let Some(News::Paused(told)) = next(&paused, None) else { panic!() };
    assert_eq!(told.reason, "Paused");
    let reported = written(decide(&paused));
    Arc::make_mut(&mut paused.deployment).status = Some(BasicDeploymentStatus { active: 2, ..reported });
    assert!(matches!(decide(&paused), Action::WriteStatus(_)));
    assert_eq!(next(&paused, None), None);
}

#[test]
fn a_change_of_the_replicas_by_somebody_else_is_not_told_by_a_new_leader_either() {
    let mut undone = ours(json!({"spec": {"replicas": 5}}));
    let of = |generation| {
        Some(BasicDeploymentStatus { observed_generation: generation, ..BasicDeploymentStatus::default() })
    };
    Arc::make_mut(&mut undone.deployment).status = of(Some(1));
    assert!(matches!(decide(&undone), Action::Scale { heals: false, .. }));
    assert_eq!(next(&undone, None), None, "nobody changed the BasicDeployment");
    undone.given_replicas.insert("child".into(), 5);
    assert_eq!(begun(&undone).reason, "Scaling", "it was to have five before");
    let mut scaled = ours(json!({"spec": {"replicas": 5}}));
    Arc::make_mut(&mut scaled.deployment).status = of(Some(0));
    assert_eq!(begun(&scaled).reason, "Scaling");
    let mut refused = ours(json!({"spec": {"replicas": 5}}));
    let mut report = status(&refused);
    report.blocked_by = Some(BlockedBy { kind: "BasicDeployment".into(), ..BlockedBy::default() });
    Arc::make_mut(&mut refused.deployment).status = Some(report);
    assert_eq!(begun(&refused).reason, "Scaling", "the report of this generation was its failure");
}

#[test]
fn a_child_that_has_never_reported_on_its_spec_is_told_once_when_the_deadline_has_passed() {
    let stalled = |status: Value| {
        let mut stalled = unreported(ours(json!({"status": status})));
        stalled.since_progress = Duration::from_secs(600);
        stalled
    };
    let mut silent = stalled(json!({"observedGeneration": null, "conditions": null}));
    let Some(News::Silent(note)) = next(&silent, None) else { panic!("{:?}", decide(&silent)) };
    assert!(
        note.starts_with("BasicReplicaSet \"web\" has never reported contract.observedGeneration"),
        "{note}"
    );
    let reported = written(decide(&silent));
    Arc::make_mut(&mut silent.deployment).status = Some(BasicDeploymentStatus { active: 2, ..reported });
    assert!(matches!(decide(&silent), Action::WriteStatus(_)));
    assert_eq!(next(&silent, None), None);
    let slow = stalled(json!({"active": 1, "conditions": null}));
    assert!(matches!(decide(&slow), Action::WriteStatus(_)));
    assert_eq!(next(&slow, None), None, "it reports");
}

#[test]
fn a_rollback_that_creates_its_child_again_is_told_as_one() {
    let mut observed = ours(json!({}));
    observed.commands = Some(vec![queue::rollback("back", 10, 0)]);
    let target = Desired::new(&deployment(), rendered("former"), replica_sets());
    observed.prepared = Some(Prepared {
        command: "back".into(),
        target: Some((target.clone(), Found::Nothing)),
        is_taken_back: false,
    });
    let creates = Action::Create { desired: target, replicas: 1, cause: Cause::Rollback };
    let Some(News::Begins(told)) = of(&observed, &creates, None) else { panic!() };
    assert_eq!(told.reason, "RollingBack");
    assert!(told.note.contains("as the rollback back asks"), "{}", told.note);
}

#[test]
fn a_change_that_was_turned_back_has_no_seconds() {
    let mut other = begun(&observed(Found::Nothing));
    other.related.as_mut().unwrap().uid = Some("another".into());
    let serving = unreported(ours(json!({})));
    let Some(News::Ends(ended)) = next(&serving, Some(&since(7, other))) else { panic!() };
    assert_eq!(ended.note, "3 of 3 replicas serve revision 1 again");
}

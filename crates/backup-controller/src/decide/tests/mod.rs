use std::sync::Arc;

use catena_api::{keys::BACKUP_FINALIZER, reason};
use k8s_openapi::api::core::v1::ObjectReference;
use operator_kit::run::Backoffs;
use serde_json::json;

use super::*;
use crate::{fixtures, settings::Settings};

const SETTINGS: &str = r"
kinds:
  held: {apiVersion: v1, kind: ConfigMap, resource: configmaps, backup: b, deadline: 10m, retryAfter: 1m}
  released: {apiVersion: v1, kind: ConfigMap, resource: configmaps, backup: b, deadline: 10m, onFailure: Release, tries: 2}
  unprotected: {apiVersion: v1, kind: ConfigMap, resource: configmaps, backup: b, deadline: 10m, protect: false}
backups:
  b: {apiVersion: v1, kind: Secret, resource: secrets, template: x, succeeded: 'true'}
";

fn now() -> Timestamp {
    "2026-06-01T12:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - SignedDuration::from_secs(seconds)
}

fn kind(id: &str) -> Arc<ProtectedKind> {
    let settings: Settings = serde_saphyr::from_str(SETTINGS).unwrap();
    settings.kinds[id].clone()
}

fn living(is_selected: bool, finalizers: &[&str]) -> Observed {
    let observed = fixtures::living(&fixtures::settings(fixtures::TEMPLATE, ""), finalizers);
    Observed { kind: Some(kind("held")), is_selected, ..observed }
}

/// An object that was deleted a minute ago.
fn deleted(id: &str, situation: Situation) -> Observed {
    let settings = fixtures::settings(fixtures::TEMPLATE, "");
    let observed = fixtures::held(&settings, &fixtures::target("shop"), situation);
    let held = observed.held.map(|held| Held { since: ago(60), now: now(), ..held });
    Observed { kind: Some(kind(id)), held, ..observed }
}

/// A pass that may only report a failure.
fn deferred() -> Backoffs {
    Backoffs::of_everything(Failure::transient("Forbidden", "no"))
}

fn held(observed: &mut Observed) -> &mut Held {
    observed.held.as_mut().unwrap()
}

fn last(attempt: u32, age: i64) -> Try {
    let backup = ObjectReference::default();
    Try { attempt, backup, created: ago(age), is_given_up: false, has_vanished: false }
}

fn there(verdict: Verdict, age: i64) -> Situation {
    Situation::There { last: last(1, age), verdict }
}

fn absent() -> Situation {
    Situation::Absent { attempt: 1, backup: json!({"first": true}) }
}

fn failed(attempt: u32, age: i64) -> Situation {
    Situation::Failed { last: last(attempt, age), next: json!({"next": true}), seen: attempt }
}

fn outcome(action: &Action) -> Option<Outcome> {
    match action {
        Action::Release { outcome, .. } => Some(*outcome),
        _ => None,
    }
}

fn state(action: &Action) -> Option<(State, &str)> {
    match action {
        Action::Hold { status, .. } => Some((status.state, status.reason.as_str())),
        _ => None,
    }
}

mod releases;

#[test]
fn the_finalizer_follows_the_selection_of_what_lives() {
    let ours: &[&str] = &[BACKUP_FINALIZER];
    for (is_selected, finalizers, expected) in [
        (true, &[][..], Action::Protect),
        (true, ours, Action::Settle),
        (false, ours, Action::TakeBack),
        (false, &[], Action::Settle),
    ] {
        assert_eq!(decide(&living(is_selected, finalizers)), expected, "{is_selected} {finalizers:?}");
    }
}

#[test]
fn what_cannot_be_backed_up_is_told_before_anything_else_is_done_with_it() {
    let problem = Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, "");
    let observed = Observed { excess: Some(problem.clone()), ..living(false, &[BACKUP_FINALIZER]) };
    assert_eq!(decide(&observed), Action::Warn(problem));
}

#[test]
fn what_is_being_deleted_without_our_finalizer_is_left_alone() {
    let mut observed = deleted("held", absent());
    observed.held = None;
    assert_eq!(decide(&observed), Action::Settle);
}

#[test]
fn what_left_the_selection_before_it_was_deleted_is_backed_up_all_the_same() {
    let mut observed = deleted("held", absent());
    observed.is_selected = false;
    assert_eq!(decide(&observed), Action::Create(json!({"first": true})));
}

/// The invariant: under `Hold`, only a proven backup or a user releases an object.
#[test]
fn under_hold_only_a_proven_backup_or_a_user_lets_go() {
    let ages = [0, 5, 601, 100_000];
    let unproven = ages.into_iter().flat_map(|age| {
        [
            there(Verdict::Running(None), age),
            there(Verdict::Running(Some("?".into())), age),
            there(Verdict::Going, age),
            failed(1, age),
            failed(40, age),
            Situation::Unfinished { last: last(40, age) },
            absent(),
            Situation::Unusable(Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, "")),
        ]
    });
    for situation in unproven {
        for backoffs in [Backoffs::default(), deferred()] {
            for since in ages {
                let mut observed = deleted("held", situation.clone());
                observed.backoffs = backoffs.clone();
                held(&mut observed).since = ago(since);
                held(&mut observed).refusals = 100;
                assert_eq!(outcome(&decide(&observed)), None, "{observed:?}");
                held(&mut observed).force_release = ForceRelease::Unproven;
                assert_eq!(outcome(&decide(&observed)), None, "{observed:?}");
                held(&mut observed).force_release = ForceRelease::Granted("I know".into());
                assert_eq!(outcome(&decide(&observed)), Some(Outcome::Forced), "{observed:?}");
            }
        }
    }
    assert_eq!(outcome(&decide(&deleted("held", there(Verdict::Succeeded, 1)))), Some(Outcome::BackedUp));
}

#[test]
fn an_object_that_backs_off_is_let_go_when_its_backup_is_proven() {
    let mut observed = deleted("held", there(Verdict::Succeeded, 1));
    observed.backoffs = deferred();
    assert_eq!(outcome(&decide(&observed)), Some(Outcome::BackedUp));
}

#[test]
fn nothing_is_created_while_backing_off_and_the_failure_is_said() {
    for situation in [absent(), failed(1, 1000)] {
        let mut observed = deleted("held", situation);
        if let Action::Hold { status, .. } = decide(&observed) {
            held(&mut observed).status = Some(status);
        }
        observed.backoffs = deferred();
        held(&mut observed).now = now() + Duration::from_secs(60);
        assert_eq!(state(&decide(&observed)), Some((State::Blocked, "Forbidden")));
    }
}

#[test]
fn a_read_that_fails_in_the_pause_after_a_failed_backup_does_not_end_the_pause() {
    let mut observed = deleted("held", failed(1, 1000));
    let Action::Hold { status, .. } = decide(&observed) else { panic!("not held") };
    held(&mut observed).status = Some(status.clone());
    held(&mut observed).now = now() + Duration::from_secs(59);
    observed.backoffs = deferred();
    let action = decide(&observed);
    let waits = Duration::from_secs(1);
    assert!(matches!(&action, Action::Hold { tell: false, again, .. } if *again == waits), "{action:?}");
}

/// A pass in which a backup cannot be read, after this status was told so many seconds ago.
fn unread(id: &str, status: Option<&BackupStatus>, seconds: i64) -> Action {
    let mut observed = deleted(id, Situation::Unread);
    observed.backoffs = deferred();
    let held = held(&mut observed);
    (held.status, held.since) = (status.cloned(), ago(100_000));
    held.now = now() + SignedDuration::from_secs(seconds);
    decide(&observed)
}

fn told(action: Action) -> BackupStatus {
    let Action::Hold { status, .. } = action else { panic!("not held: {action:?}") };
    status
}

#[test]
fn a_backup_that_cannot_be_read_is_told_with_the_reason_and_its_failure_has_its_pause() {
    let failed_once = told(decide(&deleted("held", failed(1, 1000))));
    assert!(
        matches!(unread("held", Some(&failed_once), 59), Action::Hold { tell: false, .. }),
        "in its pause"
    );
    let states = |status: BackupStatus| (status.state, status.reason);
    let blocked = (State::Blocked, "Forbidden".to_owned());
    assert_eq!(states(told(unread("held", Some(&failed_once), 61))), blocked);
    let running = told(decide(&deleted("held", there(Verdict::Running(None), 30))));
    let unread = told(unread("held", Some(&running), 1));
    assert_eq!(states(unread.clone()), blocked);
    let mut ended = deleted("held", failed(1, 10));
    held(&mut ended).status = Some(unread);
    assert_eq!(told(decide(&ended)).state, State::Failed, "it is told, and the next one waits");
}

#[test]
fn an_entry_that_protects_no_more_lets_go_what_cannot_be_read_once_that_was_told_for_the_deadline() {
    assert_eq!(outcome(&unread("unprotected", None, 0)), None, "it may be there");
    let told = told(unread("unprotected", None, 0));
    for (seconds, expected) in [(599, None), (600, Some(Outcome::GivenUp))] {
        assert_eq!(outcome(&unread("unprotected", Some(&told), seconds)), expected, "{seconds}");
    }
}

#[test]
fn a_backup_that_ends_at_once_is_not_reported() {
    let action = decide(&deleted("held", there(Verdict::Running(None), 1)));
    assert!(matches!(action, Action::Hold { tell: false, again, .. } if again == Duration::from_secs(2)));
    let action = decide(&deleted("held", there(Verdict::Running(None), 4)));
    assert!(matches!(action, Action::Hold { tell: true, .. }));
}

#[test]
fn what_is_said_already_is_not_said_again() {
    let mut observed = deleted("held", there(Verdict::Running(None), 30));
    let Action::Hold { status, tell: true, .. } = decide(&observed) else { panic!("it is not said") };
    held(&mut observed).status = Some(status.clone());
    held(&mut observed).now = now() + SignedDuration::from_secs(60);
    let Action::Hold { status: later, tell, .. } = decide(&observed) else { panic!("it is not held") };
    assert_eq!((later, tell), (status, false));
}

#[test]
fn a_status_that_is_not_shown_is_told_again_when_it_is_due() {
    let mut observed = deleted("held", failed(1, 100));
    let Action::Hold { status, .. } = decide(&observed) else { panic!("not held") };
    held(&mut observed).status = Some(status);
    for (tell_again, tells, expected) in [(None, false, 60), (Some(9), false, 9), (Some(0), true, 0)] {
        held(&mut observed).tell_again = tell_again.map(Duration::from_secs);
        let Action::Hold { tell, again, .. } = decide(&observed) else { panic!("not held") };
        assert_eq!((tell, again.as_secs()), (tells, expected), "{tell_again:?}");
    }
}

#[test]
fn a_failed_backup_is_tried_again_after_a_pause_that_doubles_and_survives_a_crash() {
    for (attempt, pause) in [(1, 60), (2, 120), (3, 240), (30, 3600)] {
        let mut observed = deleted("held", failed(attempt, 100_000));
        let Action::Hold { status, tell: true, again } = decide(&observed) else { panic!("not said") };
        assert_eq!((status.state, again), (State::Failed, Duration::from_secs(pause)));
        assert_eq!(status.failed_by(&kind("held").policy), attempt);
        held(&mut observed).status = Some(status);
        held(&mut observed).now = now() + Duration::from_secs(pause - 1);
        let waits = decide(&observed);
        assert!(matches!(waits, Action::Hold { tell: false, again, .. } if again == Duration::from_secs(1)));
        held(&mut observed).now = now() + Duration::from_secs(pause);
        assert_eq!(decide(&observed), Action::Create(json!({"next": true})));
    }
}

#[test]
fn the_failure_of_an_earlier_try_does_not_count_for_a_later_one() {
    let mut observed = deleted("held", failed(1, 100));
    let Action::Hold { status, .. } = decide(&observed) else { panic!("not held") };
    held(&mut observed).status = Some(status);
    held(&mut observed).situation = Some(failed(2, 100));
    held(&mut observed).now = now() + Duration::from_secs(1000);
    let Action::Hold { status, again, .. } = decide(&observed) else { panic!("not held") };
    // Its pause begins again, and is twice as long.
    assert_eq!(
        (status.state, status.since, again),
        (State::Failed, held(&mut observed).now, Duration::from_secs(120))
    );
}

#[test]
fn a_backup_that_deletes_itself_is_recorded_before_each_attempt_and_then_created_without_another_pause() {
    let job = json!({"kind": "Job", "spec": {"ttlSecondsAfterFinished": 0}});
    let begun = |status: &BackupStatus| status.begun_by(&kind("held").policy);
    let mut observed = deleted("held", Situation::Absent { attempt: 1, backup: job.clone() });
    let Action::Begin(first) = decide(&observed) else { panic!("not recorded") };
    assert_eq!((first.state, first.attempt, begun(&first)), (State::BackingUp, 1, 1));
    held(&mut observed).status = Some(first);
    assert_eq!(decide(&observed), Action::Create(job.clone()));

    held(&mut observed).situation =
        Some(Situation::Failed { last: last(1, 100), next: job.clone(), seen: 1 });
    let Action::Hold { status, again, .. } = decide(&observed) else { panic!("no pause") };
    held(&mut observed).status = Some(status);
    held(&mut observed).now = now() + again;
    let Action::Begin(second) = decide(&observed) else { panic!("not recorded") };
    assert_eq!(begun(&second), 2);
    held(&mut observed).status = Some(second);
    assert_eq!(decide(&observed), Action::Create(job));
}

#[test]
fn a_search_among_many_failed_tries_goes_on_where_it_was() {
    let mut observed = deleted("held", Situation::Unfinished { last: last(32, 100) });
    held(&mut observed).refusals = 100;
    let action = decide(&observed);
    assert!(
        matches!(&action, Action::Hold { status, tell: true, again: Duration::ZERO } if status.attempt == 32),
        "{action:?}"
    );
    observed.kind = Some(kind("released"));
    assert_eq!(outcome(&decide(&observed)), None, "there may be one that succeeded");
}

#[test]
fn what_is_held_says_which_entry_of_the_settings_it_belongs_to() {
    let Action::Hold { status, .. } = decide(&deleted("held", failed(1, 100))) else { panic!("not held") };
    assert_eq!(status.entry, "held");
}

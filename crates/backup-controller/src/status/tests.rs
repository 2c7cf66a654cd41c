use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::json;

use super::*;
use crate::{
    backup::Situation,
    fixtures::{self, TEMPLATE, target, with_policy},
    force_release::ForceRelease,
};

fn time(text: &str) -> Timestamp {
    format!("2026-06-01T{text}Z").parse().unwrap()
}

/// An object that was deleted a minute ago, without a status yet.
fn observed() -> Observed {
    let settings = with_policy(TEMPLATE, "", &json!({"deadline": "10m"}));
    let absent = Situation::Absent { attempt: 1, backup: json!({}) };
    let mut observed = fixtures::held(&settings, &target("shop"), absent);
    let held = observed.held.as_mut().unwrap();
    (held.since, held.now, held.situation) = (time("12:00:00"), time("12:01:00"), None);
    observed
}

fn held(observed: &Observed) -> &Held {
    observed.held.as_ref().unwrap()
}

fn last() -> Try {
    let part = |text: &str| Some(text.to_owned());
    let backup = ObjectReference {
        kind: part("Secret"),
        namespace: part("backups"),
        name: part("web-3"),
        ..ObjectReference::default()
    };
    Try { attempt: 3, backup, created: time("12:00:30"), is_given_up: false, has_vanished: false }
}

fn failure() -> Failure {
    Failure::transient("Forbidden", "it may not")
}

#[test]
fn a_status_says_of_which_object_entry_try_and_backup_it_is_and_since_when() {
    let observed = observed();
    let status = running(&observed, held(&observed), &last(), &Verdict::Running(None));
    assert_eq!((status.uid.as_str(), status.entry.as_str(), status.attempt), ("u", "maps", 3));
    assert_eq!(status.backup.as_deref(), Some("Secret backups/web-3"));
    assert_eq!(status.since, time("12:01:00"));
}

#[test]
fn each_kind_of_waiting_has_a_state_and_a_reason_and_says_what_to_do() {
    let observed = observed();
    let (kind, held, last) = (observed.kind.as_ref().unwrap(), held(&observed), last());
    let given_up = Try { is_given_up: true, ..last.clone() };
    let vanished = Try { has_vanished: true, ..last.clone() };
    let old = Try { created: time("11:59:00"), ..last.clone() };
    let unclear = Verdict::Unclear("it has no value".into());
    let note = Verdict::Running(Some("the field status is not set yet".into()));
    let release = "catena.dev/force-release: u <reason>";
    for (status, state, reason, said) in [
        (
            running(&observed, held, &last, &Verdict::Running(None)),
            State::BackingUp,
            "BackupRunning",
            "waiting",
        ),
        (
            running(&observed, held, &last, &note),
            State::BackingUp,
            "BackupRunning",
            "waiting for the backup: the field status",
        ),
        (
            running(&observed, held, &last, &unclear),
            State::BackingUp,
            "BackupRunning",
            "waiting for the backup: it has no value",
        ),
        (
            running(&observed, held, &old, &unclear),
            State::BackingUp,
            "BackupUnclear",
            "waiting for the backup: it has no value",
        ),
        (
            running(&observed, held, &last, &Verdict::Going),
            State::BackingUp,
            "BackupBeingDeleted",
            "another one is created",
        ),
        (overdue(&observed, kind, held, &last), State::Overdue, "BackupOverdue", "not finish within 600s"),
        (overdue(&observed, kind, held, &last), State::Overdue, "BackupOverdue", release),
        (
            failed(&observed, kind, held, &last, time("12:02:00")),
            State::Failed,
            "BackupFailed",
            "2026-06-01T12:02:00Z",
        ),
        (failed(&observed, kind, held, &last, time("12:02:00")), State::Failed, "BackupFailed", release),
        (
            failed(&observed, kind, held, &given_up, time("12:02:00")),
            State::Failed,
            "BackupOverdue",
            "did not finish within 600s, and counts as a failed try; the next attempt is due at 2026-06-01T12:02:00Z",
        ),
        (
            failed(&observed, kind, held, &vanished, time("12:02:00")),
            State::Failed,
            "BackupVanished",
            "ttlSecondsAfterFinished; the next attempt is due at 2026-06-01T12:02:00Z",
        ),
        (blocked(&observed, held, 3, &failure()), State::Blocked, "Forbidden", "it may not"),
    ] {
        assert_eq!((status.state, status.reason.as_str()), (state, reason));
        assert!(status.message.contains(said), "{}", status.message);
    }
}

#[test]
fn what_blocks_a_backup_names_none() {
    let observed = observed();
    let status = blocked(&observed, held(&observed), 3, &failure());
    assert_eq!((status.attempt, status.backup), (3, None));
}

#[test]
fn what_is_let_go_says_why_and_after_which_try() {
    let mut observed = observed();
    for (outcome, reason) in [
        (Outcome::BackedUp, "BackedUp"),
        (Outcome::GivenUp, "ReleasedWithoutBackup"),
        (Outcome::Forced, "ForceReleased"),
    ] {
        let status = released(&observed, held(&observed), outcome, Some(&last()), "so it is");
        assert_eq!((status.state, status.reason.as_str()), (State::Released, reason));
        assert_eq!((status.attempt, status.message.as_str()), (3, "so it is"));
    }
    let attempt = |observed: &Observed| released(observed, held(observed), Outcome::Forced, None, "").attempt;
    assert_eq!(attempt(&observed), 1);
    let said = blocked(&observed, held(&observed), 7, &failure());
    observed.held.as_mut().unwrap().status = Some(said);
    assert_eq!(attempt(&observed), 7, "without a backup, it is the try that was said last");
}

#[test]
fn a_release_that_does_not_count_is_told_with_every_status() {
    let mut observed = observed();
    observed.held.as_mut().unwrap().force_release = ForceRelease::Unproven;
    let (kind, held, last) = (observed.kind.as_ref().unwrap(), held(&observed), last());
    for status in [
        running(&observed, held, &last, &Verdict::Going),
        overdue(&observed, kind, held, &last),
        failed(&observed, kind, held, &last, held.now),
        blocked(&observed, held, 1, &failure()),
    ] {
        let command = "kubectl annotate --overwrite --namespace shop configmaps web catena.dev/force-release='u <reason>'";
        assert!(status.message.ends_with(command), "{}", status.message);
    }
}

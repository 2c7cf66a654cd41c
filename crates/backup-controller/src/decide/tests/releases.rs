//! When an object is let go without a proven backup.

use super::*;

#[test]
fn after_the_deadline_it_is_held_and_the_reason_is_said_or_it_is_let_go() {
    let late = || there(Verdict::Running(None), 600);
    assert_eq!(state(&decide(&deleted("held", late()))), Some((State::Overdue, "BackupOverdue")));
    assert_eq!(outcome(&decide(&deleted("released", late()))), None);
}

/// `tries` of the settings are real tries: one that took too long is one of them, and the next one follows.
#[test]
fn release_lets_go_only_after_all_tries_took_too_long_or_failed() {
    let given_up = |attempt| {
        let last = Try { is_given_up: true, ..last(attempt, 600) };
        decide(&deleted("released", Situation::Failed { last, next: json!({"next": true}), seen: attempt }))
    };
    let first = given_up(1);
    assert_eq!(state(&first), Some((State::Failed, "BackupOverdue")), "{first:?}");
    assert_eq!(outcome(&given_up(2)), Some(Outcome::GivenUp));
}

#[test]
fn only_an_unfinished_backup_that_took_too_long_is_given_up_and_only_where_release_is_allowed() {
    let gives_up = |id: &str, verdict: &Verdict, age| verdict.is_given_up(&kind(id), ago(age), now());
    let unfinished = [Verdict::Running(None), Verdict::Running(Some("?".into())), Verdict::Going];
    for verdict in &unfinished {
        assert!(gives_up("released", verdict, 600) && gives_up("unprotected", verdict, 600), "{verdict:?}");
        assert!(!gives_up("released", verdict, 599) && !gives_up("held", verdict, 600), "{verdict:?}");
    }
    assert!(!gives_up("released", &Verdict::Succeeded, 600) && !gives_up("released", &Verdict::Failed, 600));
}

#[test]
fn release_lets_go_after_so_many_tries() {
    assert_eq!(outcome(&decide(&deleted("released", failed(1, 10)))), None);
    assert_eq!(outcome(&decide(&deleted("released", failed(2, 10)))), Some(Outcome::GivenUp));
}

#[test]
fn release_lets_go_what_cannot_be_backed_up_only_after_tries_and_deadline() {
    let let_go = |refusals, since| {
        let mut observed = deleted("released", absent());
        observed.backoffs = deferred();
        held(&mut observed).refusals = refusals;
        held(&mut observed).since = ago(since);
        outcome(&decide(&observed))
    };
    assert_eq!(let_go(2, 600), Some(Outcome::GivenUp));
    assert_eq!(let_go(2, 599), None);
    assert_eq!(let_go(1, 100_000), None);
    assert_eq!(let_go(0, 100_000), None, "a new leader, which has counted none, holds it longer");
    // One refused attempt beside a failed one.
    let mut observed = deleted("released", failed(1, 1000));
    held(&mut observed).refusals = 1;
    assert_eq!(outcome(&decide(&observed)), None);
    held(&mut observed).since = ago(600);
    assert_eq!(outcome(&decide(&observed)), Some(Outcome::GivenUp));
}

/// The controller may have been down for longer than the deadline, and the first failure afterwards may be a mere read.
#[test]
fn what_was_never_tried_is_not_let_go() {
    let unusable = Situation::Unusable(Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, ""));
    for situation in [absent(), unusable] {
        for backoffs in [Backoffs::default(), deferred()] {
            let mut observed = deleted("released", situation.clone());
            observed.backoffs = backoffs;
            held(&mut observed).since = ago(100_000);
            assert_eq!(outcome(&decide(&observed)), None, "{observed:?}");
        }
    }
}

#[test]
fn an_entry_that_protects_no_more_lets_go_what_cannot_be_backed_up_and_waits_for_what_can() {
    let unprotected = |situation, refusals| {
        let mut observed = deleted("unprotected", situation);
        held(&mut observed).refusals = refusals;
        decide(&observed)
    };
    assert!(matches!(unprotected(absent(), 0), Action::Create(_)));
    assert_eq!(outcome(&unprotected(there(Verdict::Running(None), 599), 0)), None);
    for (situation, refusals) in [
        (absent(), 1),
        (failed(1, 1), 0),
        (Situation::Unusable(Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, "")), 0),
    ] {
        let action = unprotected(situation, refusals);
        assert_eq!(outcome(&action), Some(Outcome::GivenUp), "{action:?}");
    }
    let mut observed = deleted("unprotected", there(Verdict::Running(None), 30));
    let Action::Hold { status, .. } = decide(&observed) else { panic!("not held") };
    held(&mut observed).status = Some(status);
    held(&mut observed).situation =
        Some(Situation::Unusable(Failure::stalled(reason::BACKUP_WITHOUT_NAMESPACE, "")));
    assert_eq!(outcome(&decide(&observed)), None, "its backup still runs");
    // Nor after that was told.
    observed.backoffs = deferred();
    let Action::Hold { status, .. } = decide(&observed) else { panic!("not held") };
    held(&mut observed).status = Some(status);
    assert_eq!(outcome(&decide(&observed)), None, "its backup still runs");
    held(&mut observed).since = ago(100_000);
    assert_eq!(outcome(&decide(&observed)), None, "it began later");
    held(&mut observed).status.as_mut().unwrap().since = ago(100_000);
    assert_eq!(outcome(&decide(&observed)), Some(Outcome::GivenUp), "nobody knows of it any more");
}

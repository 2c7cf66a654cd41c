use std::{collections::HashSet, sync::Arc};

use catena_api::keys;
use command_kinds::schemas::StatusSchema;
use operator_kit::{report::Conditions, run::Backoffs};
use serde_json::json;

use super::*;
use crate::{
    command::Command,
    fixtures::{NOW, command, kind, merge, observed, shop},
    line::{concerned, is_same},
    observed::Look,
};

mod examples;
mod queue;
mod shipped;

/// The words about what a command was judged by.
const RECORD: &str = "as the annotation catena.dev/commands of its Shop says";

/// The status of a command that ran at this minute.
fn started(minute: u32) -> Value {
    status(&format!("2026-01-01T11:{minute:02}:00Z"), "Unknown", "Running")
}

/// The status of a command that has ended.
fn ended() -> Value {
    status(NOW, "True", "Complete")
}

fn status(start_time: &str, succeeded: &str, reason: &str) -> Value {
    let condition = json!({
        "type": "Succeeded", "status": succeeded, "reason": reason, "message": "", "observedGeneration": 1,
        "lastTransitionTime": NOW,
    });
    json!({"status": {"startTime": start_time, "conditions": [condition]}})
}

/// The annotation that reports this status of a command.
fn annotated(uid: &str, status: &Value) -> Value {
    let mut record = status.clone();
    record["uid"] = json!(uid);
    json!({"metadata": {"annotations": {keys::RUN: record.to_string()}}})
}

/// A command that was created at this minute.
fn restart(name: &str, minute: u32) -> Arc<Command> {
    command(&kind("restarts", &json!({})), name, minute, &json!({}))
}

/// A command that supersedes older ones.
fn rollback(name: &str, minute: u32, more: &Value) -> Arc<Command> {
    command(&kind("rollbacks", &json!({"supersedes": true})), name, minute, more)
}

/// The reason that a state is reported with; empty if it is not.
fn reason_of(observed: &Observed) -> (String, Option<bool>) {
    let Action::Report(status) = decide(observed) else { return (String::new(), None) };
    let [succeeded, ..] = &status.conditions[..] else { panic!("{status:?}") };
    let outcome = match succeeded.status.as_str() {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    };
    (succeeded.reason.clone(), outcome)
}

fn message_of(observed: &Observed) -> String {
    match decide(observed) {
        Action::Report(status) => status.conditions[0].message.clone(),
        other => panic!("instead of a report: {other:?}"),
    }
}

fn waits(reason: &str) -> (String, Option<bool>) {
    (reason.to_owned(), None)
}

fn fails(reason: &str) -> (String, Option<bool>) {
    (reason.to_owned(), Some(false))
}

#[test]
fn effect_and_proof_are_one_patch_of_exactly_the_target_that_was_read() {
    let (former, one) = (restart("former", 1), restart("one", 10));
    let Action::Run(patch) = decide(&observed(&one, &[&one], shop(&[&former], &json!({})))) else {
        panic!("it does not run")
    };
    let proof = r#"[{"created":"2026-01-01T11:01:00Z","uid":"former"},{"created":"2026-01-01T11:10:00Z","uid":"one"}]"#;
    let expected = json!({
        "metadata": {
            "name": "a", "namespace": "here", "uid": "shop", "resourceVersion": "9",
            "annotations": {"catena.dev/commands": proof},
        },
        "spec": {"at": "2026-01-01T11:10:00Z"},
    });
    assert_eq!(patch, expected);
}

#[test]
fn nothing_runs_before_it_is_known_where_that_is_told() {
    let one = restart("one", 10);
    let untold = Observed { takes_status: None, ..observed(&one, &[&one], shop(&[], &json!({}))) };
    assert_eq!(decide(&untold), Action::Wait(RETRY_INTERVAL));
}

#[test]
fn the_oldest_runs_first_and_within_a_second_the_uid_decides() {
    let (a, b, c) = (restart("a", 10), restart("b", 10), restart("c", 9));
    for (mine, runs) in [(&a, false), (&b, false), (&c, true)] {
        let action = decide(&observed(mine, &[&c, &a, &b], shop(&[], &json!({}))));
        assert_eq!(matches!(action, Action::Run(_)), runs, "{:?}", mine.metadata.name);
    }
    assert_eq!(reason_of(&observed(&a, &[&c, &a, &b], Look::None)), waits("Queued"));
    assert!(matches!(decide(&observed(&a, &[&a, &b], shop(&[], &json!({})))), Action::Run(_)));
}

#[test]
fn nothing_runs_beside_another_one_whichever_of_its_two_records_is_seen() {
    let late = restart("late", 20);
    let by_status = command(&kind("drains", &json!({})), "early", 10, &started(11));
    let by_proof = restart("early", 10);
    for (early, ran) in [(&by_status, vec![]), (&by_proof, vec![&by_proof])] {
        let seen = observed(&late, &[early, &late], shop(&ran, &json!({})));
        assert_eq!(reason_of(&seen), waits("Queued"));
    }
    // A clock that is behind makes a command older than one that runs.
    let newer = command(&kind("drains", &json!({})), "newer", 30, &started(31));
    assert_eq!(reason_of(&observed(&late, &[&late, &newer], shop(&[], &json!({})))), waits("Queued"));
    let done = command(&kind("drains", &json!({})), "early", 10, &ended());
    assert!(matches!(decide(&observed(&late, &[&done, &late], shop(&[&done], &json!({})))), Action::Run(_)));
}

#[test]
fn a_command_that_ended_or_is_deleted_is_left_alone_and_its_end_wakes_the_next() {
    let done = command(&kind("restarts", &json!({})), "one", 10, &ended());
    let is_left = |seen: Observed| decide(&seen) == Action::Settle && seen.concerns_others();
    assert!(is_left(observed(&done, &[&done], shop(&[], &json!({})))));
    // Also where somebody else has told it, without a generation.
    let condition = json!({"type": "Succeeded", "status": "True", "reason": "Done", "message": "", "lastTransitionTime": "2026-01-01T11:30:00Z"});
    let told = json!({"status": {"conditions": [condition]}});
    let told = command(&kind("restarts", &json!({})), "one", 10, &told);
    assert!(is_left(observed(&told, &[&told], shop(&[], &json!({})))));
    let deleted = |at: &str| {
        let metadata = json!({"deletionTimestamp": at, "finalizers": ["a.dev/hold"]});
        let deleted = command(&kind("restarts", &json!({})), "one", 10, &json!({"metadata": metadata}));
        observed(&deleted, &[&deleted], shop(&[], &json!({})))
    };
    let young = deleted("2026-01-01T11:59:59Z");
    assert_eq!(decide(&young), Action::Wait(Duration::from_secs(1)));
    assert_eq!(reason_of(&deleted("2026-01-01T11:59:00Z")), waits("Terminating"));
    assert!(message_of(&deleted("2026-01-01T11:59:00Z")).ends_with("; it is not carried out"));
}

#[test]
fn a_command_that_ran_is_judged_and_never_repeated_whatever_record_is_lost() {
    let by_status = command(&kind("restarts", &json!({})), "one", 10, &started(11));
    let by_proof = restart("one", 10);
    for (one, ran) in [(&by_status, vec![]), (&by_proof, vec![&by_proof]), (&by_status, vec![&by_status])] {
        for (target, expected) in [
            (json!({}), waits("Running")),
            (json!({"status": {"ready": true}}), ("Complete".into(), Some(true))),
            (json!({"status": {"ready": true, "observedGeneration": 2}}), waits("Running")),
            (json!({"status": {"broken": true}}), fails("Broken")),
            // What cannot be determined is still running.
            (json!({"status": null}), waits("Running")),
        ] {
            assert_eq!(reason_of(&observed(one, &[one], shop(&ran, &target))), expected, "{target}");
        }
    }
}

#[test]
fn what_is_older_than_a_full_record_never_runs_and_says_so() {
    let newer: Vec<_> = (20..28).map(|minute| restart(&format!("r{minute}"), minute)).collect();
    let old = restart("old", 10);
    let seven: Vec<_> = newer.iter().skip(1).collect();
    assert!(matches!(decide(&observed(&old, &[&old], shop(&seven, &json!({})))), Action::Run(_)));
    let all: Vec<_> = newer.iter().collect();
    let too_old = observed(&old, &[&old], shop(&all, &json!({})));
    assert_eq!(reason_of(&too_old), fails("Superseded"));
    assert!(
        message_of(&too_old).contains(RECORD),
        "whoever can write it can end commands: {}",
        message_of(&too_old)
    );
    // One that ran before is judged.
    let ran = command(&kind("restarts", &json!({})), "old", 10, &started(11));
    assert_eq!(reason_of(&observed(&ran, &[&ran], shop(&all, &json!({})))), waits("Running"));
}

#[test]
fn one_that_supersedes_goes_first_also_beside_an_older_one_that_runs_and_ends_all_older_ones() {
    let running = command(&kind("restarts", &json!({})), "running", 10, &started(11));
    let (waiting, next) = (restart("waiting", 20), restart("next", 40));
    let first = rollback("first", 30, &json!({}));
    let before = [&running, &waiting, &first, &next];
    let on_target = |ran: &[&Arc<Command>]| shop(ran, &json!({}));
    assert!(matches!(decide(&observed(&first, &before, on_target(&[&running]))), Action::Run(_)));
    assert_eq!(reason_of(&observed(&waiting, &before, Look::None)), waits("Queued"));

    // Its proof on the target is needed, and is enough.
    let by_proof = observed(&running, &before, on_target(&[&running, &first]));
    assert_eq!(reason_of(&by_proof), fails("Superseded"));
    assert!(
        message_of(&by_proof).contains("the Restart \"first\" has taken its place"),
        "{}",
        message_of(&by_proof)
    );
    let first = rollback("first", 30, &started(31));
    let after = [&running, &waiting, &first, &next];
    for older in [&running, &waiting] {
        assert!(observed(older, &after, Look::None).needs_target());
        assert_eq!(reason_of(&observed(older, &after, on_target(&[&running, &first]))), fails("Superseded"));
        assert_ne!(reason_of(&observed(older, &after, on_target(&[&running]))), fails("Superseded"));
    }
    assert_eq!(reason_of(&observed(&next, &after, Look::None)), waits("Queued"));
}

#[test]
fn one_that_supersedes_ends_those_of_its_own_second_whatever_their_uids_are() {
    for name in ["a", "z"] {
        let running = command(&kind("restarts", &json!({})), name, 20, &started(20));
        let first = rollback("first", 20, &json!({}));
        let seen = observed(&first, &[&running, &first], shop(&[&running], &json!({})));
        assert!(matches!(decide(&seen), Action::Run(_)), "{name}");
        let older = observed(&running, &[&running, &first], shop(&[&running, &first], &json!({})));
        assert_eq!(reason_of(&older), fails("Superseded"), "{name}");
    }
}

#[test]
fn a_superseding_command_that_is_gone_still_ends_the_older_ones() {
    let (old, gone) = (restart("old", 10), rollback("gone", 30, &json!({})));
    let seen = observed(&old, &[&old], shop(&[&gone], &json!({})));
    assert_eq!(reason_of(&seen), fails("Superseded"));
    let told = message_of(&seen);
    assert!(told.contains("the command with the uid gone") && told.contains(RECORD), "{told}");
}

#[test]
fn one_that_cannot_run_ends_nobody() {
    let old = restart("old", 10);
    let refused = rollback("refused", 30, &json!({}));
    let closed = json!({"spec": {"closed": true}});
    assert_eq!(reason_of(&observed(&refused, &[&old, &refused], shop(&[], &closed))), fails("Closed"));
    let never_ran = json!({"status": {"startTime": null}});
    let mut status = status(NOW, "False", "Closed");
    merge(&mut status, &never_ran);
    let refused = rollback("refused", 30, &status);
    let next = observed(&old, &[&old, &refused], shop(&[], &json!({})));
    assert!(matches!(decide(&next), Action::Run(_)));
}

#[test]
fn one_whose_patch_is_refused_lets_older_ones_pass_and_is_tried_again() {
    let (old, refused, new) = (restart("old", 10), rollback("refused", 20, &json!({})), restart("new", 30));
    let seen = |own: &Arc<Command>, ran: &[&Arc<Command>]| Observed {
        refused: ["refused".into()].into(),
        ..observed(own, &[&old, &refused, &new], shop(ran, &json!({})))
    };
    assert!(matches!(decide(&seen(&old, &[])), Action::Run(_)));
    assert!(matches!(decide(&seen(&refused, &[])), Action::Run(_)));
    assert!(matches!(decide(&seen(&refused, &[&old])), Action::Run(_)));
    assert_eq!(reason_of(&seen(&new, &[])), waits("Queued"), "it could not end a newer one");
}

#[test]
fn one_that_superseded_others_and_has_ended_ends_older_ones_although_the_record_on_the_target_is_lost() {
    let old = restart("old", 10);
    for outcome in [ended(), status(NOW, "False", "DeadlineExceeded")] {
        let newer = rollback("newer", 30, &outcome);
        let seen = observed(&old, &[&old, &newer], shop(&[], &json!({})));
        assert!(seen.needs_target());
        assert_eq!(reason_of(&seen), fails("Superseded"));
        let told = message_of(&seen);
        assert!(
            told.contains("the Restart \"newer\" has taken its place") && !told.contains(RECORD),
            "{told}"
        );
    }
    // An end that somebody else tells is not that of a run.
    let mut told = ended();
    told["status"]["conditions"][0].as_object_mut().unwrap().remove("observedGeneration");
    let told = rollback("told", 30, &told);
    assert!(matches!(decide(&observed(&old, &[&old, &told], shop(&[], &json!({})))), Action::Run(_)));
}

#[test]
fn one_that_is_known_to_have_run_is_judged_also_where_its_proof_and_its_status_are_lost() {
    let one = restart("one", 10);
    let seen = Observed { was_proven: true, ..observed(&one, &[&one], Look::None) };
    assert!(seen.needs_target());
    let Action::Report(status) = decide(&Observed { target: shop(&[], &json!({})), ..seen }) else {
        panic!("no report")
    };
    assert_eq!(status.conditions[0].reason, "Running");
    assert!(status.start_time.is_some(), "its status proves it again");
}

#[test]
fn one_that_has_not_ended_hides_no_end_of_an_older_one_that_supersedes() {
    let (old, ended) = (restart("old", 10), rollback("ended", 20, &ended()));
    let running = rollback("running", 30, &started(31));
    let seen = observed(&old, &[&old, &ended, &running], shop(&[], &json!({})));
    assert_eq!(reason_of(&seen), fails("Superseded"));
    assert!(message_of(&seen).contains("the Restart \"ended\" has taken its place"));
}

#[test]
fn an_end_that_its_author_can_write_supersedes_nobody() {
    let (old, told) = (rollback("old", 10, &json!({})), rollback("told", 30, &ended()));
    let seen = observed(&old, &[&old, &told], shop(&[], &json!({})));
    assert_eq!(reason_of(&seen), fails("Superseded"));
    let without_status = Observed { with_status: HashSet::new(), ..seen };
    assert!(matches!(decide(&without_status), Action::Run(_)));
}

#[test]
fn a_start_that_only_an_annotation_reports_gets_into_no_status() {
    let forged = rollback("forged", 30, &annotated("forged", &started(31)["status"]));
    let ready = json!({"status": {"ready": true}});
    let Action::Report(status) = decide(&observed(&forged, &[&forged], shop(&[], &ready))) else {
        panic!("no report")
    };
    assert_eq!(status.start_time, None);
    let (old, ended) = (restart("old", 10), rollback("forged", 30, &json!({ "status": status })));
    let seen = observed(&old, &[&old, &ended], shop(&[], &json!({})));
    assert!(matches!(decide(&seen), Action::Run(_)), "the annotation is gone, and it never ran");
    let Action::Report(status) = decide(&observed(&forged, &[&forged], shop(&[&forged], &ready))) else {
        panic!("no report")
    };
    assert!(status.start_time.is_some(), "the target proves it");
}

#[test]
fn a_report_is_compared_with_the_record_that_it_is_written_to() {
    let mut forged = status(NOW, "Unknown", "Forged");
    forged["status"]["startTime"] = Value::Null;
    let seen = |more: &Value| {
        let one = command(&kind("restarts", &json!({})), "one", 10, more);
        let paused = shop(&[], &json!({"spec": {"paused": true}}));
        Observed { takes_status: Some(false), ..observed(&one, &[&one], paused) }
    };
    let Action::Report(status) = decide(&seen(&forged)) else { panic!("no report") };
    merge(&mut forged, &annotated("one", &json!(status)));
    assert_eq!(decide(&seen(&forged)), Action::Wait(LOOK_INTERVAL));
}

#[test]
fn of_those_that_supersede_others_the_newest_goes_first() {
    let (old, new) = (rollback("old", 10, &json!({})), rollback("new", 20, &json!({})));
    let decided = |own: &Arc<Command>, target| decide(&observed(own, &[&old, &new], target));
    assert!(matches!(decided(&new, shop(&[], &json!({}))), Action::Run(_)));
    assert_eq!(reason_of(&observed(&old, &[&old, &new], shop(&[], &json!({})))), waits("Queued"));
    assert_eq!(reason_of(&observed(&old, &[&old, &new], shop(&[&new], &json!({})))), fails("Superseded"));
}

#[test]
fn one_that_supersedes_others_and_cannot_run_yet_waits_in_its_place_and_lets_older_ones_pass() {
    let waits_itself = json!({"when": "target.spec.?held.orValue(false)", "reason": "Held", "message": ""});
    let unclear = json!({"when": "target.spec.missing", "reason": "Held", "message": ""});
    for (rule, expected) in [(waits_itself, "Held"), (unclear, "RuleFailed")] {
        let kind = kind("rollbacks", &json!({"supersedes": true, "wait": [rule]}));
        let held = command(&kind, "held", 20, &json!({}));
        let (old, new) = (restart("old", 10), restart("new", 30));
        let seen = |own: &Arc<Command>, ran: &[&Arc<Command>]| {
            observed(own, &[&old, &held, &new], shop(ran, &json!({"spec": {"held": true}})))
        };
        assert!(matches!(decide(&seen(&old, &[])), Action::Run(_)));
        assert_eq!(reason_of(&seen(&held, &[])), waits(expected));
        // It could not end a newer one, however long that takes.
        assert_eq!(reason_of(&seen(&new, &[])), waits("Queued"));
        // Two never run at once.
        assert_eq!(reason_of(&seen(&new, &[&old])), waits("Queued"));
    }
}

#[test]
fn one_that_ran_before_an_older_one_was_bound_is_found_by_it_and_looks_at_the_target_by_itself() {
    let (old, new) = (restart("old", 10), restart("new", 20));
    let late = observed(&old, &[&old, &new], shop(&[&new], &json!({})));
    assert_eq!(reason_of(&late), waits("Queued"));
    let running: Vec<_> = late.running().map(|command| command.metadata.name.as_deref()).collect();
    assert_eq!(running, [Some("new")]);
    let found = observed(&new, &[&old, &new], shop(&[&new], &json!({})));
    assert_eq!(reason_of(&found), waits("Running"));
}

#[test]
fn a_start_that_somebody_else_reports_is_none() {
    let forged = json!({"status": {"startTime": "2026-01-01T11:11:00Z"}});
    let one = command(&kind("restarts", &json!({})), "one", 10, &forged);
    assert!(matches!(decide(&observed(&one, &[&one], shop(&[], &json!({})))), Action::Run(_)));
    let (old, forged) = (restart("old", 10), rollback("forged", 30, &forged));
    assert_eq!(reason_of(&observed(&old, &[&old, &forged], Look::None)), waits("Queued"));
    let Action::Report(status) = decide(&observed(&one, &[&one, &forged], shop(&[], &json!({})))) else {
        panic!("nothing is reported")
    };
    assert_eq!(status.start_time, None, "it goes");
}

#[test]
fn rules_wait_and_refuse_and_what_is_unclear_waits() {
    let one = restart("one", 10);
    let at = |spec: Value| observed(&one, &[&one], shop(&[], &json!({ "spec": spec })));
    assert_eq!(reason_of(&at(json!({"paused": true, "closed": true}))), waits("Paused"));
    assert_eq!(reason_of(&at(json!({"closed": true}))), fails("Closed"));
    assert_eq!(message_of(&at(json!({"closed": true}))), "the shop a is closed");
    assert_eq!(reason_of(&at(json!({"paused": "x"}))), waits("RuleFailed"));
    assert_eq!(reason_of(&at(json!({"closed": 1}))), waits("RuleFailed"));
    let unrenderable = json!({"patch": "spec: {at: {{ command.spec.missing }}}"});
    let two = command(&kind("restarts", &unrenderable), "two", 10, &json!({}));
    assert_eq!(reason_of(&observed(&two, &[&two], shop(&[], &json!({})))), waits("RuleFailed"));
}

#[test]
fn nothing_runs_while_commands_may_be_unknown_or_the_target_is_deleted() {
    let one = restart("one", 10);
    let unknown = Some("the watch of Drain has a problem".to_owned());
    let seen = Observed { unknown, ..observed(&one, &[&one], shop(&[], &json!({}))) };
    assert_eq!(reason_of(&seen), waits("CommandsNotObserved"));
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-01-01T11:59:00Z"}});
    assert_eq!(reason_of(&observed(&one, &[&one], shop(&[], &deleted))), waits("TargetTerminating"));
}

#[test]
fn only_what_is_bound_to_the_object_that_it_names_runs() {
    let unbound = json!({"metadata": {"ownerReferences": []}});
    let owner = |name: &str| {
        let owner = json!({"apiVersion": "apps.example/v1", "kind": "Shop", "name": name, "uid": "shop"});
        json!({"metadata": {"ownerReferences": [owner]}})
    };
    let with = |more: &Value| command(&kind("restarts", &json!({})), "one", 10, more);
    for (one, target, reason) in [
        (with(&unbound), Look::None, "NotBound"),
        (with(&owner("b")), Look::None, "NotTheTarget"),
        (with(&json!({"spec": {"namespace": "elsewhere"}})), Look::None, "NotTheTarget"),
        (
            with(&json!({"metadata": {"ownerReferences": []}, "spec": {"target": ""}})),
            Look::None,
            "InvalidReference",
        ),
        (with(&json!({})), Look::Gone, "TargetReplaced"),
        (with(&json!({})), Look::NotServed, "KindNotServed"),
        (with(&json!({})), Look::OtherScope, "ScopeMismatch"),
    ] {
        assert_eq!(reason_of(&observed(&one, &[&one], target)), waits(reason));
    }
    let odd = with(&json!({"spec": {"target": ""}}));
    assert_eq!(reason_of(&observed(&odd, &[&odd], Look::None)), fails("Malformed"));
    // Whoever creates a corrected one would repeat it, and a mistake of the settings can be corrected.
    let mut ran = started(11);
    merge(&mut ran, &json!({"spec": {"target": ""}}));
    assert_eq!(reason_of(&observed(&with(&ran), &[&with(&ran)], Look::None)), waits("InvalidReference"));
}

#[test]
fn that_a_new_command_is_not_bound_is_not_reported_at_once() {
    let new = json!({"metadata": {"ownerReferences": [], "creationTimestamp": "2026-01-01T11:59:57Z"}});
    let new = command(&kind("restarts", &json!({})), "one", 10, &new);
    assert_eq!(decide(&observed(&new, &[&new], Look::None)), Action::Wait(Duration::from_secs(7)));
}

#[test]
fn that_a_new_command_waits_for_an_older_one_is_not_reported_at_once() {
    let old = restart("old", 10);
    let queued = |created: &str| {
        let new = json!({"metadata": {"creationTimestamp": created}});
        let new = command(&kind("restarts", &json!({})), "new", 20, &new);
        decide(&observed(&new, &[&old, &new], shop(&[], &json!({}))))
    };
    assert_eq!(queued("2026-01-01T11:59:58Z"), Action::Wait(Duration::from_secs(1)));
    assert!(matches!(queued("2026-01-01T11:59:57Z"), Action::Report(_)));
}

#[test]
fn a_deadline_ends_what_has_not_succeeded_by_then_and_nothing_else() {
    let with = |more: &Value| {
        let mut object = json!({"spec": {"deadline": 60}});
        merge(&mut object, more);
        command(&kind("restarts", &json!({})), "one", 10, &object)
    };
    let waiting = with(&json!({}));
    assert_eq!(reason_of(&observed(&waiting, &[&waiting], shop(&[], &json!({})))), fails("DeadlineExceeded"));
    let unbound = with(&json!({"metadata": {"ownerReferences": []}}));
    assert_eq!(reason_of(&observed(&unbound, &[&unbound], Look::None)), fails("DeadlineExceeded"));
    let seen = |target: Value| observed(&waiting, &[&waiting], shop(&[&waiting], &target));
    assert_eq!(reason_of(&seen(json!({}))), fails("DeadlineExceeded"));
    assert!(message_of(&seen(json!({}))).contains("its effect remains"));
    assert_eq!(reason_of(&seen(json!({"status": {"ready": true}}))), ("Complete".into(), Some(true)));
    // It does not hold up the next one.
    let next = restart("next", 50);
    assert!(matches!(decide(&observed(&next, &[&waiting, &next], shop(&[], &json!({})))), Action::Run(_)));
}

#[test]
fn without_a_readable_deadline_nothing_runs_and_nobody_waits_for_it() {
    let odd = command(&kind("restarts", &json!({})), "odd", 10, &json!({"spec": {"deadline": "soon"}}));
    let seen = observed(&odd, &[&odd], shop(&[], &json!({})));
    assert_eq!(reason_of(&seen), waits("RuleFailed"));
    assert!(message_of(&seen).contains("run.deadline"), "{}", message_of(&seen));
    let next = restart("next", 50);
    assert!(matches!(decide(&observed(&next, &[&odd, &next], shop(&[], &json!({})))), Action::Run(_)));
    let after_an_hour = Observed { now: "2026-01-01T12:10:00Z".parse().unwrap(), ..seen };
    assert_eq!(reason_of(&after_an_hour), fails("DeadlineExceeded"));
}

#[test]
fn a_patch_whose_maps_an_author_makes_something_else_waits() {
    for (metadata, is_nothing) in [
        ("{{ command.spec.target }}", false),
        ("[a]", false),
        ("{annotations: {{ command.spec.target }}}", false),
        ("{annotations: [a]}", false),
        ("{labels: {{ command.spec.target }}}", false),
        ("{annotations: {catena.dev/commands: a}}", false),
        ("null", true),
        ("{annotations: null, labels: null}", true),
    ] {
        let patch = json!({"patch": format!("spec: {{a: b}}\nmetadata: {metadata}")});
        let one = command(&kind("restarts", &patch), "one", 10, &json!({}));
        let seen = observed(&one, &[&one], shop(&[], &json!({})));
        if is_nothing {
            let Action::Run(patch) = decide(&seen) else { panic!("{metadata}") };
            let annotations = patch["metadata"]["annotations"].as_object().unwrap();
            assert!(annotations.keys().eq([keys::COMMANDS]) && patch["metadata"]["labels"].is_null());
        } else {
            assert_eq!(reason_of(&seen), waits("RuleFailed"), "{metadata}");
        }
    }
}

#[test]
fn a_command_has_ended_or_started_if_either_of_its_records_says_so() {
    let condition = |status: &str, reason: &str| {
        json!({
            "type": "Succeeded", "status": status, "reason": reason, "message": "", "observedGeneration": 1,
            "lastTransitionTime": NOW,
        })
    };
    let queued = json!({"conditions": [condition("Unknown", "Queued")]});
    let running = json!({"startTime": NOW, "conditions": [condition("Unknown", "Running")]});
    let ended = json!({"startTime": NOW, "conditions": [condition("True", "Complete")]});
    let with = |record: &Value, status: &Value| {
        let mut more = annotated("one", record);
        more["status"] = status.clone();
        command(&kind("restarts", &json!({})), "one", 10, &more)
    };
    for (record, status, has_started, has_ended) in [
        (&queued, &ended, true, true),
        (&ended, &queued, true, true),
        (&queued, &running, true, false),
        (&running, &queued, true, false),
        (&queued, &queued, false, false),
        (&ended, &Value::Null, true, true),
    ] {
        let row = &with(record, status).row;
        assert_eq!((row.has_started(), row.has_ended()), (has_started, has_ended), "{record} {status}");
    }
}

#[test]
fn what_somebody_else_writes_into_a_status_hides_no_report() {
    let others = json!([
        "a text", {"type": "Audited", "status": "True"},
        {"type": "Ready", "status": "True", "lastTransitionTime": "9999-12-31T23:59:59Z"},
    ]);
    for (field, value) in [("progress", json!(5)), ("completionTime", json!("9999-12-31T23:59:59Z"))] {
        let mut done = ended();
        done["status"][field] = value;
        let conditions = done["status"]["conditions"].as_array_mut().unwrap();
        conditions[0].as_object_mut().unwrap().remove("lastTransitionTime");
        conditions.extend(others.as_array().unwrap().iter().cloned());
        let done = command(&kind("restarts", &json!({})), "one", 10, &done);
        assert!(done.row.has_started() && done.row.has_ended(), "{field}");
        assert_eq!(decide(&observed(&done, &[&done], shop(&[], &json!({})))), Action::Settle);
    }
}

#[test]
fn only_of_what_can_run_the_object_is_kept() {
    let with = |more: &Value| command(&kind("restarts", &json!({})), "one", 10, more);
    assert!(with(&json!({})).row.object.is_some());
    for more in [json!({"metadata": {"ownerReferences": []}}), ended()] {
        assert!(with(&more).row.object.is_none(), "{more}");
    }
}

#[test]
fn a_rule_without_a_value_hides_no_failure_that_another_one_finds() {
    let rules = json!([
        {"when": "target.status.error != ''", "reason": "Erred", "message": ""},
        {"when": "target.status.broken", "reason": "Broken", "message": "it is broken"},
    ]);
    let one = command(&kind("restarts", &json!({"failed": rules})), "one", 10, &started(11));
    let broken = shop(&[&one], &json!({"status": {"broken": true}}));
    assert_eq!(reason_of(&observed(&one, &[&one], broken)), fails("Broken"));
}

#[test]
fn what_has_a_status_is_reported_nowhere_else_for_lack_of_a_right() {
    let unread = StatusSchema { is_unread: true, ..StatusSchema::default() };
    let read = StatusSchema { takes_conditions: true, takes_run: true, is_unread: false };
    let new = restart("one", 10);
    let reported = command(&kind("restarts", &json!({})), "one", 10, &ended());
    assert_eq!((new.row.takes_status(unread), reported.row.takes_status(unread)), (Some(false), None));
    assert_eq!((new.row.takes_status(read), reported.row.takes_status(read)), (Some(true), Some(true)));
}

#[test]
fn a_refused_patch_is_reported_and_a_deferred_one_is_not_tried() {
    let one = restart("one", 10);
    let failure = Failure::transient("Forbidden", "no");
    let refused = Backoffs::default().and_step(RUN, failure.clone());
    let seen = Observed { backoffs: refused, ..observed(&one, &[&one], shop(&[], &json!({}))) };
    assert_eq!(reason_of(&seen), waits("Forbidden"));
    let deferred =
        Observed { backoffs: Backoffs::of_everything(failure), ..observed(&one, &[&one], Look::None) };
    assert_eq!(reason_of(&deferred), waits("Forbidden"));
}

#[test]
fn nothing_ends_by_its_deadline_while_its_target_cannot_be_read() {
    for more in [json!({}), started(11)] {
        let mut object = json!({"spec": {"deadline": 60}});
        merge(&mut object, &more);
        let one = command(&kind("restarts", &json!({})), "one", 10, &object);
        let unread = Backoffs::of_everything(Failure::transient("TimedOut", "no answer"));
        let seen = Observed { backoffs: unread, ..observed(&one, &[&one], Look::None) };
        assert_eq!(reason_of(&seen), waits("TimedOut"));
        assert_eq!(reason_of(&observed(&one, &[&one], Look::None)), fails("DeadlineExceeded"));
    }
}

#[test]
fn a_command_that_waits_looks_again_within_a_minute_because_one_before_it_may_leave_without_an_end() {
    let (first, next) = (restart("first", 10), restart("next", 20));
    let seen = observed(&next, &[&first, &next], Look::None);
    let Action::Report(status) = decide(&seen) else { panic!("no report") };
    let next = command(&kind("restarts", &json!({})), "next", 20, &json!({ "status": status }));
    assert_eq!(decide(&observed(&next, &[&first, &next], Look::None)), Action::Wait(LOOK_INTERVAL));
}

#[test]
fn what_may_pass_unnoticed_is_looked_at_again_soon() {
    let one = restart("one", 10);
    let unknown = Some("the watch of Drain has a problem".to_owned());
    let blind = Observed { unknown, ..observed(&one, &[&one], shop(&[], &json!({}))) };
    let at = |look: Look| observed(&one, &[&one], look);
    for (reason, seen) in [
        ("CommandsNotObserved", blind),
        ("KindNotServed", at(Look::NotServed)),
        ("ScopeMismatch", at(Look::OtherScope)),
    ] {
        let Action::Report(status) = decide(&seen) else { panic!("{reason} is not reported") };
        assert_eq!(status.conditions[0].reason, reason);
        let told = command(&kind("restarts", &json!({})), "one", 10, &json!({ "status": status }));
        assert_eq!(decide(&Observed { command: told, ..seen }), Action::Wait(RETRY_INTERVAL), "{reason}");
    }
    let later = |seconds| decide(&at(Look::Later(Duration::from_secs(seconds))));
    assert_eq!([later(1), later(60)], [1, 5].map(|seconds| Action::Wait(Duration::from_secs(seconds))));
}

#[test]
fn those_that_concern_others_never_wake_each_other() {
    let deadline = json!({"spec": {"deadline": 60}});
    let expired = |name: &str| command(&kind("restarts", &json!({})), name, 10, &deadline);
    let (one, other, next) = (expired("one"), expired("other"), restart("next", 20));
    let (older, newer) = (rollback("older", 30, &started(31)), rollback("newer", 40, &started(41)));
    let line = [&one, &other, &next, &older, &newer].map(Arc::clone);
    let woken_by = |by: &Arc<Command>| -> Vec<_> {
        let woken = concerned(&line, Some(by), NOW.parse().unwrap());
        woken.map(|command| command.metadata.name.as_deref().unwrap().to_owned()).collect()
    };
    assert!(observed(&one, &[&one, &next], Look::None).concerns_others());
    assert!(woken_by(&one).is_empty(), "{:?}", woken_by(&one));
    assert_eq!(woken_by(&older), ["one", "other", "next"]);
    assert_eq!(woken_by(&newer), ["one", "other", "next", "older"]);
    let line = [&one, &next].map(Arc::clone);
    assert!(is_same(concerned(&line, Some(&one), NOW.parse().unwrap()).next().unwrap(), &next));
}

#[test]
fn that_it_ran_is_told_also_by_an_end_before_the_first_report() {
    let one = restart("one", 10);
    let newer = rollback("newer", 30, &json!({}));
    for (ran, target) in [(vec![&one], json!({"status": {"broken": true}})), (vec![&one, &newer], json!({}))]
    {
        let Action::Report(status) = decide(&observed(&one, &[&one], shop(&ran, &target))) else {
            panic!("no report")
        };
        assert!(status.start_time.is_some() && status.completion_time.is_some(), "{status:?}");
    }
}

#[test]
fn mere_progress_is_written_every_few_seconds() {
    let one = restart("one", 10);
    let first = observed(&one, &[&one], shop(&[&one], &json!({})));
    let Action::Report(status) = decide(&first) else { panic!("nothing is reported") };
    assert_eq!(status.progress.as_deref(), Some("1/2"));
    assert!(status.start_time.is_some() && Conditions::is_true(&status.conditions, "Reconciling"));
    let one = command(&kind("restarts", &json!({})), "one", 10, &json!({ "status": status }));
    let more = shop(&[&one], &json!({"status": {"done": 2}}));
    let since = |seconds| Observed {
        since_told: Some(Duration::from_secs(seconds)),
        ..observed(&one, &[&one], more.clone())
    };
    assert_eq!(decide(&since(2)), Action::Wait(Duration::from_secs(3)));
    assert!(matches!(decide(&since(5)), Action::Report(_)));
    let same = observed(&one, &[&one], shop(&[&one], &json!({})));
    assert_eq!(decide(&same), Action::Wait(LOOK_INTERVAL));
}

#[test]
fn what_a_command_waits_for_is_told_at_once_and_a_number_in_it_every_few_seconds() {
    let rule = json!({
        "when": "target.status.done < 9", "reason": "Filling",
        "messageExpression": "string(target.status.done) + ' are there'",
    });
    let filling = kind("restarts", &json!({"wait": [rule]}));
    let waiting = |status: &Value, done: u32, seconds: u64| {
        let one = command(&filling, "one", 10, &json!({ "status": status }));
        let shop = shop(&[], &json!({"status": {"done": done}}));
        let since_told = Some(Duration::from_secs(seconds));
        decide(&Observed { since_told, ..observed(&one, &[&one], shop) })
    };
    let Action::Report(told) = waiting(&json!({}), 1, 0) else { panic!("nothing is reported") };
    let told = serde_json::to_value(told).unwrap();
    assert_eq!(waiting(&told, 2, 2), Action::Wait(Duration::from_secs(3)));
    let Action::Report(more) = waiting(&told, 2, 5) else { panic!("nothing is reported") };
    assert!(more.conditions[0].message.starts_with("2 are there"), "{more:?}");
}

#[test]
fn only_the_newest_of_many_that_supersede_others_are_judged_for_each_change() {
    let rollbacks = kind("rollbacks", &json!({"supersedes": true}));
    let line: Vec<_> =
        (10..60).map(|minute| command(&rollbacks, &format!("c{minute}"), minute, &json!({}))).collect();
    let judged: Vec<_> =
        concerned(&line, None, NOW.parse().unwrap()).map(|one| one.metadata.name.clone().unwrap()).collect();
    assert_eq!(judged.len(), 9, "{judged:?}");
    assert!(judged.contains(&"c10".to_owned()) && judged.contains(&"c59".to_owned()), "{judged:?}");
}

#[test]
fn a_command_that_ran_and_lost_its_owner_is_not_told_that_it_is_still_to_run() {
    let lost =
        command(&kind("restarts", &json!({})), "one", 10, &json!({"metadata": {"ownerReferences": []}}));
    let told = |was_proven: bool| {
        let observed = Observed { was_proven, ..observed(&lost, &[&lost], Look::None) };
        judge(&observed).unwrap_err().message
    };
    assert!(told(false).starts_with("it is carried out once"), "{}", told(false));
    assert!(told(true).starts_with("it was carried out, and has lost its owner"), "{}", told(true));
}

#[test]
fn a_success_tells_how_far_it_came() {
    let told = json!({"status": {"progress": "0/2"}});
    let one = command(&kind("restarts", &json!({})), "one", 10, &told);
    let ready = shop(&[&one], &json!({"status": {"ready": true, "done": 2}}));
    let Action::Report(status) = decide(&observed(&one, &[&one], ready)) else { panic!("no report") };
    assert_eq!(status.progress.as_deref(), Some("2/2"));
}

#[test]
fn an_end_is_final_and_consistent_for_people_and_tools() {
    let one = restart("one", 10);
    let ready = shop(&[&one], &json!({"status": {"ready": true}}));
    let Action::Report(status) = decide(&observed(&one, &[&one], ready)) else { panic!("no report") };
    let types: Vec<_> = status.conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())).collect();
    assert_eq!(types, [("Succeeded", "True"), ("Reconciling", "False")]);
    assert!(status.completion_time.is_some() && status.start_time.is_some());
    let closed = shop(&[], &json!({"spec": {"closed": true}}));
    let Action::Report(status) = decide(&observed(&one, &[&one], closed)) else { panic!("no report") };
    let types: Vec<_> = status.conditions.iter().map(|c| (c.type_.as_str(), c.status.as_str())).collect();
    assert_eq!(types, [("Succeeded", "False"), ("Reconciling", "False"), ("Stalled", "True")]);
    assert!(status.completion_time.is_some() && status.start_time.is_none());
}

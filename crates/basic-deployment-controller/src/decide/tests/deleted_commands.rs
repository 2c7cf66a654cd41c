//! Commands that were deleted, and that a finalizer holds.

use catena_api::command::{ACCEPTED, SUCCEEDED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    queue::{carry_out, restart, with},
    *,
};
use crate::command::Leaving;

/// A command that was deleted at the age of a second, and is observed so many seconds later.
fn after(seconds: i64, changes: Value, is_carried_out: bool) -> Observed {
    let mut command = restart("u", 0, changes);
    let since = command.created + jiff::SignedDuration::from_secs(1);
    let finalizers = vec!["example.com/hold".to_owned()];
    Arc::make_mut(&mut command).deletion = Some(Leaving { since: Time(since), finalizers });
    let mut observed =
        with(json!({"spec": {"restartedAt": command.token()}}), std::slice::from_ref(&command));
    if is_carried_out {
        carry_out(&mut observed, &command);
    }
    observed.now = since + jiff::SignedDuration::from_secs(seconds);
    let reported = status(&observed);
    Arc::make_mut(&mut observed.deployment).status = Some(reported);
    observed
}

#[test]
fn a_deleted_command_that_a_finalizer_holds_is_told_so() {
    let says = |is_carried_out: bool| {
        let action = decide(&after(3, json!({}), is_carried_out));
        let Action::Tell(news) = action else { panic!("{action:?}") };
        let find = |type_: &str| Conditions::find(&news[0].1.conditions, type_).unwrap().clone();
        let succeeded = find(SUCCEEDED);
        assert_eq!((succeeded.status.as_str(), succeeded.reason.as_str()), ("Unknown", "Terminating"));
        assert_eq!(news[0].1.completion_time, None);
        (find(ACCEPTED).status, succeeded.message)
    };
    let held =
        "is being deleted, and waits for the controller of the finalizer \"example.com/hold\" to remove it";
    assert_eq!(says(false), ("False".into(), format!("{held}; it is not carried out")));
    let expected = format!("{held}; it was carried out, and its effect remains");
    assert_eq!(says(true), ("True".into(), expected.clone()));

    // The record of it on its target is gone.
    let overtaken = after(3, json!({"status": {"startTime": "2026-01-02T00:00:00Z"}}), false);
    let Action::Tell(news) = decide(&overtaken) else { panic!() };
    let told = Conditions::find(&news[0].1.conditions, SUCCEEDED).unwrap();
    assert_eq!(told.message, expected);
}

#[test]
fn a_deleted_command_that_was_carried_out_keeps_the_time_of_that() {
    let Action::Tell(news) = decide(&after(3, json!({}), true)) else { panic!() };
    assert!(news[0].1.start_time.is_some());
}

#[test]
fn a_deletion_that_may_end_in_a_moment_is_not_told_yet() {
    assert_eq!(decide(&after(1, json!({}), false)), Action::Wait(Duration::from_secs(1)));
}

#[test]
fn a_deleted_command_that_has_ended_keeps_its_outcome() {
    let ended = json!([{
        "type": SUCCEEDED, "status": "True", "reason": "Complete", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let ended = json!({"status": {"conditions": ended}});
    assert_eq!(decide(&after(3, ended, false)), Action::Settle);
}

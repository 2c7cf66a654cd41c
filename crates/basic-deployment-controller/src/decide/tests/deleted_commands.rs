//! Commands that were deleted, and that a finalizer holds.

use catena_api::command::{ACCEPTED, SUCCEEDED};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    queue::{restart, with},
    *,
};
use crate::command::Leaving;

/// A command that was deleted at the age of a second, and is observed so many seconds later.
fn after(seconds: i64, changes: Value, child: Value) -> Observed {
    let mut command = restart("u", 0, changes);
    let since = command.created + jiff::SignedDuration::from_secs(1);
    let finalizers = vec!["example.com/hold".to_owned()];
    Arc::make_mut(&mut command).deletion = Some(Leaving { since: Time(since), finalizers });
    let mut observed = with(child, &[command]);
    observed.now = since + jiff::SignedDuration::from_secs(seconds);
    let reported = status(&observed);
    Arc::make_mut(&mut observed.deployment).status = Some(reported);
    observed
}

#[test]
fn a_deleted_command_that_a_finalizer_holds_is_told_so() {
    let says = |child: Value| {
        let action = decide(&after(3, json!({}), child));
        let Action::Tell(news) = action else { panic!("{action:?}") };
        let find = |type_: &str| conditions::find(&news[0].1.conditions, type_).unwrap().clone();
        let succeeded = find(SUCCEEDED);
        assert_eq!((succeeded.status.as_str(), succeeded.reason.as_str()), ("Unknown", "Terminating"));
        assert_eq!(news[0].1.completion_time, None);
        (find(ACCEPTED).status, succeeded.message)
    };
    let held =
        "is being deleted, and waits for the controller of the finalizer \"example.com/hold\" to remove it";
    assert_eq!(says(json!({})), ("False".into(), format!("{held}; it is not carried out")));
    let carried_out = json!({"metadata": {"annotations": {keys::LAST_COMMAND: "u"}}});
    let expected = format!("{held}; it was carried out, and its effect remains");
    assert_eq!(says(carried_out), ("True".into(), expected.clone()));

    // The next command has replaced its mark on the child.
    let overtaken = after(3, json!({"status": {"startTime": "2026-01-02T00:00:00Z"}}), json!({}));
    let Action::Tell(news) = decide(&overtaken) else { panic!() };
    let told = conditions::find(&news[0].1.conditions, SUCCEEDED).unwrap();
    assert_eq!(told.message, expected);
}

#[test]
fn a_deleted_command_that_was_carried_out_keeps_the_time_of_that() {
    let carried_out = json!({"metadata": {"annotations": {keys::LAST_COMMAND: "u"}}});
    let Action::Tell(news) = decide(&after(3, json!({}), carried_out)) else { panic!() };
    assert!(news[0].1.start_time.is_some());
}

#[test]
fn a_deletion_that_may_end_in_a_moment_is_not_told_yet() {
    assert_eq!(decide(&after(1, json!({}), json!({}))), Action::Wait(Duration::from_secs(1)));
}

#[test]
fn a_deleted_command_that_has_ended_keeps_its_outcome() {
    let ended = json!([{
        "type": SUCCEEDED, "status": "True", "reason": "Complete", "message": "", "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let ended = json!({"status": {"conditions": ended}});
    assert_eq!(decide(&after(3, ended, json!({}))), Action::Settle);
}

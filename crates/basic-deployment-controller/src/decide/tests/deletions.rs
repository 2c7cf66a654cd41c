//! The commands of a `BasicDeployment` that is being deleted.

use catena_api::deletion::TERMINATING;
use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{
    queue::{outcome, restart, restarted, running, told, with},
    *,
};

/// The same while the `BasicDeployment` waits for a finalizer, and its own status is written.
fn held(mut observed: Observed) -> Observed {
    let metadata = &mut Arc::make_mut(&mut observed.deployment).metadata;
    metadata.deletion_timestamp = Some(Time(observed.now - SignedDuration::from_secs(5)));
    metadata.finalizers = Some(vec!["a.dev/hold".into()]);
    let status = status(&observed);
    Arc::make_mut(&mut observed.deployment).status = Some(status);
    observed
}

#[test]
fn a_restart_under_way_is_reported_to_its_end_and_no_other_begins() {
    let commands = [restart("a", 10, json!({})), restart("b", 20, json!({}))];
    for (updated, wanted) in [(1, outcome("Unknown", "Running")), (3, outcome("True", "Complete"))] {
        let child = restarted(json!({"status": {"updated": updated}}));
        let action = decide(&held(running(child, &commands)));
        assert_eq!(told(action.clone(), "a"), wanted);
        assert_eq!(told(action, "b"), outcome("Unknown", TERMINATING), "it never gets its turn");
    }
    let waiting = held(with(json!({}), &commands[1..]));
    assert_eq!(told(decide(&waiting), "b"), outcome("Unknown", TERMINATING));
}

#[test]
fn what_was_carried_out_on_a_child_that_goes_says_so() {
    let begun = [restart("a", 10, json!({"status": {"startTime": "1970-01-01T00:00:11Z"}}))];
    let leaving = json!({"metadata": {"deletionTimestamp": "1970-01-12T00:00:00Z"}});
    let mut without = running(json!({}), &begun);
    without.child = Found::Nothing;
    for observed in [with(restarted(leaving), &begun), without] {
        let Action::Tell(news) = decide(&held(observed)) else { panic!() };
        let succeeded = Conditions::find(&news[0].1.conditions, "Succeeded").unwrap();
        assert!(succeeded.message.contains("it was carried out"), "{}", succeeded.message);
    }
}

#[test]
fn its_commands_still_reach_their_deadlines() {
    let soon = restart("a", 999_990, json!({"spec": {"activeDeadlineSeconds": 30}}));
    let mut observed = held(with(json!({}), std::slice::from_ref(&soon)));
    let Action::Tell(news) = decide(&observed) else { panic!() };
    let mut waiting = Command::clone(&soon);
    waiting.status = news[0].1.clone();
    observed.commands = Some(vec![Arc::new(waiting)]);
    assert_eq!(decide(&observed), Action::Wait(Duration::from_secs(20)));
    observed.now += SignedDuration::from_secs(20);
    assert_eq!(told(decide(&observed), "a"), outcome("False", "DeadlineExceeded"));
}

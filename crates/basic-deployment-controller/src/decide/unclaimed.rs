//! Decides when a command on which no `BasicDeployment` reports gets a status: when its deadline has passed, or when it was
//! deleted and a finalizer keeps it.

use std::time::Duration;

use jiff::Timestamp;

use crate::{command::Command, command_status};

/// Time that a `BasicDeployment` may take to end a command of its own.
const CLAIM_TOLERANCE: Duration = Duration::from_secs(60);

/// The time until a status of a command is written here, by a process that has been active for this long; `None` if none is.
///
/// A bound command may have been carried out while no process was active, so its `BasicDeployment` reports first.
#[must_use]
pub fn due_in(command: &Command, now: Timestamp, acting: Duration) -> Option<Duration> {
    if command.has_ended() {
        return None;
    }
    if let Some(deletion) = command.deletion() {
        let is_told = || command_status::unclaimed_leaving(command, now) == command.status;
        // On one that is bound, its BasicDeployment reports.
        return (command.owner.is_none() && !is_told()).then(|| deletion.due_in(now).unwrap_or_default());
    }
    let deadline = command.asks.as_ref().ok()?.deadline?;
    let age = command.age(now);
    Some(match &command.owner {
        Some(_) => {
            (deadline + CLAIM_TOLERANCE).saturating_sub(age).max(CLAIM_TOLERANCE.saturating_sub(acting))
        }
        None => deadline.saturating_sub(age),
    })
}

#[cfg(test)]
mod tests {
    use catena_api::{
        CommandStatus,
        command::{ACCEPTED, SUCCEEDED},
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use operator_kit::report::Conditions;
    use serde_json::{Value, json};

    use super::*;
    use crate::command::{CommandKind, Leaving};

    fn command(owners: &Value, deadline: Option<i32>, conditions: &Value) -> Command {
        let object = json!({
            "metadata": {
                "name": "again", "namespace": "shop", "uid": "u", "generation": 1,
                "creationTimestamp": "1970-01-01T00:01:00Z", "ownerReferences": owners,
            },
            "spec": {"targetRef": {"name": "web"}, "activeDeadlineSeconds": deadline},
            "status": {"conditions": conditions},
        });
        Command::of(serde_json::from_value(object).unwrap(), CommandKind::Restart)
    }

    /// Long enough for each `BasicDeployment` to have had its passes.
    const LONG: Duration = CLAIM_TOLERANCE;

    fn owner() -> Value {
        json!([{"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": "web"}])
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_nobody_has_bound_is_ended_at_its_deadline_and_what_is_bound_a_minute_later() {
        let unbound = command(&json!([]), Some(10), &json!([]));
        assert_eq!(due_in(&unbound, at(65), LONG), Some(Duration::from_secs(5)));
        assert_eq!(due_in(&unbound, at(70), LONG), Some(Duration::ZERO));
        let bound = command(&owner(), Some(10), &json!([]));
        assert_eq!(due_in(&bound, at(70), LONG), Some(CLAIM_TOLERANCE));
        assert_eq!(due_in(&bound, at(1000), LONG), Some(Duration::ZERO));
    }

    #[test]
    fn what_has_ended_or_has_no_deadline_is_left() {
        let ended = json!([{
            "type": "Succeeded", "status": "True", "reason": "Complete", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        }]);
        assert_eq!(due_in(&command(&json!([]), Some(1), &ended), at(1000), LONG), None);
        assert_eq!(due_in(&command(&json!([]), None, &json!([])), at(1000), LONG), None);
    }

    #[test]
    fn a_process_that_has_just_begun_to_act_leaves_what_is_bound_to_its_owner_for_a_minute() {
        let late = at(100_000);
        let bound = command(&owner(), Some(10), &json!([]));
        assert_eq!(due_in(&bound, late, Duration::ZERO), Some(CLAIM_TOLERANCE));
        assert_eq!(due_in(&bound, late, Duration::from_secs(45)), Some(Duration::from_secs(15)));
        assert_eq!(due_in(&bound, late, CLAIM_TOLERANCE), Some(Duration::ZERO));
        let unbound = command(&json!([]), Some(10), &json!([]));
        assert_eq!(due_in(&unbound, late, Duration::ZERO), Some(Duration::ZERO));
    }

    #[test]
    fn what_was_deleted_unbound_and_is_kept_says_so_once() {
        let deleted = |mut command: Command| {
            command.deletion = Some(Leaving { since: Time(at(100)), finalizers: vec!["a.example/x".into()] });
            command
        };
        let mut unbound = deleted(command(&json!([]), Some(1), &json!([])));
        assert_eq!(due_in(&unbound, at(101), LONG), Some(Duration::from_secs(1)));
        assert_eq!(due_in(&unbound, at(102), LONG), Some(Duration::ZERO));
        unbound.status = command_status::unclaimed_leaving(&unbound, at(102));
        assert!(message(&unbound.status).contains("a.example/x"), "{}", message(&unbound.status));
        assert!(message(&unbound.status).ends_with("it is not carried out"));
        assert!(Conditions::is_false(&unbound.status.conditions, ACCEPTED) && !unbound.has_ended());
        assert_eq!(due_in(&unbound, at(200), LONG), None, "it is told");
        unbound.deletion = Some(Leaving { since: Time(at(100)), finalizers: vec!["a.example/y".into()] });
        assert_eq!(due_in(&unbound, at(200), LONG), Some(Duration::ZERO), "it waits for another one");
        let bound = deleted(command(&owner(), Some(1), &json!([])));
        assert_eq!(due_in(&bound, at(200), LONG), None, "its BasicDeployment reports");
    }

    fn message(status: &CommandStatus) -> &str {
        &Conditions::find(&status.conditions, SUCCEEDED).unwrap().message
    }

    #[test]
    fn it_says_that_it_was_never_taken() {
        let status = command_status::unclaimed(&command(&json!([]), Some(1), &json!([])), at(100));
        assert!(Conditions::is_false(&status.conditions, SUCCEEDED));
        assert!(Conditions::is_false(&status.conditions, ACCEPTED));
        assert!(status.completion_time.is_some() && status.start_time.is_none());
        assert!(message(&status).contains("see the condition Bound"));
    }

    #[test]
    fn of_what_is_bound_it_names_the_owner() {
        let status = command_status::unclaimed(&command(&owner(), Some(1), &json!([])), at(100));
        assert!(Conditions::is_false(&status.conditions, ACCEPTED));
        assert!(message(&status).contains("BasicDeployment \"web\""), "{}", message(&status));
        assert!(!message(&status).contains("Bound"));
    }

    #[test]
    fn what_was_accepted_and_waited_stays_accepted() {
        let accepted = json!([{
            "type": "Accepted", "status": "True", "reason": "Accepted", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        }]);
        let status = command_status::unclaimed(&command(&owner(), Some(1), &accepted), at(100));
        assert!(Conditions::is_true(&status.conditions, ACCEPTED));
        assert!(Conditions::is_false(&status.conditions, SUCCEEDED));
    }

    #[test]
    fn what_had_begun_stays_accepted_and_done() {
        let mut begun = command(&owner(), Some(1), &json!([]));
        begun.status.start_time = Some(Time(at(61)));
        let status = command_status::unclaimed(&begun, at(100));
        assert!(Conditions::is_false(&status.conditions, SUCCEEDED));
        assert!(Conditions::is_true(&status.conditions, ACCEPTED));
        assert_eq!(status.start_time, begun.status.start_time);
        assert!(message(&status).contains("its effect remains"), "{}", message(&status));
    }
}

//! Ends commands whose time is over and of which no `BasicDeployment` says so: those that nobody has bound.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt::Display,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_kit::{watch::Seen, write::Writer};
use tokio::time::{sleep, timeout};

use crate::{
    command::{Command, REPORTED},
    command_status,
    commands::Commands,
    error::Error,
    observe::Place,
};

/// How long a `BasicDeployment` may take to end a command of its own.
const GRACE: Duration = Duration::from_secs(60);
/// Changes of commands are gathered for so long before all are looked at again.
const TOGETHER: Duration = Duration::from_secs(1);
/// When a command is tried again of which the status could not be written, or does not come back.
const AGAIN: Duration = Duration::from_secs(60);
/// How long ending one may take; nothing else bounds a request that hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often all are looked at when nothing happens.
const SELDOM: Duration = Duration::from_secs(600);

/// The commands that nobody else ends.
pub struct Deadlines {
    commands: Arc<Commands>,
    writer: Writer,
    /// When those were ended, or tried to, which are still shown as open; by uid.
    tried: HashMap<String, Instant>,
    /// Since when this process acts.
    began: Instant,
}

impl Deadlines {
    pub fn new(commands: Arc<Commands>, writer: Writer) -> Self {
        Self { commands, writer, tried: HashMap::new(), began: Instant::now() }
    }

    /// Ends each when its time is over.
    pub async fn keep(mut self) -> Infallible {
        self.began = Instant::now();
        loop {
            let next = self.pass().await;
            tokio::select! {
                () = sleep(next.max(TOGETHER)) => {}
                () = self.commands.changed() => sleep(TOGETHER).await,
            }
        }
    }

    /// Ends those whose time is over, and gives when the next one's will be.
    async fn pass(&mut self) -> Duration {
        let (now, acting) = (Timestamp::now(), self.began.elapsed());
        let open = self.commands.find(|command| due_in(command, now, acting).is_some());
        self.tried.retain(|uid, _| open.iter().any(|command| command.uid == *uid));
        let mut next = SELDOM;
        for command in open {
            let tried = self.tried.get(&command.uid).map(|tried| AGAIN.saturating_sub(tried.elapsed()));
            let due = due_in(&command, now, acting).unwrap_or(SELDOM).max(tried.unwrap_or_default());
            if !due.is_zero() {
                next = next.min(due);
                continue;
            }
            match timeout(PATIENCE, self.end(&command, now)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn(&command, &error),
                Err(elapsed) => warn(&command, &elapsed),
            }
            self.tried.insert(command.uid.clone(), Instant::now());
            next = next.min(AGAIN);
        }
        next
    }

    async fn end(&self, command: &Command, now: Timestamp) -> Result<(), Error> {
        if !self.commands.still_waits(command).await? {
            return Ok(());
        }
        let Place { resource, .. } = self.commands.place(command.kind);
        let metadata = ObjectMeta {
            name: Some(command.name.clone()),
            namespace: Some(command.namespace.clone()),
            uid: Some(command.uid.clone()),
            ..ObjectMeta::default()
        };
        let status = command_status::unclaimed(command, now);
        // No pass waits for it.
        let seen = Seen::unwatched();
        Ok(self
            .writer
            .write_status_for(&command.uid, &seen, &resource, &metadata, &status, &REPORTED)
            .await?)
    }
}

fn warn(command: &Command, why: &dyn Display) {
    tracing::warn!(
        namespace = command.namespace,
        name = command.name,
        "its deadline could not be told: {why}"
    );
}

/// When a command is to be ended here, by a process that has been acting for so long; `None` when it is not.
///
/// What is bound may have been carried out while no process acted: its `BasicDeployment` is to say so first.
fn due_in(command: &Command, now: Timestamp, acting: Duration) -> Option<Duration> {
    if command.has_ended() || command.is_deleting {
        return None;
    }
    let deadline = command.asks.as_ref().ok()?.deadline?;
    let age = command.age(now);
    Some(match &command.owner {
        Some(_) => (deadline + GRACE).saturating_sub(age).max(GRACE.saturating_sub(acting)),
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
    use operator_kit::report::conditions;
    use serde_json::{Value, json};

    use super::*;
    use crate::command::CommandKind;

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
    const LONG: Duration = GRACE;

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
        assert_eq!(due_in(&bound, at(70), LONG), Some(GRACE));
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
        assert_eq!(due_in(&bound, late, Duration::ZERO), Some(GRACE));
        assert_eq!(due_in(&bound, late, Duration::from_secs(45)), Some(Duration::from_secs(15)));
        assert_eq!(due_in(&bound, late, GRACE), Some(Duration::ZERO));
        let unbound = command(&json!([]), Some(10), &json!([]));
        assert_eq!(due_in(&unbound, late, Duration::ZERO), Some(Duration::ZERO));
    }

    fn message(status: &CommandStatus) -> &str {
        &conditions::find(&status.conditions, SUCCEEDED).unwrap().message
    }

    #[test]
    fn it_says_that_it_was_never_taken() {
        let status = command_status::unclaimed(&command(&json!([]), Some(1), &json!([])), at(100));
        assert!(conditions::is_false(&status.conditions, SUCCEEDED));
        assert!(conditions::is_false(&status.conditions, ACCEPTED));
        assert!(status.completion_time.is_some() && status.start_time.is_none());
        assert!(message(&status).contains("see the condition Bound"));
    }

    #[test]
    fn of_what_is_bound_it_names_the_owner() {
        let status = command_status::unclaimed(&command(&owner(), Some(1), &json!([])), at(100));
        assert!(conditions::is_false(&status.conditions, ACCEPTED));
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
        assert!(conditions::is_true(&status.conditions, ACCEPTED));
        assert!(conditions::is_false(&status.conditions, SUCCEEDED));
    }

    #[test]
    fn what_had_begun_stays_accepted_and_done() {
        let mut begun = command(&owner(), Some(1), &json!([]));
        begun.status.start_time = Some(Time(at(61)));
        let status = command_status::unclaimed(&begun, at(100));
        assert!(conditions::is_false(&status.conditions, SUCCEEDED));
        assert!(conditions::is_true(&status.conditions, ACCEPTED));
        assert_eq!(status.start_time, begun.status.start_time);
        assert!(message(&status).contains("what it has done stays done"), "{}", message(&status));
    }
}

//! A pass over a command:
//!
//! 1. [`Observer`] finds the other commands of its target. If it may be its turn, or it ran, it reads the target live.
//! 2. [`decide`] chooses one step: running it by one patch of its target that proves it, reporting on it, or waiting.
//! 3. [`Executor`] takes it; right before the command runs, [`Observer`] reads it live. The end of a command wakes the next one.

use std::{sync::Arc, time::Duration};

use command_runner::{
    command::Command,
    decide::{Action, decide},
    observed::Observed,
};
use operator_kit::{run::Backoffs, run::Controller, run::Requeue};
use operator_watch::ApiError;

use crate::{act::Executor, memory::Memory, observe::Observer};

/// Time until another try after a live read that showed another command than the cache.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(1);

/// The controller of commands.
pub struct Commands {
    /// The only reader.
    pub observer: Observer,
    /// The only writer.
    pub executor: Executor,
    /// What both remember.
    pub memory: Memory,
}

impl Controller for Commands {
    type Kind = Command;
    type Observed = Observed;
    type Action = Action;
    type Error = ApiError;

    /// What refuses a step may be fixed unnoticed; with the jitter, this is less than 15 s.
    const LONGEST_BACKOFF: Duration = Duration::from_secs(12);

    async fn observe(&self, command: Arc<Command>, backoffs: Backoffs) -> Result<Observed, ApiError> {
        self.observer.observe(command, backoffs).await
    }

    fn decide(&self, observed: &Observed) -> Action {
        decide(observed)
    }

    fn step(&self, action: &Action) -> &'static str {
        action.step()
    }

    async fn act(&self, observed: Observed, action: Action) -> Result<Requeue, ApiError> {
        if matches!(action, Action::Run(_)) {
            let command = &observed.command;
            let still_waits = self.observer.still_waits(command).await;
            if !still_waits.inspect_err(|error| self.memory.tried(command, Some(error)))? {
                return Ok(Requeue::Untried(CATCH_UP_INTERVAL));
            }
        }
        self.executor.act(&observed, action).await
    }

    fn forget(&self, uid: &str) {
        self.memory.gone(uid);
    }
}

#[cfg(test)]
mod tests {
    use operator_kit::{
        report::Events,
        run::Triggers,
        testing::{Answer, Sent, answering, refused},
        write::Writer,
    };
    use operator_watch::Discovery;
    use serde_json::json;

    use super::*;
    use crate::fixtures::{command, kind, observed, shop};

    /// The requests of a step that runs a command, which the API server has like this, and whether it counts as refused and has succeeded.
    async fn run(live: Answer) -> (Vec<Sent>, bool, bool) {
        let (client, log) = answering(move |sent| match &*sent.verb {
            "GET" => live.clone(),
            _ => Answer::Done,
        });
        let memory = Memory::new(Triggers::default(), || None);
        let executor = Executor::new(
            Writer::over(client.clone(), "runner"),
            Events::over(client.clone(), "runner"),
            memory.clone(),
        );
        let observer = Observer::new(client.clone(), Discovery::new(client), memory.clone());
        let one = command(&kind("restarts", &json!({})), "one", 10, &json!({}));
        memory.came(&one.kind_id, "one", one.row.target_id());
        let seen = observed(&one, &[&one], shop(&[], &json!({})));
        let action = decide(&seen);
        assert!(matches!(action, Action::Run(_)));
        let acted = Commands { observer, executor, memory: memory.clone() }.act(seen, action).await;
        (log.take(), memory.refused(&[one]).contains("one"), acted.is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn the_target_is_patched_only_if_the_command_still_waits_on_the_api_server() {
        let owner = json!({"apiVersion": "apps.example/v1", "kind": "Shop", "name": "a", "uid": "shop"});
        let metadata = json!({"name": "one", "uid": "one", "generation": 1, "ownerReferences": [owner]});
        let mut live = json!({"metadata": metadata, "spec": {"target": "a"}});
        live["metadata"]["namespace"] = json!("here");
        let verbs = async |live| {
            let (sent, _, is_ok) = run(live).await;
            assert!(is_ok);
            sent.into_iter().map(|sent| sent.verb).collect::<Vec<_>>()
        };
        assert_eq!(verbs(Answer::Object(live.clone())).await, ["GET", "MERGE"]);
        live["metadata"]["uid"] = json!("another");
        assert_eq!(verbs(Answer::Object(live)).await, ["GET"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_may_not_be_read_counts_as_refused() {
        for (code, is_refused) in [(403, true), (500, false)] {
            assert_eq!(run(refused(code)).await.1, is_refused);
        }
    }
}

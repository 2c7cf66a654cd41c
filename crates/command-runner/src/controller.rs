//! A pass over a command:
//!
//! 1. [`Observer`] finds the other commands of its target. If it may be its turn, or it ran, it reads the target live.
//! 2. [`decide`] chooses one step: running it by one patch of its target that proves it, reporting on it, or waiting.
//! 3. [`Executor`] takes it; right before the command would run, [`Observer`] reads it live, and [`decide`] decides on that. The end of
//!    a command wakes the next one.

use std::{sync::Arc, time::Duration};

use command_runner::{
    command::Command,
    decide::{Action, decide},
    observed::Observed,
};
use operator_kit::{run::Backoffs, run::Controller, run::Requeue};
use operator_watch::ApiError;

use crate::{act::Executor, memory::Memory, observe::Observer};

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

    async fn act(&self, mut observed: Observed, mut action: Action) -> Result<Requeue, ApiError> {
        if matches!(action, Action::Run(_)) {
            let command = &observed.command;
            let live = self.observer.live(command).await;
            let live = live.inspect_err(|error| self.memory.tried(command, Some(error)))?;
            let Some(live) = live else { return Ok(Requeue::OnChange) };
            observed.is_shown_as(Arc::new(live));
            action = decide(&observed);
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
    use crate::fixtures::{command, kind, observed, shop, stored};

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
    async fn the_step_is_the_one_for_the_command_as_the_api_server_shows_it() {
        let other = json!([{"apiVersion": "apps.example/v1", "kind": "Shop", "name": "b", "uid": "shop"}]);
        let ended = json!({"status": {"conditions": [{
            "type": "Succeeded", "status": "False", "reason": "Closed", "message": "", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T12:00:00Z",
        }]}});
        let mut started = ended.clone();
        started["status"]["startTime"] = json!("2026-01-01T11:30:00Z");
        started["status"]["conditions"][0]["status"] = json!("Unknown");
        let is_deleted = json!({"deletionTimestamp": "2026-01-01T12:00:00Z", "finalizers": ["a.dev/hold"]});
        for (more, written) in [
            (json!({}), Some("MERGE")),
            (json!({"spec": {"deadline": 86_400}}), Some("MERGE")),
            (json!({"spec": {"deadline": 1}}), Some("APPLY")),
            (json!({"metadata": is_deleted}), None),
            (json!({"metadata": {"uid": "another"}}), None),
            (json!({"metadata": {"ownerReferences": other}}), Some("APPLY")),
            (json!({"metadata": {"ownerReferences": []}}), Some("APPLY")),
            (started, Some("APPLY")),
            (ended, None),
        ] {
            let (sent, _, is_ok) = run(Answer::Object(stored("one", 10, &more))).await;
            let verbs: Vec<_> = sent.iter().map(|sent| &*sent.verb).collect();
            assert_eq!(
                (verbs, is_ok),
                ([Some("GET"), written].into_iter().flatten().collect(), true),
                "{more}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_may_not_be_read_counts_as_refused() {
        for (code, is_refused) in [(403, true), (500, false)] {
            assert_eq!(run(refused(code)).await.1, is_refused);
        }
    }
}

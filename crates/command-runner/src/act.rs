//! Action → one write. The only writer.

use std::time::Duration;

use catena_api::{CommandStatus, command::SUCCEEDED, keys};
use command_runner::{
    command::{REPORTED, annotation},
    decide::Action,
    observed::Observed,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use operator_kit::{
    report::{Conditions, Events},
    run::Requeue,
    write::Writer,
};
use operator_watch::{ApiError, Cause, ObjectId, WriteTarget};
use serde_json::{Value, json};

use crate::memory::Memory;

/// Time until another try where the target was changed meanwhile, as its own controller often does.
const CONFLICT_DELAY: Duration = Duration::from_millis(100);
/// The topic of Events about a run.
const RUN: &str = "run";

/// Takes steps.
pub struct Executor {
    writer: Writer,
    events: Events,
    memory: Memory,
}

impl Executor {
    pub fn new(writer: Writer, events: Events, memory: Memory) -> Self {
        Self { writer, events, memory }
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Requeue, ApiError> {
        let command = &*observed.command;
        let uid = ObjectId::of(command).uid;
        if let Some(target) = command.row.target_id().filter(|_| observed.concerns_others()) {
            self.memory.wake(target, Some(command));
        }
        match action {
            Action::Run(patch) => self.run(observed, &patch).await,
            Action::Report(status) => {
                let reported = self.report(observed, &status).await;
                reported.inspect_err(|_| self.memory.look_again(uid))?;
                self.memory.told(uid);
                Ok(Requeue::Written)
            }
            Action::Wait(time) => Ok(Requeue::After(time)),
            Action::Settle => Ok(Requeue::OnChange),
        }
    }

    async fn run(&self, observed: &Observed, patch: &Value) -> Result<Requeue, ApiError> {
        let Some(target) = observed.found() else { return Ok(Requeue::OnChange) };
        let id = ObjectId::of(&*observed.command);
        let kind = WriteTarget::unwatched(target.resource.clone());
        let written = self.writer.for_object(id).merge_patch(&kind, patch).await;
        // Whatever has become of the patch, the target tells it.
        self.memory.tried(&observed.command, written.as_ref().err());
        match written {
            Err(error) if error.cause == Cause::Conflict => Ok(Requeue::Untried(CONFLICT_DELAY)),
            written => written.map(|()| Requeue::Now),
        }
    }

    /// Where the definition has no status for it, a run is reported by an annotation and by Events.
    async fn report(&self, observed: &Observed, status: &CommandStatus) -> Result<(), ApiError> {
        let command = &*observed.command;
        let (id, kind) = (ObjectId::of(command), &command.write_target);
        let writes = self.writer.for_object(id);
        // In the state that was observed: a late write of a former leader would overwrite an end.
        let version = command.metadata.resource_version.as_deref().unwrap_or_default();
        if observed.takes_status == Some(true) {
            return writes.apply_status(kind, id, version, status, &REPORTED).await;
        }
        let mut patch = json!({ "metadata": id });
        patch["metadata"]["resourceVersion"] = version.into();
        patch["metadata"]["annotations"] = json!({keys::RUN: annotation(id.uid, status)});
        writes.merge_patch(kind, &patch).await?;
        if let Some(Condition { status: outcome, reason, message, .. }) =
            Conditions::find(&status.conditions, SUCCEEDED)
        {
            let note = format!("{reason}: {message}");
            let event = match outcome.as_str() {
                "True" => Events::normal("Succeeded", &note),
                "False" => Events::warning("Failed", &note),
                _ if status.start_time.is_some() => Events::normal("Running", &note),
                _ => Events::normal("Waiting", &note),
            };
            self.events.publish_lasting(&command.reference(), RUN, (outcome, reason), event);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

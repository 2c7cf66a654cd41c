//! Action → one write. The only writer.

use catena_api::{keys, reason};
use command_reaper::{command::CommandRow, decide::Action, observed::Observed};
use kube::api::{DeleteParams, ObjectMeta, Preconditions};
use operator_kit::{report::Events, run::Requeue, write::Writer};
use operator_watch::{ApiError, DynamicRow, Failure, ObjectId};
use serde_json::json;

use crate::memory::Memory;

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
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Requeue, Failure> {
        let command = &*observed.command;
        match action {
            Action::Delete => {
                // A lost answer, or the end of this pass, must not make it forgotten.
                let before = self.memory.send_deletion(command, observed.now);
                if let Err(error) = self.delete(command).await {
                    // A refusal proves nothing about an earlier deletion, which may be its very reason.
                    if !error.may_have_taken_effect() {
                        self.memory.withdraw_deletion(command, before);
                    }
                    return Err(error.into());
                }
                self.memory.confirm_deletion(command);
                let ObjectMeta { namespace, name, .. } = &command.metadata;
                tracing::info!(kind = command.resource().kind, namespace, name, "deleted after its TTL");
                Ok(Requeue::Written)
            }
            Action::Keep => {
                let id = ObjectId::of(command);
                let mut patch = json!({ "metadata": id });
                patch["metadata"]["annotations"] = json!({ keys::KEPT: id.uid });
                self.writer.for_object(id).merge_patch(&command.write_target, &patch).await?;
                Ok(Requeue::Written)
            }
            Action::Tell { is_warning, reason, note } => {
                let event =
                    if is_warning { Events::warning(reason, &note) } else { Events::normal(reason, &note) };
                let told = self.events.publish_lasting(&command.reference(), reason, (), event);
                Ok(Requeue::After(told.due_in))
            }
            Action::Refuse(error) => Err(Failure::stalled(
                reason::EXPIRY_UNKNOWN,
                format!("it cannot be determined when this command expires: {error}"),
            )),
            Action::Wait(time) => Ok(Requeue::After(time)),
            Action::Settle => Ok(Requeue::OnChange),
        }
    }

    /// Deletes a command in exactly the state that its watch has shown; its dependents follow in the background.
    async fn delete(&self, command: &DynamicRow<CommandRow>) -> Result<(), ApiError> {
        let ObjectMeta { uid, resource_version, .. } = command.metadata.clone();
        // Explicit, because some kinds, such as Job, orphan their dependents by default.
        let params = DeleteParams::background().preconditions(Preconditions { uid, resource_version });
        let id = ObjectId::of(command);
        self.writer.for_object(id).delete(&command.write_target, id, params).await
    }
}

#[cfg(test)]
mod tests;

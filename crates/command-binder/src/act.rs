//! Action → one write. The only writer.

use std::time::Duration;

use catena_api::keys;
use command_binder::{command::CommandRow, decide::Action, observed::Observed, verdict::Verdict};
use command_kinds::Mode;
use json_patch::{AddOperation, PatchOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use operator_kit::{
    report::Events,
    run::Requeue,
    write::{Ownership, Writer},
};
use operator_watch::{ApiError, DynamicRow, ObjectId};
use serde_json::{Value, json};

/// The topic of Events about why a command is not bound.
const BINDING: &str = "binding";

/// Takes steps.
pub struct Executor {
    writer: Writer,
    events: Events,
}

impl Executor {
    pub fn new(writer: Writer, events: Events) -> Self {
        Self { writer, events }
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Requeue, ApiError> {
        let command = &*observed.command;
        match action {
            Action::Bind(owner) => {
                self.json_patch(command, &patch(command, &owner)).await?;
                Ok(Requeue::Written)
            }
            Action::Refresh(owner) => {
                let owners = Some(command.row.owners.to_vec());
                let metadata = ObjectMeta { owner_references: owners, ..command.metadata.clone() };
                if let Some(patch) = Ownership::refreshed(&metadata, &owner.uid, &owner.api_version) {
                    self.json_patch(command, &patch).await?;
                }
                Ok(Requeue::Written)
            }
            Action::Report(condition) => {
                let (id, kind) = (ObjectId::of(command), &command.write_target);
                self.writer.for_object(id).apply_conditions(kind, id, &[*condition]).await?;
                Ok(Requeue::Written)
            }
            Action::Tell { verdict, look_in } => {
                let due_in = self.tell(command, &verdict);
                Ok(Requeue::After(look_in.map_or(due_in, |look_in| look_in.min(due_in))))
            }
            Action::Wait(time) => Ok(Requeue::After(time)),
            Action::Settle => Ok(Requeue::OnChange),
        }
    }

    async fn json_patch(
        &self,
        command: &DynamicRow<CommandRow>,
        patch: &[PatchOperation],
    ) -> Result<(), ApiError> {
        let id = ObjectId::of(command);
        self.writer.for_object(id).json_patch(&command.write_target, id, patch).await
    }

    /// Reports a verdict, unless its reason was reported of the same spec a short time ago, and returns the time until it is
    /// due again.
    fn tell(&self, command: &DynamicRow<CommandRow>, verdict: &Verdict) -> Duration {
        let Verdict { reason, message, .. } = verdict;
        let is_preview = command.row.kind.mode == Mode::Observe && *reason == "WouldBind";
        let event =
            if is_preview { Events::normal(reason, message) } else { Events::warning(reason, message) };
        let state = (reason, command.metadata.generation);
        self.events.publish_lasting(&command.reference(), BINDING, state, event).due_in
    }
}

/// Adds fields only: the owners, labels and annotations of others stay. It applies only to exactly the observed object as far as it
/// was judged: a status that somebody writes meanwhile, as command-runner does, matters only to a rule that reads it.
fn patch(command: &DynamicRow<CommandRow>, owner: &OwnerReference) -> Vec<PatchOperation> {
    let DynamicRow { row, metadata, .. } = command;
    let state = match metadata.generation.filter(|_| row.kind.is_judged_by_spec()) {
        Some(generation) => test(["generation"], json!(generation)),
        None => test(["resourceVersion"], json!(metadata.resource_version)),
    };
    let mut patch = vec![test(["uid"], json!(metadata.uid)), state];
    let (map, key) = match row.kind.mode {
        Mode::Label => ("labels", keys::TARGET_UID),
        Mode::Owner | Mode::Observe => ("annotations", keys::BOUND_TO),
    };
    if row.kind.mode != Mode::Label {
        let owners = Some(&row.owners).filter(|owners| !owners.is_empty());
        patch.push(test(["ownerReferences"], json!(owners)));
        if owners.is_none() {
            patch.push(add(["ownerReferences"], json!([owner])));
        } else {
            patch.push(add(["ownerReferences", "-"], json!(owner)));
        }
    }
    if row.has_map {
        patch.push(test([map, key], json!(row.bound_to)));
        patch.push(add([map, key], owner.uid.as_str().into()));
    } else {
        patch.push(test([map], Value::Null));
        patch.push(add([map], json!({key: owner.uid})));
    }
    patch
}

/// Whether a field of the metadata has this value; that of an absent field is null.
fn test<const N: usize>(field: [&str; N], value: Value) -> PatchOperation {
    PatchOperation::Test(TestOperation { path: in_metadata(field), value })
}

fn add<const N: usize>(field: [&str; N], value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: in_metadata(field), value })
}

fn in_metadata<const N: usize>(field: [&str; N]) -> PointerBuf {
    PointerBuf::from_tokens(["metadata"].into_iter().chain(field))
}

#[cfg(test)]
mod tests;

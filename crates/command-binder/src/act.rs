//! Action → one write. The only writer.

use std::{collections::HashSet, sync::Arc, time::Duration};

use catena_api::keys;
use command_binder::{
    command::CommandRow, decide::Action, error::Error, kind::Mode, observed::Observed, verdict::Verdict,
};
use json_patch::{AddOperation, PatchOperation, jsonptr::PointerBuf};
use k8s_openapi::{
    api::core::v1::ObjectReference,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use operator_kit::{
    object::ObjectId,
    report::{self, EVENTS_BUSY, Events},
    run::Next,
    watch::Watched,
    write::{
        Writer,
        owner::{exactly, refreshed},
    },
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::memory::Memory;

/// Takes steps.
#[derive(Clone)]
pub struct Executor {
    writer: Writer,
    events: Events,
    memory: Memory,
    /// The reported definitions, by uid.
    definitions: Arc<Mutex<report::Told>>,
}

impl Executor {
    pub fn new(writer: Writer, events: Events, memory: Memory) -> Self {
        Self { writer, events, memory, definitions: Arc::default() }
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Next, Error> {
        let command = &*observed.command;
        match action {
            Action::Bind(owner) => {
                self.amend(command, &patch(command, &owner)).await?;
                Ok(Next::Written)
            }
            Action::Refresh(owner) => {
                let owners = Some(command.row.owners.to_vec());
                let metadata = ObjectMeta { owner_references: owners, ..command.metadata.clone() };
                if let Some(patch) = refreshed(&metadata, &owner.uid, &owner.api_version) {
                    self.amend(command, &patch).await?;
                }
                Ok(Next::Written)
            }
            Action::Report(condition) => {
                let (id, kind) = (ObjectId::of(command), &command.source.watched);
                self.writer.on_behalf_of(id).apply_conditions(kind, id, &[*condition]).await?;
                Ok(Next::Written)
            }
            Action::Tell { verdict, look_in } => {
                let told_in = self.tell(command, &verdict);
                Ok(Next::Wait(look_in.map_or(told_in, |look_in| look_in.min(told_in))))
            }
            Action::Wait(time) => Ok(Next::Wait(time)),
            Action::Settle => Ok(Next::Settled),
        }
    }

    /// Reports all definitions that describe no kind of commands, although their labels say so: each once, and again
    /// before its Event expires. Without room for an Event, the next call reports it.
    pub fn report_malformed(&self, definitions: &[(ObjectReference, String)]) {
        let uid = |definition: &ObjectReference| definition.uid.clone().unwrap_or_default();
        let uids: HashSet<_> = definitions.iter().map(|(definition, _)| uid(definition)).collect();
        let mut told = self.definitions.lock();
        told.retain(|uid| uids.contains(uid));
        for (definition, problem) in definitions {
            if self.events.has_room() && told.is_due(&uid(definition), problem) {
                tracing::warn!(definition = definition.name, "{problem}");
                self.events.warn(definition, "InvalidBinding", problem);
            }
        }
    }

    async fn amend(&self, command: &Watched<CommandRow>, patch: &[PatchOperation]) -> Result<(), Error> {
        let id = ObjectId::of(command);
        Ok(self.writer.on_behalf_of(id).amend(&command.source.watched, id, patch).await?)
    }

    /// Reports a verdict, unless its reason was reported of the same spec a short time ago, and returns the time until it is
    /// due again.
    fn tell(&self, command: &Watched<CommandRow>, verdict: &Verdict) -> Duration {
        let uid = ObjectId::of(command).uid;
        let generation = command.metadata.generation.unwrap_or_default();
        let reason = format!("{} of generation {generation}", verdict.reason);
        let due_in = self.memory.due_in(uid, &reason);
        if !due_in.is_zero() {
            return due_in;
        }
        if !self.events.has_room() {
            return EVENTS_BUSY;
        }
        self.memory.note_told(uid, &reason);
        let object = command.reference();
        if command.row.kind.mode == Mode::Observe && verdict.reason == "WouldBind" {
            self.events.tell(&object, verdict.reason, &verdict.message);
        } else {
            self.events.warn(&object, verdict.reason, &verdict.message);
        }
        self.memory.due_in(uid, &reason)
    }
}

/// Adds fields only: the owners, labels and annotations of others stay. It applies only to exactly the observed object
/// in its observed state.
fn patch(command: &Watched<CommandRow>, owner: &OwnerReference) -> Vec<PatchOperation> {
    let row = &command.row;
    let mut patch = exactly(&command.metadata).to_vec();
    let (map, key) = match row.kind.mode {
        Mode::Label => ("labels", keys::TARGET_UID),
        Mode::Owner | Mode::Observe => ("annotations", keys::BOUND_TO),
    };
    if row.kind.mode != Mode::Label {
        if row.owners.is_empty() {
            patch.push(add(["metadata", "ownerReferences"].into(), json!([owner])));
        } else {
            patch.push(add(["metadata", "ownerReferences", "-"].into(), json!(owner)));
        }
    }
    if row.has_map {
        patch.push(add(["metadata", map, key].into(), owner.uid.as_str().into()));
    } else {
        patch.push(add(["metadata", map].into(), json!({key: owner.uid})));
    }
    patch
}

fn add(path: Vec<&str>, value: Value) -> PatchOperation {
    PatchOperation::Add(AddOperation { path: PointerBuf::from_tokens(path), value })
}

#[cfg(test)]
mod tests;

//! One write of a controller, and the part of the object that it leaves to others.

use serde_json::Value;

use super::content::{Json, Object, Operation, Stored};
use crate::server::{
    object::{Key, Text},
    operation::{Change, Preconditions, Propagation},
};

/// A write of a step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write {
    /// The object that the controller reconciles.
    pub whose: Stored,
    /// Empty if its failure holds up everything.
    pub step: &'static str,
    /// The item of the step, if it can fail alone.
    pub item: Option<Text>,
    /// The uid of the written object, if it exists.
    pub meant: Option<Text>,
    /// The request. Its spec and status hold only the controller's own fields.
    pub operation: Operation,
    /// The types of the conditions that it owns in a status.
    pub conditions: &'static [&'static str],
    /// The purpose, by which memory and rules know it.
    pub purpose: Purpose,
}

/// The purpose of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// None of the others.
    Other,
    /// A revision.
    Record,
    /// A child of this rendering; the fields that the rendering sets are compared with the answer.
    Apply(Text, Json),
    /// Replicas of a child.
    Scale(i32),
    /// The effect of a command with this uid.
    Run(Text),
    /// The controller's report on its own object.
    Status,
    /// The report on the command with this uid.
    Tell,
    /// The binding of a command to the target with this uid.
    Bind(Text),
    /// The record on a command that it is kept.
    Keep,
    /// The deletion of a finished command.
    Reap,
    /// A backup.
    BackUp,
    /// The release of a held object.
    Release,
}

impl Write {
    pub fn create(whose: &Stored, purpose: Purpose, object: Object) -> Self {
        Self::new(whose, purpose, None, Operation::Create(object))
    }

    /// A write to the object with this uid.
    pub fn patch(
        whose: &Stored,
        purpose: Purpose,
        key: Key,
        preconditions: Preconditions,
        changes: Vec<Change<Json>>,
    ) -> Self {
        let meant = preconditions.uid.clone();
        Self::new(whose, purpose, meant, Operation::merge(key, preconditions, changes))
    }

    /// A write to the status of the object with this uid, which owns these conditions.
    pub fn status(
        whose: &Stored,
        purpose: Purpose,
        key: Key,
        preconditions: Preconditions,
        status: Value,
        conditions: &'static [&'static str],
    ) -> Self {
        let meant = preconditions.uid.clone();
        let operation = Operation::PatchStatus { key, preconditions, status: status.into() };
        Self { conditions, ..Self::new(whose, purpose, meant, operation) }
    }

    pub fn delete(
        whose: &Stored,
        purpose: Purpose,
        key: Key,
        preconditions: Preconditions,
        propagation: Option<Propagation>,
    ) -> Self {
        let meant = preconditions.uid.clone();
        Self::new(whose, purpose, meant, Operation::delete(key, preconditions, propagation))
    }

    /// The same as a step that can fail without holding up others.
    pub fn of_step(self, step: &'static str, item: Option<Text>) -> Self {
        Self { step, item, ..self }
    }

    fn new(whose: &Stored, purpose: Purpose, meant: Option<Text>, operation: Operation) -> Self {
        let whose = whose.clone();
        Self { whose, step: "", item: None, meant, operation, conditions: &[], purpose }
    }

    /// The request with the fields of others, as the server merges them.
    pub fn merged_with(&self, live: Option<&Stored>) -> Operation {
        let mut operation = self.operation.clone();
        let Some(live) = live else { return operation };
        match &mut operation {
            Operation::Patch { changes, .. } => {
                for change in changes {
                    if let Change::Spec(own) = change {
                        let mut spec = live.spec.value().clone();
                        json_patch::merge(&mut spec, own.value());
                        *own = spec.into();
                    }
                }
            }
            Operation::PatchStatus { status, .. } => {
                *status = merged(live.status.value(), status.value(), self.conditions).into();
            }
            Operation::Create(_) | Operation::Get(_) | Operation::Delete { .. } => {}
        }
        operation
    }
}

/// A write to a status: the writer's conditions replace those of its types. All other fields belong to the one
/// writer that sets any.
fn merged(live: &Value, own: &Value, types: &[&str]) -> Value {
    let list = |status: &Value| status["conditions"].as_array().cloned().unwrap_or_default();
    let is_own = |condition: &Value| types.iter().any(|type_| condition["type"] == *type_);
    let mut conditions: Vec<_> = list(live).into_iter().filter(|condition| !is_own(condition)).collect();
    conditions.extend(list(own));
    conditions.sort_by_key(|condition| condition["type"].as_str().map(str::to_owned));
    let sets_fields = own.as_object().is_some_and(|own| own.keys().any(|field| field != "conditions"));
    let mut status = if sets_fields { own.clone() } else { live.clone() };
    status["conditions"] = conditions.into();
    status
}

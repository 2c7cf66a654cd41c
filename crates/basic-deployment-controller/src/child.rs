//! A child, seen through the replica contract.

use std::sync::Arc;

use catena_api::{keys, reason};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use operator_kit::write::Ownership;
use operator_watch::{Failure, ObjectId, PrunedObject, Row};
use replica_contract::{Outputs, Pause, Stalled};
use serde_json::{Value, json};

use crate::child_kind::ChildKind;

/// A child in the cache: the object without `managedFields`, because any of its fields may be ours, and without its status, of
/// which only the outputs matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// Its kind.
    pub kind: Arc<ChildKind>,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// The generation of its spec.
    pub generation: i64,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Its controller.
    pub owner: Option<OwnerReference>,
    /// Its outputs.
    pub outputs: Outputs,
    /// The object without its status.
    pub object: Value,
}

impl Row for Child {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    fn index_key(&self) -> Option<&str> {
        self.owner.as_ref().map(|owner| owner.uid.as_str())
    }
}

impl Child {
    /// Prunes an object of a kind of children.
    #[must_use]
    pub fn of(object: PrunedObject, kind: &Arc<ChildKind>) -> Self {
        let PrunedObject { metadata, mut data } = object;
        let owner = Ownership::controller_of(&metadata).cloned();
        // The items of a list of a built-in kind have no kind of their own.
        data["apiVersion"] = kind.api_version.as_str().into();
        data["kind"] = kind.kind.as_str().into();
        let generation = metadata.generation.unwrap_or_default();
        data["metadata"] = json!({
            "name": metadata.name, "generation": generation,
            "labels": metadata.labels, "annotations": metadata.annotations,
        });
        let outputs = kind.contract.outputs(&data, generation);
        data.as_object_mut().map(|fields| fields.remove("status"));
        Self {
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
            version: metadata.resource_version.unwrap_or_default(),
            generation,
            is_deleting: metadata.deletion_timestamp.is_some(),
            owner,
            outputs,
            kind: kind.clone(),
            object: data,
        }
    }

    /// Its kind and name, for messages.
    #[must_use]
    pub fn named(&self) -> String {
        format!("{} {:?}", self.kind.kind, self.name)
    }

    /// The hash of its rendering.
    #[must_use]
    pub fn hash(&self) -> &str {
        self.annotation(keys::HASH).unwrap_or_default()
    }

    /// The refusal to touch it as an object of somebody else that has the child's name. What belongs to somebody who is there is
    /// not to be deleted.
    #[must_use]
    pub fn refused(&self) -> Failure {
        let why = match &self.owner {
            Some(owner) => format!(
                "and belongs to {} {:?}, which needs it; change the name in the template, or give this BasicDeployment another name",
                owner.kind, owner.name
            ),
            None if self.is_deleting => "without an owner and is being deleted; the child is made once it is gone: remove the finalizer that keeps it, if one does".to_owned(),
            // A former BasicDeployment orphaned it, and nobody has adopted it.
            None if !self.hash().is_empty() => "without an owner and was rendered from another spec or template; restore those to have it adopted without downtime, and change them afterwards; otherwise delete it, or change the name in the template".to_owned(),
            None => "and belongs to an unknown owner: it has no controller, and was not rendered from this template; delete it if nobody needs it, or change the name in the template".to_owned(),
        };
        Failure::stalled(reason::CHILD_NOT_OWNED, format!("{} exists {why}", self.named()))
    }

    /// The value of one of its annotations.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.object["metadata"]["annotations"][key].as_str()
    }

    /// Its restart token, if it has one.
    #[must_use]
    pub fn restarted_at(&self) -> Option<&str> {
        self.kind.fields().restarted_at.as_ref()?.get(&self.object)?.as_str()
    }

    /// The number of its desired replicas.
    #[must_use]
    pub fn replicas(&self) -> Option<i32> {
        i32::try_from(self.kind.fields().replicas.get(&self.object)?.as_i64()?).ok()
    }

    /// The number of its replicas that are being deleted, or are about to be, and are not gone; `None` if it has not reported that
    /// on its present spec.
    #[must_use]
    pub fn ending(&self) -> Option<i32> {
        let terminating = self.outputs.terminating.filter(|_| self.is_current())?;
        let kept = if self.is_deleting { 0 } else { self.replicas().unwrap_or(0) };
        Some(terminating.saturating_add(self.outputs.active.saturating_sub(kept).max(0)))
    }

    /// Whether a `BasicDeployment` takes it back as its own, if nobody controls it.
    #[must_use]
    pub fn is_adoptable_as(&self, hash: &str) -> bool {
        self.hash() == hash && !self.is_deleting
    }

    /// Its breach of the contract: an output that cannot be read. Nothing is written to such a child, because nobody knows what it
    /// would do.
    #[must_use]
    pub fn breach(&self) -> Option<Failure> {
        let problem = self.outputs.problem.as_ref()?;
        let message = format!(
            "{} breaks the replica contract: {problem}; correct the contract of this kind under children in the controller's settings, or the child's controller",
            self.named()
        );
        Some(Failure::stalled(reason::CONTRACT_BROKEN, message))
    }

    /// Whether all its outputs can be read.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.outputs.problem.is_none()
    }

    /// The reason why it cannot proceed by itself with its current spec.
    #[must_use]
    pub fn stalled(&self) -> Option<&Stalled> {
        self.outputs.stalled.as_ref().filter(|_| self.is_current())
    }

    /// The pause in which it waits on purpose with its current spec.
    #[must_use]
    pub fn paused(&self) -> Option<&Pause> {
        self.outputs.paused.as_ref().filter(|_| self.is_current())
    }

    /// Whether its status refers to its current spec.
    #[must_use]
    pub fn is_current(&self) -> bool {
        self.outputs.observed_generation == Some(self.generation)
    }
}

/// The values of `observed` in the fields that `wanted` sets; a missing field is null.
///
/// Lists count as one value: their content belongs to the template.
#[must_use]
pub fn projection(wanted: &Value, observed: &Value) -> Value {
    match wanted {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), projection(value, &observed[name.as_str()])))
            .collect(),
        _ => observed.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_others_set_are_no_difference() {
        let wanted = json!({"spec": {"a": 1, "list": [1]}});
        let observed = json!({"spec": {"a": 1, "list": [1], "defaulted": true}, "status": {}});
        assert_eq!(projection(&wanted, &observed), wanted);
        assert_ne!(projection(&wanted, &json!({"spec": {"a": 2, "list": [1]}})), wanted);
        assert_ne!(projection(&wanted, &json!({"spec": {"a": 1}})), wanted);
    }
}

//! The fields of a `BasicDeployment` that its children have as well, if it sets them. Pure.
//!
//! They are no part of a rendering, like the replicas. The child records them in an annotation: so a change of them by somebody
//! else can be told from a new wish, and they go again when the `BasicDeployment` no longer sets them, while a value that a
//! template or somebody else has set stays.

use catena_api::{BasicDeploymentSpec, contract::FieldPath, keys};
use serde_json::{Map, Value, json};

use crate::{child::Child, child_kind::ChildKind};

/// The fields that a child is to have, and their values.
#[derive(Clone, Debug, PartialEq)]
pub struct Handed(pub Vec<(FieldPath, Value)>);

impl Handed {
    /// Those that a spec sets, and that a kind has.
    #[must_use]
    pub fn of(spec: &BasicDeploymentSpec, kind: &ChildKind) -> Self {
        let values = json!({
            "minReadySeconds": spec.min_ready_seconds, "podReplacementPolicy": spec.pod_replacement_policy,
        });
        let named = kind.fields().handed().map(|(name, path)| (path.clone(), values[name].clone()));
        Self(named.filter(|(_, value)| !value.is_null()).collect())
    }

    /// Whether a child was given these very ones, and no others.
    #[must_use]
    pub fn is_recorded_on(&self, child: &Child) -> bool {
        child.annotation(keys::HANDED) == self.record().as_str()
    }

    /// The first one that a child has with another value. A server may leave out a number that is 0.
    #[must_use]
    pub fn changed_on(&self, child: &Child) -> Option<&FieldPath> {
        let differs =
            |(path, value): &&(FieldPath, Value)| path.get(&child.object).unwrap_or(&Value::from(0)) != value;
        self.0.iter().find(differs).map(|(path, _)| path)
    }

    /// Sets them and their record in the body of an apply.
    pub fn set_in(&self, object: &mut Value) {
        for (path, value) in &self.0 {
            path.set(object, value.clone());
        }
        if !self.0.is_empty() {
            object["metadata"]["annotations"][keys::HANDED] = self.record();
        }
    }

    /// Sets them in a patch of a child. Former ones give way to the value that the child's template has, if it has one.
    pub fn set_in_patch(&self, patch: &mut Value, child: &Child, rendered: Option<&Value>) {
        let Some(recorded) = child.annotation(keys::HANDED) else { return self.set_in(patch) };
        let is_recorded = |path: &&FieldPath| recorded.contains(&format!("\"{path}\""));
        for path in child.kind.fields().handed().map(|(_, path)| path).filter(is_recorded) {
            let own = rendered.and_then(|rendered| path.get(rendered));
            path.set(patch, own.cloned().unwrap_or_default());
        }
        patch["metadata"]["annotations"][keys::HANDED] = Value::Null;
        self.set_in(patch);
    }

    /// What the child records (JSON); null if there is nothing to record.
    fn record(&self) -> Value {
        let all: Map<_, _> = self.0.iter().map(|(path, value)| (path.to_string(), value.clone())).collect();
        if all.is_empty() { Value::Null } else { Value::Object(all).to_string().into() }
    }
}

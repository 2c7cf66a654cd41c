//! The mark on a backup that names its object and policy.

use operator_templates::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{metadata, settings::ProtectedKind};

/// The object and the attempt of a backup.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its kind, as [`ProtectedKind::resource_id`] gives it.
    pub id: String,
    api_version: String,
    kind: String,
    /// The object's namespace; empty for none.
    #[serde(default)]
    pub namespace: String,
    /// The object's name.
    pub name: String,
    attempt: u32,
    /// The policy of the backup: [`ProtectedKind::policy`].
    policy: String,
}

impl Target {
    /// The mark on a backup of an object.
    #[must_use]
    pub fn of(kind: &ProtectedKind, object: &Value, attempt: u32) -> Self {
        Self {
            id: kind.resource_id(),
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
            namespace: metadata::text(object, "namespace").to_owned(),
            name: metadata::text(object, "name").to_owned(),
            attempt,
            policy: kind.policy.clone(),
        }
    }

    /// Whether both are the same attempt for the same object by the same policy, in any version.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let identity = |target: &Self| {
            let Self { id, namespace, name, attempt, policy, .. } = target;
            (id.clone(), namespace.clone(), name.clone(), *attempt, policy.clone())
        };
        identity(self) == identity(other)
    }
}

/// The suffix that distinguishes a backup from all others. By it, a repeated create, after a crash or with a stale
/// cache, meets its own backup, and never one of another policy.
pub(super) fn suffix(kind: &ProtectedKind, object: &Value, attempt: u32) -> String {
    Digest::short(&[metadata::text(object, "uid"), &kind.policy, &attempt.to_string()])
}

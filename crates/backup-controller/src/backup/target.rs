//! What stands on a backup for whoever finds it: which object it is of, and by which policy.

use operator_kit::render::short_digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{metadata, settings::ProtectedKind};

/// Which object a backup is of, and which try it is.
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
    pub(super) attempt: u32,
    /// What the backup was asked for by: [`ProtectedKind::policy`].
    #[serde(default)]
    pub(super) policy: String,
}

impl Target {
    /// What stands on a backup of an object.
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

    /// Whether both are the same try of the same object by the same policy, in whatever version it was read.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let identity = |target: &Self| {
            let Self { id, namespace, name, attempt, policy, .. } = target;
            (id.clone(), namespace.clone(), name.clone(), *attempt, policy.clone())
        };
        identity(self) == identity(other)
    }
}

/// What tells one backup from all others. A create that is repeated, after a crash or with a stale cache, meets its own
/// backup by it, and never one that another policy asked for.
pub(super) fn suffix(kind: &ProtectedKind, object: &Value, attempt: u32) -> String {
    short_digest(&[metadata::text(object, "uid"), &kind.policy, &attempt.to_string()])
}

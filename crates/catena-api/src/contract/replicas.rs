use serde::{Deserialize, Serialize};

use super::FieldPath;

/// Label on a CRD that honours the replica contract; its value is the contract's version.
pub const REPLICAS_LABEL: &str = "contract.catena.dev/replicas";

/// The version of the replica contract that this crate describes.
pub const REPLICAS_VERSION: &str = "v1";

/// Where a kind has the fields of the replica contract, version `v1`.
///
/// | direction | field | meaning |
/// |---|---|---|
/// | in | `replicas` | how many are wanted |
/// | in | `restartedAt` | a token: what was made under another value is to be replaced |
/// | out | `active` | how many serve now |
/// | out | `observedGeneration` | the generation that the numbers refer to |
/// | out, optional | `blockedBy`, `conditions`, `selector` | why it is not there yet; the scale subresource |
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ReplicaContract {
    /// In: how many replicas are wanted.
    pub replicas: FieldPath,
    /// In: the restart token.
    pub restarted_at: FieldPath,
    /// Out: how many replicas serve now.
    pub active: FieldPath,
    /// Out: the generation of the child's spec that its status refers to.
    pub observed_generation: FieldPath,
    /// Out, optional: the first object that is not ready.
    pub blocked_by: FieldPath,
    /// Out, optional: conditions, of which `Ready` and `Stalled` are read.
    pub conditions: FieldPath,
    /// Out, optional: the label selector of the pods, as text.
    pub selector: FieldPath,
}

impl Default for ReplicaContract {
    fn default() -> Self {
        let path = |names: [&str; 2]| FieldPath::of(names);
        Self {
            replicas: path(["spec", "replicas"]),
            restarted_at: path(["spec", "restartedAt"]),
            active: path(["status", "active"]),
            observed_generation: path(["status", "observedGeneration"]),
            blocked_by: path(["status", "blockedBy"]),
            conditions: path(["status", "conditions"]),
            selector: path(["status", "selector"]),
        }
    }
}

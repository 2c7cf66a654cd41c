//! The labels and annotations that controllers read and write.
//!
//! These are the only keys in code; every other label or annotation of a downstream object comes from its
//! template.

/// API group of every kind of the project.
pub const GROUP: &str = "catena.dev";

/// Annotation on a created object: sha256 (hex) of the text that its template rendered to, and for a pod also
/// of the restart token that it was made under.
pub const HASH: &str = "catena.dev/template-hash";

/// Label on the child of a `BasicDeployment`: the uid of the `BasicDeployment`.
///
/// Its presence narrows the parent's watch, so that other people's objects never reach the controller.
pub const DEPLOYMENT_UID: &str = "catena.dev/deployment-uid";

/// Label on the pods of a `BasicReplicaSet`: the uid of the `BasicReplicaSet`.
///
/// Its presence narrows the pod watch, and its value is the selector that the scale subresource reports.
pub const REPLICA_SET_UID: &str = "catena.dev/replicaset-uid";

/// Annotation on a pod: the number of the place that it fills in its set, from 0.
///
/// The pod's name follows from owner, hash and slot, so that a create that is repeated finds its own pod
/// instead of making a second one.
pub const SLOT: &str = "catena.dev/slot";

/// Annotation of kube-controller-manager that ranks pods for scale-down (lower goes first).
pub const POD_DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

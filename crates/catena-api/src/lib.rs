//! The resource types of Catena and the contracts between its controllers.
//!
//! Nothing here needs a client or a runtime, so that plugins, tests and other operators can depend on it.

mod basic_deployment;
mod basic_replica_set;
mod blocked_by;
pub mod contract;
pub mod keys;
mod schema;

pub use basic_deployment::{BasicDeployment, BasicDeploymentSpec, BasicDeploymentStatus, ChildStatus};
pub use basic_replica_set::{BasicReplicaSet, BasicReplicaSetSpec, BasicReplicaSetStatus};
pub use blocked_by::BlockedBy;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

/// Every custom resource definition of the project, in the order of their names.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    [BasicDeployment::crd(), BasicReplicaSet::crd()].into_iter().map(schema::finish).collect()
}

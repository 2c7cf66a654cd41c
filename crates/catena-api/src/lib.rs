//! The resource types of Catena and the contracts between its controllers.
//!
//! Nothing here needs a client or a runtime, so that plugins, tests and other operators can depend on it.

pub mod backup;
mod basic_deployment;
mod basic_deployment_restart;
mod basic_deployment_rollback;
mod basic_replica_set;
mod blocked_by;
mod budget;
pub mod command;
pub mod compatibility;
pub mod contract;
pub mod deletion;
pub mod keys;
mod pin;
mod pod_replacement_policy;
pub mod reason;
mod schema;

pub use basic_deployment::{
    BasicDeployment, BasicDeploymentSpec, BasicDeploymentStatus, ChildStatus, StoredRevision,
};
pub use basic_deployment_restart::{BasicDeploymentRestart, BasicDeploymentRestartSpec};
pub use basic_deployment_rollback::{BasicDeploymentRollback, BasicDeploymentRollbackSpec};
pub use basic_replica_set::{BasicReplicaSet, BasicReplicaSetSpec, BasicReplicaSetStatus, LastServed};
pub use blocked_by::BlockedBy;
pub use budget::surge_and_unavailable;
pub use command::{CommandStatus, TargetRef};
pub use pin::Pin;
pub use pod_replacement_policy::PodReplacementPolicy;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use schema::Unreported;

/// All custom resource definitions of the project, sorted by name.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        schema::finish(BasicDeployment::crd(), Unreported::Workload),
        described(BasicDeploymentRestart::crd(), include_str!("basic_deployment_restart.yaml")),
        described(BasicDeploymentRollback::crd(), include_str!("basic_deployment_rollback.yaml")),
        schema::finish(BasicReplicaSet::crd(), Unreported::Workload),
    ]
}

/// A definition of commands that says itself how they are bound, carried out and deleted.
fn described(definition: CustomResourceDefinition, description: &str) -> CustomResourceDefinition {
    let mut definition = schema::finish(definition, Unreported::Command);
    let metadata = &mut definition.metadata;
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(keys::COMMAND_KIND.to_owned(), "true".to_owned());
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(keys::BINDING.to_owned(), description.to_owned());
    definition
}

//! The resource types of Catena and the contracts between its controllers.
//!
//! Nothing here needs a client or a runtime, so that plugins, tests and other operators can depend on it.

mod basic_deployment;
mod basic_deployment_restart;
mod basic_deployment_rollback;
mod basic_replica_set;
mod blocked_by;
pub mod command;
pub mod compatibility;
pub mod contract;
pub mod deletion;
pub mod keys;
mod pod_replacement_policy;
pub mod reason;
mod schema;

pub use basic_deployment::{BasicDeployment, BasicDeploymentSpec, BasicDeploymentStatus, ChildStatus};
pub use basic_deployment_restart::{BasicDeploymentRestart, BasicDeploymentRestartSpec};
pub use basic_deployment_rollback::{BasicDeploymentRollback, BasicDeploymentRollbackSpec};
pub use basic_replica_set::{BasicReplicaSet, BasicReplicaSetSpec, BasicReplicaSetStatus, LastServed};
pub use blocked_by::BlockedBy;
pub use command::{CommandStatus, TargetRef};
pub use pod_replacement_policy::PodReplacementPolicy;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use schema::Unreported;

/// All custom resource definitions of the project, sorted by name.
#[must_use]
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![
        schema::finish(BasicDeployment::crd(), Unreported::Workload),
        schema::finish(BasicDeploymentRestart::crd(), Unreported::Command),
        schema::finish(BasicDeploymentRollback::crd(), Unreported::Command),
        schema::finish(BasicReplicaSet::crd(), Unreported::Workload),
    ]
}

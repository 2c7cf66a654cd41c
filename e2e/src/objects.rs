use catena_api::{BasicDeployment, BasicDeploymentSpec, BasicReplicaSet, BasicReplicaSetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::texts;

/// API version of the project's kinds.
pub const GROUP_VERSION: &str = "catena.dev/v1alpha1";

/// The image that was loaded into the nodes, if they are real.
pub(crate) fn loaded_image() -> Option<String> {
    std::env::var("CATENA_WORKLOAD_IMAGE").ok()
}

/// The image of the pods: one that was loaded into real nodes; fake nodes accept any.
#[must_use]
pub fn image() -> String {
    loaded_image().unwrap_or_else(|| "registry.k8s.io/pause:3.10".into())
}

/// Another one that runs as well.
#[must_use]
pub fn another_image() -> String {
    let loaded = loaded_image().and_then(|image| Some(format!("{}:another", image.rsplit_once(':')?.0)));
    loaded.unwrap_or_else(|| "registry.k8s.io/pause:3.9".into())
}

/// A `BasicDeployment` that becomes ready.
#[must_use]
pub fn deployment(name: &str, replicas: i32) -> BasicDeployment {
    let spec = BasicDeploymentSpec {
        replicas,
        template: "default".into(),
        parameters: texts! { "image" => image() },
        progress_deadline_seconds: 600,
        ..BasicDeploymentSpec::default()
    };
    BasicDeployment::new(name, spec)
}

/// A `BasicReplicaSet` that becomes ready, without a `BasicDeployment` above it.
#[must_use]
pub fn replica_set(name: &str, replicas: i32) -> BasicReplicaSet {
    let spec = BasicReplicaSetSpec {
        replicas,
        parameters: texts! { "image" => image() },
        ..BasicReplicaSetSpec::default()
    };
    BasicReplicaSet::new(name, spec)
}

/// The condition of a type.
#[must_use]
pub fn condition<'c>(conditions: &'c [Condition], r#type: &str) -> Option<&'c Condition> {
    conditions.iter().find(|condition| condition.type_ == r#type)
}

/// Whether the condition of a type exists and is true.
#[must_use]
pub fn is_true(conditions: &[Condition], r#type: &str) -> bool {
    condition(conditions, r#type).is_some_and(|condition| condition.status == "True")
}

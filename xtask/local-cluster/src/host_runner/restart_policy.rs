//! When a container that ended is started again.

use k8s_openapi::api::core::v1::PodSpec;

/// A pod's restartPolicy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    Always,
    Never,
}

impl RestartPolicy {
    /// The pod's policy; there is no other one among the pods that are run.
    pub fn of(spec: &PodSpec) -> Self {
        match spec.restart_policy.as_deref() {
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }
}

//! Decides when an ended container is restarted.

use k8s_openapi::api::core::v1::PodSpec;

/// A pod's restartPolicy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartPolicy {
    Always,
    Never,
}

impl RestartPolicy {
    /// The pod's policy; the supported pods have no other one.
    pub fn of(spec: &PodSpec) -> Self {
        match spec.restart_policy.as_deref() {
            Some("Never") => Self::Never,
            _ => Self::Always,
        }
    }
}

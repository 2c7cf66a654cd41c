use serde::{Deserialize, Serialize};

/// When the room of a replica that goes is free for another one, in the words that Kubernetes proposes for Deployments
/// (KEP-3973).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PodReplacementPolicy {
    /// As soon as it terminates.
    #[default]
    TerminationStarted,
    /// Once it has ended.
    TerminationComplete,
}

use serde::{Deserialize, Serialize};

/// When another pod may take the place of one that is deleted, in the words that Kubernetes proposes for Deployments (KEP-3973).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PodReplacementPolicy {
    /// As soon as it terminates.
    #[default]
    TerminationStarted,
    /// Once it is gone.
    TerminationComplete,
}

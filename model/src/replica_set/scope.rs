//! The parameters of the model.

use catena_api::{PodReplacementPolicy, keys::HASH};

use super::content::{Object, SetSpec};
use crate::harness;

/// A model of one set.
#[derive(Clone, Debug)]
pub struct ReplicaSet {
    /// Number of processes that act independently.
    pub processes: u8,
    /// Initial number of replicas.
    pub replicas: u8,
    /// Numbers of replicas that a user may choose.
    pub sizes: &'static [u8],
    /// `spec.maxSurge`.
    pub surge: u8,
    /// `spec.maxUnavailable`.
    pub unavailable: u8,
    /// Whether somebody else's pod has the name of the first one.
    pub has_squatter: bool,
    /// Whether the bounds of a rollout are judged: they do not hold with two acting processes.
    pub judges_budget: bool,
    /// Whether people remove labels, so that watches no longer show a pod.
    pub loses_labels: bool,
    /// `spec.minReadySeconds`, in ticks.
    pub min_ready: u8,
    /// `spec.podReplacementPolicy`.
    pub replacement: PodReplacementPolicy,
    /// The version of the template whose pods never serve; empty if there is none.
    pub never_serves: &'static str,
}

pub type Scope = harness::Scope<ReplicaSet>;

/// One process over a set of one replica.
pub const ONE: ReplicaSet = ReplicaSet {
    processes: 1,
    replicas: 1,
    sizes: &[],
    surge: 1,
    unavailable: 0,
    has_squatter: false,
    judges_budget: true,
    loses_labels: false,
    min_ready: 0,
    replacement: PodReplacementPolicy::TerminationStarted,
    never_serves: "",
};

impl Scope {
    /// The initial spec of the set.
    pub fn spec(&self) -> SetSpec {
        let ReplicaSet { replicas, surge, unavailable, min_ready, replacement, .. } = self.own;
        SetSpec { replicas, text: "a".into(), surge, unavailable, min_ready, replacement }
    }

    /// Whether a pod can ever serve.
    pub fn can_serve(&self, pod: &Object) -> bool {
        pod.meta.annotations.get(HASH).is_none_or(|hash| **hash != *self.own.never_serves)
    }
}

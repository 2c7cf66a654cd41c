//! The contents of the model's objects, and their conversion into the controller's own types.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use basic_replicaset_controller::pod::{self, PodRow};
use catena_api::{BasicReplicaSet, BasicReplicaSetSpec, BasicReplicaSetStatus, PodReplacementPolicy, keys};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use pod_state::{PodProblem, PodState};

use crate::{
    clock::{self, time},
    metadata::real_meta,
    server::{
        self,
        object::{self, Text},
    },
};

pub type Object = object::Object<Spec, Status>;
/// An object of this model as the server keeps it.
pub type Stored = object::Stored<Spec, Status>;
pub type Server = server::Server<Spec, Status>;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Spec {
    /// Of a `BasicReplicaSet`.
    Set(SetSpec),
    /// Of a pod.
    Pod,
}

/// The relevant part of the spec of a `BasicReplicaSet`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetSpec {
    /// `spec.replicas`.
    pub replicas: u8,
    /// The version of the template.
    pub text: Text,
    /// `spec.maxSurge`.
    pub surge: u8,
    /// `spec.maxUnavailable`.
    pub unavailable: u8,
    /// `spec.minReadySeconds`, in ticks.
    pub min_ready: u8,
    /// `spec.podReplacementPolicy`.
    pub replacement: PodReplacementPolicy,
}

impl SetSpec {
    /// Whether a pod counts until it is gone.
    pub fn awaits_ends(&self) -> bool {
        self.replacement == PodReplacementPolicy::TerminationComplete
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// Not reported yet.
    #[default]
    None,
    /// Of a `BasicReplicaSet`.
    Set(Told),
    /// Of a pod.
    Pod(Phase),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It is ready since this time, in ticks.
    Ready(u8),
    /// It has ended by itself.
    Failed,
}

/// A status of a `BasicReplicaSet`. Its times are all the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Told(pub Arc<BasicReplicaSetStatus>);

impl Eq for Told {}

impl Hash for Told {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let status = &*self.0;
        (status.observed_generation, status.replicas, status.active, status.updated).hash(state);
        (status.available, status.terminating).hash(state);
        for condition in &status.conditions {
            (&condition.type_, &condition.status, &condition.reason, &condition.message).hash(state);
        }
        status.last_served.as_ref().map(|served| &served.revision).hash(state);
        if let Some(blocker) = &status.blocked_by {
            (&blocker.name, &blocker.reason).hash(state);
        }
    }
}

pub fn set_spec(object: &Object) -> Option<&SetSpec> {
    match &object.spec {
        Spec::Set(spec) => Some(spec),
        Spec::Pod => None,
    }
}

pub fn phase(object: &Object) -> Option<Phase> {
    match object.status {
        Status::Pod(phase) => Some(phase),
        _ => None,
    }
}

/// The set as the controller reads it.
pub fn real_set(object: &Object) -> BasicReplicaSet {
    let number = |number: u8| IntOrString::Int(number.into());
    let spec = set_spec(object).map_or_else(BasicReplicaSetSpec::default, |spec| BasicReplicaSetSpec {
        replicas: spec.replicas.into(),
        max_surge: number(spec.surge),
        max_unavailable: number(spec.unavailable),
        min_ready_seconds: i32::try_from(clock::duration(spec.min_ready).as_secs()).unwrap_or(i32::MAX),
        pod_replacement_policy: spec.replacement,
        ..BasicReplicaSetSpec::default()
    });
    let status = match &object.status {
        Status::Set(Told(status)) => Some(BasicReplicaSetStatus::clone(status)),
        _ => None,
    };
    BasicReplicaSet { metadata: real_meta(&object.meta), spec, status }
}

/// The pod as the controller stores it.
pub fn pod_row(object: &Object) -> PodRow {
    let meta = &object.meta;
    let created = time(meta.created);
    let problem = |reason: &str, is_conclusive| PodProblem {
        reason: reason.into(),
        message: "".into(),
        since: created,
        is_conclusive,
    };
    let controller = meta.owners.iter().find(|owner| owner.is_controller);
    let annotation = |key: &str| meta.annotations.get(key);
    PodRow {
        namespace: "".into(),
        name: (&*meta.key.name).into(),
        uid: (&*meta.uid).into(),
        owner: controller.map(|owner| pod::Owner {
            uid: (&*owner.uid).into(),
            name: (&*owner.key.name).into(),
            is_outdated: false,
        }),
        revision: annotation(keys::HASH).map(|hash| (&**hash).into()).unwrap_or_default(),
        slot: annotation(keys::SLOT).and_then(|slot| slot.parse().ok()),
        created,
        deletion_cost: 0,
        state: match phase(object) {
            _ if meta.is_deleting => PodState::Terminating(created),
            Some(Phase::Ready(_)) => PodState::Ready,
            Some(Phase::Failed) => PodState::Finished(problem("Failed", true)),
            None => PodState::NotReady(problem("NotReady", false)),
        },
        ready_since: match phase(object) {
            Some(Phase::Ready(since)) => Some(time(since)),
            _ => None,
        },
        node: "".into(),
        phase: pod_state::Phase::Running,
        restarts: 0,
    }
}

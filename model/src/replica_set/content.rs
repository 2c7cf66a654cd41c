//! The contents of the model's objects, and their conversion into the controller's own types.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use basic_replicaset_controller::pod::{self, PodRow, PodState, Trouble};
use catena_api::{BasicReplicaSet, BasicReplicaSetSpec, BasicReplicaSetStatus, keys};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::{
        apis::meta::v1::{ObjectMeta, OwnerReference, Time},
        util::intstr::IntOrString,
    },
};
use kube::Resource;

use crate::server::{
    self,
    object::{self, Kind, Meta, Owner, Text},
};

/// An object of this model.
pub type Object = object::Object<Spec, Status>;
/// An object of this model as the server keeps it.
pub type Stored = object::Stored<Spec, Status>;
/// The server of this model.
pub type Server = server::Server<Spec, Status>;

/// Seconds of one tick of the server's clock: more than any delay of the controller.
const TICK: u64 = 60;

/// Start of the server's clock.
const EPOCH: Duration = Duration::from_secs(1_000_000);

/// A spec.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Spec {
    /// Of a `BasicReplicaSet`.
    Set(SetSpec),
    /// Of a pod: its template.
    Pod(Text),
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
}

/// A status.
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

/// The state of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// It serves.
    Ready,
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
        for condition in &status.conditions {
            (&condition.type_, &condition.status, &condition.reason, &condition.message).hash(state);
        }
        if let Some(blocker) = &status.blocked_by {
            (&blocker.name, &blocker.reason).hash(state);
        }
    }
}

/// A point in time, from the server's clock.
#[must_use]
pub fn time(clock: u8) -> Timestamp {
    Timestamp::UNIX_EPOCH + EPOCH + duration(clock)
}

/// The duration of a number of ticks.
#[must_use]
pub fn duration(ticks: u8) -> Duration {
    Duration::from_secs(u64::from(ticks) * TICK)
}

/// The spec of a set.
#[must_use]
pub fn set_spec(object: &Object) -> Option<&SetSpec> {
    match &object.spec {
        Spec::Set(spec) => Some(spec),
        Spec::Pod(_) => None,
    }
}

/// The state of a pod.
#[must_use]
pub fn phase(object: &Object) -> Option<Phase> {
    match object.status {
        Status::Pod(phase) => Some(phase),
        _ => None,
    }
}

/// The set as the controller reads it.
#[must_use]
pub fn real_set(object: &Object) -> BasicReplicaSet {
    let number = |number: u8| IntOrString::Int(number.into());
    let spec = set_spec(object).map_or_else(BasicReplicaSetSpec::default, |spec| BasicReplicaSetSpec {
        replicas: spec.replicas.into(),
        max_surge: number(spec.surge),
        max_unavailable: number(spec.unavailable),
        ..BasicReplicaSetSpec::default()
    });
    let status = match &object.status {
        Status::Set(Told(status)) => Some(BasicReplicaSetStatus::clone(status)),
        _ => None,
    };
    BasicReplicaSet { metadata: real_meta(&object.meta), spec, status }
}

/// The metadata in Kubernetes' own type.
#[must_use]
pub fn real_meta(meta: &Meta) -> ObjectMeta {
    let texts = |map: &std::collections::BTreeMap<Text, Text>| {
        let texts = map.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        (!map.is_empty()).then(|| texts.collect())
    };
    let owners = meta.owners.iter().map(real_owner).collect();
    ObjectMeta {
        name: Some(meta.key.name.to_string()),
        uid: Some(meta.uid.to_string()),
        resource_version: Some(meta.version.0.to_string()),
        generation: Some(meta.generation),
        creation_timestamp: Some(Time(time(meta.created))),
        deletion_timestamp: meta.is_deleting.then(|| Time(time(meta.created))),
        labels: texts(&meta.labels),
        annotations: texts(&meta.annotations),
        owner_references: (!meta.owners.is_empty()).then_some(owners),
        ..ObjectMeta::default()
    }
}

fn real_owner(owner: &Owner) -> OwnerReference {
    let (api_version, kind) = match owner.key.kind {
        Kind::ReplicaSet => (BasicReplicaSet::api_version(&()), BasicReplicaSet::kind(&())),
        Kind::Pod => (Pod::api_version(&()), Pod::kind(&())),
    };
    OwnerReference {
        api_version: api_version.into(),
        kind: kind.into(),
        name: owner.key.name.to_string(),
        uid: owner.uid.to_string(),
        controller: Some(owner.is_controller),
        block_owner_deletion: Some(owner.blocks_deletion),
    }
}

/// The pod as the controller stores it.
#[must_use]
pub fn pod_row(object: &Object) -> PodRow {
    let meta = &object.meta;
    let created = time(meta.created);
    let trouble = |reason: &str, is_known| Trouble {
        reason: reason.into(),
        message: "".into(),
        since: created,
        is_known,
    };
    let controller = meta.owners.iter().find(|owner| owner.is_controller);
    let annotation = |key: &str| meta.annotations.get(key);
    PodRow {
        namespace: "".into(),
        name: (&*meta.key.name).into(),
        uid: (&*meta.uid).into(),
        owner: controller
            .map(|owner| pod::Owner { uid: (&*owner.uid).into(), name: (&*owner.key.name).into() }),
        revision: annotation(keys::HASH).map(|hash| (&**hash).into()).unwrap_or_default(),
        slot: annotation(keys::SLOT).and_then(|slot| slot.parse().ok()),
        created,
        deletion_cost: 0,
        state: match phase(object) {
            _ if meta.is_deleting => PodState::Terminating,
            Some(Phase::Ready) => PodState::Ready,
            Some(Phase::Failed) => PodState::Finished(trouble("Failed", true)),
            None => PodState::NotReady(trouble("NotReady", false)),
        },
    }
}

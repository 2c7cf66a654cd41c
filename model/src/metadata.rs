//! The metadata and kind of a modelled object in Kubernetes' own types.

use std::collections::BTreeMap;

use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicDeploymentRollback, BasicReplicaSet};
use k8s_openapi::{
    api::{apps::v1::ControllerRevision, batch::v1::Job, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};
use kube::{core::GroupVersionKind, discovery::ApiResource};

use crate::{
    clock::time,
    server::object::{Kind, Meta, Owner, Text},
};

/// A modelled kind as the API server knows it.
pub fn resource(kind: Kind) -> ApiResource {
    match kind {
        Kind::Deployment => ApiResource::erase::<BasicDeployment>(&()),
        Kind::ReplicaSet => ApiResource::erase::<BasicReplicaSet>(&()),
        Kind::Workload => ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Workload")),
        Kind::Pod => ApiResource::erase::<Pod>(&()),
        Kind::Revision => ApiResource::erase::<ControllerRevision>(&()),
        Kind::Restart => ApiResource::erase::<BasicDeploymentRestart>(&()),
        Kind::Rollback => ApiResource::erase::<BasicDeploymentRollback>(&()),
        Kind::Backup => ApiResource::erase::<Job>(&()),
    }
}

/// The metadata in Kubernetes' own type.
pub fn real_meta(meta: &Meta) -> ObjectMeta {
    let texts = |map: &BTreeMap<Text, Text>| {
        let texts = map.iter().map(|(key, value)| (key.to_string(), value.to_string()));
        (!map.is_empty()).then(|| texts.collect())
    };
    let finalizers: Vec<_> = meta.finalizers.iter().map(ToString::to_string).collect();
    let owners = meta.owners.iter().map(real_owner).collect();
    ObjectMeta {
        name: Some(meta.key.name.to_string()),
        uid: Some(meta.uid.to_string()),
        resource_version: Some(meta.version.0.to_string()),
        generation: Some(meta.generation),
        creation_timestamp: Some(Time(time(meta.created))),
        deletion_timestamp: meta.is_deleting.then(|| Time(time(meta.deleted))),
        labels: texts(&meta.labels),
        annotations: texts(&meta.annotations),
        owner_references: (!meta.owners.is_empty()).then_some(owners),
        finalizers: (!finalizers.is_empty()).then_some(finalizers),
        ..ObjectMeta::default()
    }
}

fn real_owner(owner: &Owner) -> OwnerReference {
    let ApiResource { api_version, kind, .. } = resource(owner.key.kind);
    OwnerReference {
        api_version,
        kind,
        name: owner.key.name.to_string(),
        uid: owner.uid.to_string(),
        controller: Some(owner.is_controller),
        block_owner_deletion: Some(owner.blocks_deletion),
    }
}

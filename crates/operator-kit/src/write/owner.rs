//! Who controls an object: by uid, never by name or label.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Client, Resource, core::NamespaceResourceScope, discovery::ApiResource};

use crate::watch::live;

/// The owner reference that marks the controller of an object.
#[must_use]
pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

/// Whether the object has the given uid as its controller.
#[must_use]
pub fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
    controller_of(meta).is_some_and(|owner| owner.uid == uid)
}

/// Whether the very object is still there and not being deleted, looked up live.
///
/// Before something is adopted: an object that is deleted with `--cascade=orphan` leaves its dependents behind on
/// purpose, and taking them back would get them deleted with it. kube-controller-manager does the same.
pub async fn still_there<K>(client: Client, object: &K) -> kube::Result<bool>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let (namespace, name) = (object.meta().namespace.as_deref(), object.meta().name.as_deref());
    let kind = ApiResource::erase::<K>(&());
    let found =
        live::metadata_opt(&client, &kind, namespace.unwrap_or_default(), name.unwrap_or_default()).await?;
    Ok(found.is_some_and(|found| found.uid == object.meta().uid && found.deletion_timestamp.is_none()))
}

/// A reference that makes `owner` the controller of what it is put on, and lets a foreground deletion of the
/// owner wait for it. `None` for an object that does not come from a server.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    owner
        .controller_owner_ref(&())
        .map(|reference| OwnerReference { block_owner_deletion: Some(true), ..reference })
}

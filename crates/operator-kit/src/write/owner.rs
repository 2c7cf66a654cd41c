//! Who controls an object: by uid, never by name or label.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Client, Resource, core::NamespaceResourceScope, discovery::ApiResource};

use crate::{object::ObjectId, watch::live};

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

/// Whether exactly this object still exists and is not being deleted, by a live read.
///
/// Call this before an adoption: an object that is deleted with `--cascade=orphan` leaves its dependents behind on
/// purpose, and adopting them again would delete them with it. kube-controller-manager does the same.
pub async fn still_there<K>(client: Client, object: &K) -> kube::Result<bool>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let ObjectId { namespace, name, uid } = ObjectId::of(object);
    let found = live::metadata_opt(&client, &ApiResource::erase::<K>(&()), namespace, name).await?;
    Ok(found.is_some_and(|found| ObjectId::from(&found).uid == uid && found.deletion_timestamp.is_none()))
}

/// An owner reference that makes `owner` the controller of a dependent, and makes a foreground deletion of the owner
/// wait for the dependent. `None` for an owner that does not come from a server.
pub fn controller_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
    owner
        .controller_owner_ref(&())
        .map(|reference| OwnerReference { block_owner_deletion: Some(true), ..reference })
}

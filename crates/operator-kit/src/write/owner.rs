//! Who controls an object: by uid, never by name or label.

use json_patch::{PatchOperation, ReplaceOperation, TestOperation, jsonptr::PointerBuf};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Client, Resource, core::NamespaceResourceScope, discovery::ApiResource};

use operator_watch::{ApiError, Cause, Live, ObjectId, Verb};

/// Who controls an object: by uid, never by name or label.
pub struct Ownership;

impl Ownership {
    /// The owner reference that marks the controller of an object.
    #[must_use]
    pub fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
        meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
    }

    /// Whether the object has the given uid as its controller.
    #[must_use]
    pub fn is_controlled_by(meta: &ObjectMeta, uid: &str) -> bool {
        Self::controller_of(meta).is_some_and(|owner| owner.uid == uid)
    }

    /// Whether an owner is of the kind `K`, in any version.
    #[must_use]
    pub fn is_of_kind<K: Resource<DynamicType = ()>>(owner: &OwnerReference) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        (group, &*owner.kind) == (&*K::group(&()), &*K::kind(&()))
    }

    /// Whether the reference to an owner of the kind `K` names another API version than this program does.
    #[must_use]
    pub fn is_outdated<K: Resource<DynamicType = ()>>(owner: &OwnerReference) -> bool {
        Self::is_of_kind::<K>(owner) && owner.api_version != K::api_version(&())
    }

    /// Whether an owner is a former object with the name of this one; both are in one namespace.
    #[must_use]
    pub fn is_former<K: Resource<DynamicType = ()>>(owner: &OwnerReference, object: &K) -> bool {
        let ObjectId { name, uid, .. } = ObjectId::of(object);
        Self::is_of_kind::<K>(owner) && owner.name == name && owner.uid != uid
    }

    /// Fails unless exactly this object still exists and is not being deleted, by a live read.
    ///
    /// Call this before an adoption: an object that is deleted with `--cascade=orphan` leaves its dependents behind on
    /// purpose, and adopting them again would delete them with it. kube-controller-manager does the same.
    ///
    /// # Errors
    /// [`Cause::NotFound`] if it is gone or being deleted, and those of the look-up.
    pub async fn ensure_exists<K>(client: &Client, object: &K) -> Result<(), ApiError>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let (kind, ObjectId { namespace, name, uid }) = (ApiResource::erase::<K>(&()), ObjectId::of(object));
        let found = Live::metadata(client, &kind, namespace, name).await?;
        let is_it =
            |found: &ObjectMeta| ObjectId::from(found).uid == uid && found.deletion_timestamp.is_none();
        if found.as_ref().is_some_and(is_it) {
            return Ok(());
        }
        Err(ApiError::new(Verb::Write, (kind.kind, name), Cause::NotFound, ""))
    }

    /// An owner reference that makes `owner` the controller of a dependent, and makes a foreground deletion of the owner
    /// wait for the dependent. `None` for an owner that does not come from a server.
    pub fn owner_reference<K: Resource<DynamicType = ()>>(owner: &K) -> Option<OwnerReference> {
        owner
            .controller_owner_ref(&())
            .map(|reference| OwnerReference { block_owner_deletion: Some(true), ..reference })
    }

    /// A patch that gives the reference to an owner this API version and changes nothing else, on exactly this object in this
    /// state; `None` if there is no reference to it in another version.
    ///
    /// The garbage collector looks an owner up in the version of the reference. When that is not served any more, it deletes no
    /// dependents of a deleted owner, and an owner that waits for them stays.
    #[must_use]
    pub fn refreshed(dependent: &ObjectMeta, owner: &str, api_version: &str) -> Option<Vec<PatchOperation>> {
        let mut owners = dependent.owner_references.iter().flatten();
        let index =
            owners.position(|other| other.uid == owner && other.api_version != api_version)?.to_string();
        let path = PointerBuf::from_tokens(["metadata", "ownerReferences", &index, "apiVersion"]);
        let version = dependent.resource_version.as_deref().unwrap_or_default();
        let [uid, state] = Self::exactly(ObjectId::from(dependent).uid, version);
        Some(vec![uid, state, PatchOperation::Replace(ReplaceOperation { path, value: api_version.into() })])
    }

    /// The tests by which a JSON patch applies only to exactly this object in the state with this resourceVersion.
    #[must_use]
    pub fn exactly(uid: &str, version: &str) -> [PatchOperation; 2] {
        [("uid", uid), ("resourceVersion", version)].map(|(field, value)| {
            let path = PointerBuf::from_tokens(["metadata", field]);
            PatchOperation::Test(TestOperation { path, value: value.into() })
        })
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_owner_of_the_very_kind_is_outdated_or_a_former_one() {
        let object: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": "web", "uid": "new"}})).unwrap();
        for (api_version, kind, name, uid, outdated, former) in [
            ("v1", "ConfigMap", "web", "old", false, true),
            ("v2", "ConfigMap", "web", "new", true, false),
            ("v2", "ConfigMap", "other", "old", true, false),
            ("v2", "Secret", "web", "old", false, false),
            ("x.dev/v2", "ConfigMap", "web", "old", false, false),
        ] {
            let owner = json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": uid});
            let owner: OwnerReference = serde_json::from_value(owner).unwrap();
            let found = (Ownership::is_outdated::<ConfigMap>(&owner), Ownership::is_former(&owner, &object));
            assert_eq!(found, (outdated, former), "{owner:?}");
        }
    }

    #[test]
    fn only_the_version_of_one_reference_changes_and_only_in_the_observed_state() {
        let object = json!({"metadata": {"uid": "pod", "resourceVersion": "7", "ownerReferences": [
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "other"},
            {
                "apiVersion": "x.dev/v1", "kind": "Set", "name": "web", "uid": "set",
                "controller": true, "blockOwnerDeletion": true,
            },
        ]}});
        let metadata = serde_json::from_value(object["metadata"].clone()).unwrap();
        let patch = Ownership::refreshed(&metadata, "set", "x.dev/v2").unwrap();
        let (mut changed, mut expected) = (object.clone(), object.clone());
        json_patch::patch(&mut changed, &patch).unwrap();
        expected["metadata"]["ownerReferences"][1]["apiVersion"] = "x.dev/v2".into();
        assert_eq!(changed, expected);
        for field in ["uid", "resourceVersion"] {
            let mut another = object.clone();
            another["metadata"][field] = "another".into();
            assert!(json_patch::patch(&mut another, &patch).is_err(), "{field}");
        }
        assert_eq!(Ownership::refreshed(&metadata, "set", "x.dev/v1"), None);
        assert_eq!(Ownership::refreshed(&metadata, "gone", "x.dev/v2"), None);
    }
}

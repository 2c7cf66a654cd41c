//! Any number of kinds that are unknown at compile time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Resource,
    api::{DynamicObject, ObjectMeta},
    discovery::ApiResource,
};
use tokio::sync::watch::Receiver;

use crate::{PrunedObject, SeenVersion, WriteTarget, decode::of_the_kinds_of, health::WatchState};

/// An object of a kind that is known only at run time, pruned to the fields that its controller reads.
#[derive(Clone, Debug)]
pub struct DynamicRow<R> {
    /// Name, namespace, uid, versions and times; nothing else.
    pub metadata: ObjectMeta,
    /// The name under which its controller knows its kind.
    pub kind_id: Arc<str>,
    /// Its kind and watch. Those of one watch share it.
    pub write_target: Arc<WriteTarget>,
    /// The part of it that its controller keeps.
    pub row: R,
}

/// A kind to watch.
#[derive(Clone)]
pub struct DynamicKind<R> {
    /// Unique among the kinds of one controller.
    pub id: Arc<str>,
    /// The kind, all of whose objects are watched.
    pub resource: Arc<ApiResource>,
    /// Narrows the watch to objects with these labels; others never reach this process.
    pub selector: Option<String>,
    /// Watches only the metadata; the other fields are null.
    pub is_metadata_only: bool,
    /// Returns what is kept of an object.
    pub prune: Arc<dyn Fn(PrunedObject) -> R + Send + Sync>,
    /// Identifies the inputs of `prune`: when it changes, the watch starts again.
    pub fingerprint: String,
}

impl<R> DynamicKind<R> {
    /// Whether another one asks for the very same watch.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.id, &self.resource, &self.fingerprint, &self.selector, self.is_metadata_only)
            == (&other.id, &other.resource, &other.fingerprint, &other.selector, other.is_metadata_only)
    }

    /// What is kept of its objects, each with the version in which it was listed.
    pub(crate) fn pruning(
        self,
        seen: &SeenVersion,
        state: Receiver<WatchState>,
    ) -> impl FnMut(PrunedObject) -> DynamicRow<R> + use<R> {
        let Self { id, resource, prune, .. } = self;
        let mut write_target = Arc::new(WriteTarget::new(resource.clone(), seen));
        move |object: PrunedObject| {
            let listed = state.borrow().substitute.clone().unwrap_or_else(|| resource.clone());
            if listed != write_target.resource {
                write_target = Arc::new(WriteTarget::new(listed, &write_target.seen_version));
            }
            let metadata = ObjectMeta {
                name: object.metadata.name.clone(),
                namespace: object.metadata.namespace.clone(),
                uid: object.metadata.uid.clone(),
                resource_version: object.metadata.resource_version.clone(),
                generation: object.metadata.generation,
                creation_timestamp: object.metadata.creation_timestamp.clone(),
                deletion_timestamp: object.metadata.deletion_timestamp.clone(),
                ..ObjectMeta::default()
            };
            let (kind_id, write_target) = (id.clone(), write_target.clone());
            DynamicRow { metadata, kind_id, write_target, row: prune(object) }
        }
    }
}

impl<R> DynamicRow<R> {
    /// Its kind as the API server knows it.
    #[must_use]
    pub fn resource(&self) -> &ApiResource {
        &self.write_target.resource
    }

    /// A reference to it, for Events.
    #[must_use]
    pub fn reference(&self) -> ObjectReference {
        let ObjectMeta { name, namespace, uid, .. } = self.metadata.clone();
        let ApiResource { api_version, kind, .. } = self.resource();
        let (api_version, kind) = (Some(api_version.clone()), Some(kind.clone()));
        ObjectReference { api_version, kind, name, namespace, uid, ..ObjectReference::default() }
    }
}

impl<R> Resource for DynamicRow<R> {
    // Shared: each pass holds it for its logs.
    of_the_kinds_of!(DynamicObject, Arc<ApiResource>);

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }

    // The object may be watched in another version than its kind is known by.
    fn object_ref(&self, _: &Arc<ApiResource>) -> ObjectReference {
        self.reference()
    }
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::json;

    use super::*;
    use crate::{Watches, health::ReadinessRule};

    #[test]
    fn an_object_is_written_and_named_in_the_version_in_which_it_was_listed() {
        let [v1, v2] = ["v1", "v2"].map(|version| {
            let kind = GroupVersionKind::gvk("x.dev", version, "Move");
            Arc::new(ApiResource::from_gvk_with_plural(&kind, "moves"))
        });
        let kind = DynamicKind {
            id: "moves".into(),
            resource: v1.clone(),
            selector: None,
            is_metadata_only: false,
            prune: Arc::new(|_| ()),
            fingerprint: String::new(),
        };
        let mut status = Watches::default().status("Move", ReadinessRule::Never);
        let mut prune = kind.pruning(&SeenVersion::default(), status.subscribe());
        let mut listed = || {
            let object = json!({"metadata": {"namespace": "shop", "name": "a", "uid": "u"}});
            prune(serde_json::from_value(object).unwrap())
        };
        let before = [listed(), listed()];
        assert!(Arc::ptr_eq(&before[0].write_target, &before[1].write_target), "it is in memory once");
        assert_eq!(before[0].object_ref(&v1).api_version.as_deref(), Some("x.dev/v1"));
        status.substituted(Some(v2.clone()));
        let after = listed();
        assert_eq!((after.resource(), &after.write_target.resource), (&*v2, &v2));
        let ObjectReference { api_version, kind, namespace, name, uid, .. } = after.object_ref(&v1);
        let reference = [api_version, kind, namespace, name, uid].map(Option::unwrap);
        assert_eq!(reference, ["x.dev/v2", "Move", "shop", "a", "u"]);
        status.substituted(None);
        assert_eq!(listed().resource(), &*v1);
    }
}

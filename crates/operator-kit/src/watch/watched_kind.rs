//! Any number of kinds that are unknown at compile time.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client, Resource, api::ObjectMeta, discovery::ApiResource};

use crate::{
    report::health::{Health, Need, WatchStatus},
    watch::{TrimmedObject, Watch, WatchedResource, Watermark, trimmed::resource_of_any_kind},
};

/// An object of a kind that is known only at run time, trimmed to the fields that its controller reads.
#[derive(Clone, Debug)]
pub struct Watched<R> {
    /// Name, namespace, uid, versions and times; nothing else.
    pub metadata: ObjectMeta,
    /// Its kind and watch.
    pub source: Arc<Source>,
    /// The part of it that its controller keeps.
    pub row: R,
}

/// One of the kinds that a controller watches.
#[derive(Debug)]
pub struct Source {
    /// The name under which the controller knows the kind.
    pub id: Arc<str>,
    /// The kind, and the highest version that its watch has delivered, for [`crate::write::Writer`] to wait for.
    pub watched: WatchedResource,
}

/// A kind to watch.
#[derive(Clone)]
pub struct WatchedKind<R> {
    id: Arc<str>,
    resource: Arc<ApiResource>,
    fingerprint: String,
    selector: Option<String>,
    is_metadata_only: bool,
    trim: Trim<R>,
}

type Trim<R> = Arc<dyn Fn(TrimmedObject) -> R + Send + Sync>;

impl<R> WatchedKind<R> {
    /// Watches all objects of a kind, each kept as the row that `trim` returns. `id` is unique among the kinds of one
    /// controller. `fingerprint` identifies the inputs of `trim`: when it changes, the watch starts again.
    #[must_use]
    pub fn new(
        id: impl Into<Arc<str>>,
        resource: ApiResource,
        fingerprint: impl Into<String>,
        trim: impl Fn(TrimmedObject) -> R + Send + Sync + 'static,
    ) -> Self {
        Self {
            id: id.into(),
            resource: Arc::new(resource),
            fingerprint: fingerprint.into(),
            selector: None,
            is_metadata_only: false,
            trim: Arc::new(trim),
        }
    }

    /// Narrows the watch to objects with these labels; others never reach this process.
    #[must_use]
    pub fn labelled(mut self, selector: Option<String>) -> Self {
        self.selector = selector;
        self
    }

    /// Watches only the metadata; the other fields are null.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }

    pub(crate) fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub(crate) fn resource(&self) -> &Arc<ApiResource> {
        &self.resource
    }

    /// The name of its watch in messages.
    pub(crate) fn for_people(&self) -> String {
        format!("{} ({})", self.resource.kind, self.id)
    }

    /// The same kind in another version.
    pub(crate) fn served_as(mut self, resource: ApiResource) -> Self {
        self.resource = Arc::new(resource);
        self
    }

    /// Whether another one asks for the very same watch.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.id, &self.resource, &self.fingerprint, &self.selector, self.is_metadata_only)
            == (&other.id, &other.resource, &other.fingerprint, &other.selector, other.is_metadata_only)
    }

    /// The intake of its objects.
    pub(crate) fn intake(self, client: &Client, health: &Health) -> Intake<TrimmedObject, Watched<R>>
    where
        R: 'static,
    {
        let kind = self.for_people();
        let Self { id, resource, selector, is_metadata_only, trim, .. } = self;
        let mut watch = if is_metadata_only {
            Watch::metadata(Api::all_with(client.clone(), &*resource), kind)
        } else {
            Watch::new(Api::all_with(client.clone(), &*resource), kind)
        };
        if let Some(selector) = selector {
            watch = watch.labelled(&selector);
        }
        let (status, seen) = (health.watch(watch.kind(), Need::Never), Watermark::default());
        let source = Arc::new(Source { id, watched: WatchedResource::new(resource, &seen) });
        let trim = move |object: TrimmedObject| {
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
            Watched { metadata, source: source.clone(), row: trim(object) }
        };
        Intake { watch, status, seen, trim: Box::new(trim) }
    }
}

impl<R> Watched<R> {
    /// Its kind as the API server knows it.
    #[must_use]
    pub fn resource(&self) -> &ApiResource {
        &self.source.watched.resource
    }

    /// A reference to it, for Events.
    #[must_use]
    pub fn reference(&self) -> ObjectReference {
        self.object_ref(&self.source.watched.resource)
    }
}

/// The intake of objects of a kind: their watch, and the trimming of each object.
pub(crate) struct Intake<Raw, K> {
    pub watch: Watch<Raw>,
    pub status: WatchStatus,
    /// The highest version that the watch has delivered.
    pub seen: Watermark,
    pub trim: Box<dyn Fn(Raw) -> K + Send + Sync>,
}

// Shared: a queue and a store hold it once for each object.
resource_of_any_kind!(Watched<R>, Arc<ApiResource>, R);

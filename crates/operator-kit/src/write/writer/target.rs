//! The destination of a write.

use kube::{Resource, api::DynamicObject, core::Request};
use serde_json::Value;

use operator_watch::{ApiError, Named, ObjectId, Verb, WatchedResource};

/// The destination of a write.
#[derive(Clone)]
pub(super) struct Target<'k> {
    pub kind: &'k WatchedResource,
    /// Empty for a cluster-scoped object.
    pub namespace: String,
    pub name: String,
    /// Empty where it does not matter.
    pub uid: String,
}

impl<'k> Target<'k> {
    pub fn new(kind: &'k WatchedResource, id: ObjectId<'_>) -> Self {
        let [namespace, name, uid] = [id.namespace, id.name, id.uid].map(str::to_owned);
        Self { kind, namespace, name, uid }
    }

    /// The destination of an object or a patch.
    pub fn of(kind: &'k WatchedResource, object: &Value) -> Self {
        let text = |field| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Self { kind, namespace: text("namespace"), name: text("name"), uid: text("uid") }
    }

    pub fn request(&self) -> Request {
        let namespace = Some(&*self.namespace).filter(|namespace| !namespace.is_empty());
        Request::new(DynamicObject::url_path(&self.kind.resource, namespace))
    }

    pub fn error(&self, error: &kube::Error) -> ApiError {
        ApiError::of(Verb::Write, error, Named::new(&*self.kind.resource.kind, &*self.name))
    }
}

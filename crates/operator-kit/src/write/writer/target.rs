//! The destination of a write.

use kube::{Resource, api::DynamicObject, core::Request};
use serde_json::Value;

use operator_watch::{ApiError, Named, ObjectId, Verb, WatchedResource};

/// The destination of a write.
#[derive(Clone, Copy)]
pub(super) struct Target<'t> {
    pub kind: &'t WatchedResource,
    pub namespace: &'t str,
    pub name: &'t str,
    /// Empty where it does not matter.
    pub uid: &'t str,
}

impl<'t> Target<'t> {
    pub fn new(kind: &'t WatchedResource, ObjectId { namespace, name, uid }: ObjectId<'t>) -> Self {
        Self { kind, namespace, name, uid }
    }

    /// The destination of an object or a patch.
    pub fn of(kind: &'t WatchedResource, object: &'t Value) -> Self {
        let text = |field| object["metadata"][field].as_str().unwrap_or_default();
        Self { kind, namespace: text("namespace"), name: text("name"), uid: text("uid") }
    }

    pub fn request(&self) -> Request {
        let namespace = Some(self.namespace).filter(|namespace| !namespace.is_empty());
        Request::new(DynamicObject::url_path(&self.kind.resource, namespace))
    }

    pub fn error(&self, error: &kube::Error) -> ApiError {
        ApiError::of(Verb::Write, error, Named::new(&*self.kind.resource.kind, self.name))
    }
}

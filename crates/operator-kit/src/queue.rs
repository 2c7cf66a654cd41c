use kube::{
    Resource,
    runtime::{controller::ReconcileRequest, reflector::ObjectRef},
};
use tokio::sync::mpsc;

/// The objects to look at, before they are deduplicated.
pub struct Queue<K: Resource> {
    sender: mpsc::UnboundedSender<ReconcileRequest<K>>,
    pub(crate) receiver: mpsc::UnboundedReceiver<ReconcileRequest<K>>,
}

impl<K: Resource<DynamicType = ()>> Default for Queue<K> {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { sender, receiver }
    }
}

impl<K: Resource<DynamicType = ()>> Queue<K> {
    /// A way to ask for a pass over an object.
    #[must_use]
    pub fn trigger(&self) -> Trigger<K> {
        Trigger(self.sender.clone())
    }
}

/// Asks for a pass over an object; asking again before it comes is the same as asking once.
pub struct Trigger<K: Resource>(mpsc::UnboundedSender<ReconcileRequest<K>>);

impl<K: Resource> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Resource<DynamicType = ()>> Trigger<K> {
    /// Asks for a pass over the object of this name.
    pub fn notify(&self, namespace: &str, name: &str) {
        // It fails only when the process stops.
        let _ = self.0.send(ObjectRef::new(name).within(namespace).into());
    }
}

use std::{
    hash::Hash,
    sync::{Arc, Weak},
    time::Duration,
};

use kube::{
    Resource,
    runtime::reflector::{ObjectRef, Store},
};

use crate::{object::ObjectId, run::requests::Requests};

/// Number of objects per slice when all objects are queued.
const SLICE_SIZE: usize = 64;
/// Pause between slices, about as long as passes without work take.
const SLICE_INTERVAL: Duration = Duration::from_millis(2);
/// Number of objects that are examined before other tasks have their turn.
const STRETCH_SIZE: usize = 4096;

/// The requested objects.
pub struct Queue<K: Resource> {
    pub(crate) dynamic_type: K::DynamicType,
    pub(crate) requests: Arc<Requests<ObjectRef<K>>>,
}

impl<K: Resource<DynamicType: Clone + Default>> Default for Queue<K> {
    fn default() -> Self {
        Self::of(K::DynamicType::default())
    }
}

impl<K: Resource<DynamicType: Clone>> Queue<K> {
    /// A queue for the objects of a kind that is known only at run time.
    pub(crate) fn of(dynamic_type: K::DynamicType) -> Self {
        Self { dynamic_type, requests: Arc::default() }
    }

    /// A handle for requesting passes.
    #[must_use]
    pub fn trigger(&self) -> Trigger<K> {
        Trigger { dynamic_type: self.dynamic_type.clone(), requests: Arc::downgrade(&self.requests) }
    }
}

/// Requests passes over objects; repeated requests before a pass count as one.
pub struct Trigger<K: Resource> {
    dynamic_type: K::DynamicType,
    /// Gone when nobody serves them any more.
    requests: Weak<Requests<ObjectRef<K>>>,
}

impl<K: Resource<DynamicType: Clone>> Clone for Trigger<K> {
    fn clone(&self) -> Self {
        Self { dynamic_type: self.dynamic_type.clone(), requests: self.requests.clone() }
    }
}

impl<K: Resource<DynamicType: Clone + Eq + Hash>> Trigger<K> {
    /// Requests a pass over the object with this name; the namespace of a cluster-scoped object is empty.
    pub fn notify(&self, namespace: &str, name: &str) {
        let Some(requests) = self.requests.upgrade() else { return };
        let mut reference = ObjectRef::new_with(name, self.dynamic_type.clone());
        if !namespace.is_empty() {
            reference = reference.within(namespace);
        }
        requests.add(reference);
    }

    /// Requests a pass over an object.
    pub(crate) fn notify_of(&self, object: &K) {
        let ObjectId { namespace, name, .. } = ObjectId::of(object);
        self.notify(namespace, name);
    }
}

/// Requests a pass over every object that `is_asked`, slice by slice: a queue entry is larger than a small row, and
/// everything else runs on the same thread.
pub(crate) async fn ask_for_all<K>(store: &Store<K>, trigger: &Trigger<K>, is_asked: impl Fn(&K) -> bool)
where
    K: Resource<DynamicType: Hash + Eq + Clone> + Clone + 'static,
{
    for stretch in store.state().chunks(STRETCH_SIZE) {
        let asked: Vec<_> = stretch.iter().filter(|object| is_asked(object)).collect();
        for slice in asked.chunks(SLICE_SIZE) {
            for object in slice {
                trigger.notify_of(object);
            }
            if slice.len() == SLICE_SIZE {
                tokio::time::sleep(SLICE_INTERVAL).await;
            }
        }
        tokio::task::yield_now().await;
    }
}

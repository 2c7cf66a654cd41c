//! Requests for passes over objects of kinds that change at run time.

use std::{
    collections::{HashMap, HashSet},
    convert::Infallible,
    mem::take,
    sync::Arc,
};

use operator_watch::{SharedRows, Watched, WatchedKind};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::run::Queue;

/// Requests passes over objects of any of a controller's kinds.
#[derive(Clone)]
pub struct Triggers<R: 'static>(Arc<Shared<R>>);

struct Shared<R: 'static> {
    by_id: Mutex<ById<R>>,
    /// The namespaces whose objects are all to be reconciled.
    namespaces: Mutex<HashSet<String>>,
    namespace_added: Notify,
}

type ById<R> = HashMap<Arc<str>, Open<R>>;

/// A kind that is watched.
struct Open<R: 'static> {
    queue: Queue,
    objects: SharedRows<Watched<R>>,
    is_served: IsServed,
}

/// Whether the cluster serves a kind, or why its objects may not all be known.
type IsServed = Box<dyn Fn() -> Result<bool, String> + Send + Sync>;

impl<R: 'static> Default for Triggers<R> {
    fn default() -> Self {
        let (by_id, namespaces, namespace_added) = (Mutex::default(), Mutex::default(), Notify::default());
        Self(Arc::new(Shared { by_id, namespaces, namespace_added }))
    }
}

impl<R: Send + Sync + 'static> Triggers<R> {
    /// Requests a pass over an object of the kind with this `id`; does nothing if the kind is no longer watched.
    pub fn notify(&self, id: &str, namespace: &str, name: &str) {
        if let Some(Open { queue, .. }) = self.0.by_id.lock().get(id) {
            queue.notify(namespace, name);
        }
    }

    /// The objects of the kind with this `id`, as its watch last delivered them; none if the kind is not watched.
    #[must_use]
    pub fn objects(&self, id: &str) -> Vec<Arc<Watched<R>>> {
        self.0.by_id.lock().get(id).map(|open| open.objects.read().all()).unwrap_or_default()
    }

    /// The object with this uid of the kind with this `id`, as its watch last delivered it.
    #[must_use]
    pub fn object(&self, id: &str, uid: &str) -> Option<Arc<Watched<R>>> {
        let by_id = self.0.by_id.lock();
        by_id.get(id)?.objects.read().row(uid)
    }

    /// Whether the cluster serves the kind with this `id`.
    ///
    /// # Errors
    /// Why its objects may not all be known, if it is served.
    pub fn is_served(&self, id: &str) -> Result<bool, String> {
        let by_id = self.0.by_id.lock();
        by_id.get(id).map_or_else(|| Err("its watch has not begun".to_owned()), |open| (open.is_served)())
    }

    /// Requests a pass over every object of a namespace, soon: one walk over all objects serves all namespaces that are
    /// requested meanwhile.
    pub fn notify_all_in(&self, namespace: &str) {
        self.0.namespaces.lock().insert(namespace.to_owned());
        self.0.namespace_added.notify_one();
    }

    /// Serves the requests of [`Self::notify_all_in`], forever.
    pub(crate) async fn follow_namespaces(&self) -> Infallible {
        loop {
            self.0.namespace_added.notified().await;
            let namespaces = take(&mut *self.0.namespaces.lock());
            let opened = |open: &Open<R>| (open.queue.clone(), open.objects.clone());
            let kinds: Vec<_> = self.0.by_id.lock().values().map(opened).collect();
            for (queue, objects) in kinds {
                let is_asked = |object: &Watched<R>| {
                    object.metadata.namespace.as_ref().is_some_and(|namespace| namespaces.contains(namespace))
                };
                queue.notify_all(&objects, is_asked).await;
            }
        }
    }

    /// A queue and rows for a kind.
    pub(crate) fn open(
        &self,
        kind: &WatchedKind<R>,
        is_served: impl Fn() -> Result<bool, String> + Send + Sync + 'static,
    ) -> (Queue, SharedRows<Watched<R>>) {
        let (queue, objects) = (Queue::default(), SharedRows::default());
        let open = Open { queue: queue.clone(), objects: objects.clone(), is_served: Box::new(is_served) };
        self.0.by_id.lock().insert(kind.id.clone(), open);
        (queue, objects)
    }

    /// Drops the queue and the rows of a kind that is no longer watched.
    pub(crate) fn close(&self, kind: &WatchedKind<R>) {
        self.0.by_id.lock().remove(&kind.id);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use kube::{api::ObjectMeta, discovery::ApiResource, runtime::watcher::Event};

    use super::*;
    use operator_watch::{Source, WatchedResource};

    use crate::testing::Lenient;

    const KIND: &str = "gadgets";

    fn kind() -> WatchedKind<()> {
        let resource = ApiResource {
            group: "example.com".into(),
            version: "v1".into(),
            api_version: "example.com/v1".into(),
            kind: "Gadget".into(),
            plural: KIND.into(),
        };
        WatchedKind {
            id: KIND.into(),
            resource: resource.into(),
            selector: None,
            is_metadata_only: false,
            trim: Arc::new(|_| ()),
            fingerprint: String::new(),
        }
    }

    fn fill(filled: &SharedRows<Watched<()>>, namespaces: usize, objects: usize) {
        let watched = WatchedResource::unwatched(kind().resource);
        let source = Arc::new(Source { id: KIND.into(), watched });
        let take = |event| drop(filled.write().take(event, Arc::new));
        take(Event::Init);
        for number in 0..objects {
            let metadata = ObjectMeta {
                namespace: Some(format!("n{}", number % namespaces)),
                name: Some(format!("o{number}")),
                uid: Some(format!("u{number}")),
                ..ObjectMeta::default()
            };
            let object = Watched { metadata, source: source.clone(), row: () };
            take(Event::InitApply(Lenient(Ok(object))));
        }
        take(Event::InitDone);
    }

    #[tokio::test(start_paused = true)]
    async fn each_object_of_the_asked_namespaces_is_looked_at_once_and_others_have_their_turn_meanwhile() {
        const NAMESPACES: usize = 500;
        const OBJECTS: usize = 20_000;
        let triggers = Triggers::default();
        let (queue, filled) = triggers.open(&kind(), || Ok(true));
        queue.open();
        fill(&filled, NAMESPACES, OBJECTS);
        for number in 0..NAMESPACES - 1 {
            triggers.notify_all_in(&format!("n{number}"));
        }
        let served = triggers.clone();
        let serving = tokio::spawn(async move { served.follow_namespaces().await });
        let (mut asked, mut longest, mut turns) = (HashSet::new(), 0, 0);
        let wanted = OBJECTS - OBJECTS / NAMESPACES;
        while asked.len() < wanted {
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            let before = asked.len();
            while let Some(key) = queue.next().now_or_never() {
                assert!(asked.insert(key.clone()), "asked twice");
                queue.done(key, None);
            }
            longest = longest.max(asked.len() - before);
            turns += 1;
            assert!(turns < 100_000);
        }
        assert!(longest <= 256, "{longest} at once");
        serving.abort();
    }

    #[test]
    fn nothing_is_kept_of_a_kind_that_is_not_watched_any_more() {
        let triggers = Triggers::default();
        let (queue, filled) = triggers.open(&kind(), || Ok(true));
        fill(&filled, 1, 1);
        let row = Arc::downgrade(&filled.read().all()[0]);
        triggers.close(&kind());
        drop((queue, filled));
        assert!(row.upgrade().is_none());
    }
}

//! The order of passes, as client-go's `workqueue` has it: first come, first served; an object waits only once, however
//! often it is requested; and there are never two passes over one object at once.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    convert::Infallible,
    future::pending,
    mem::take,
    sync::Arc,
    time::Duration,
};

use operator_watch::{Cache, DynamicKind, DynamicRow, ObjectId, Row};
use parking_lot::Mutex;
use tokio::{
    select,
    sync::Notify,
    task::coop::consume_budget,
    time::{Instant, sleep, sleep_until},
};

/// Longest delay of a requeued object: an early pass finds nothing to do.
const MAX_DELAY: Duration = Duration::from_secs(24 * 3600);
/// Number of objects per slice when all objects are queued.
const SLICE_SIZE: usize = 64;
/// Pause between slices, about as long as passes without work take.
const SLICE_INTERVAL: Duration = Duration::from_millis(2);

/// The requested passes over the objects of one kind; clones share them.
#[derive(Clone, Default)]
pub struct Queue(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
    relisted: Notify,
}

/// An object in a queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    /// Empty for a cluster-scoped object.
    pub namespace: Arc<str>,
    pub name: Arc<str>,
}

#[derive(Default)]
struct State {
    /// Whether requests count: those before the passes begin do not.
    is_open: bool,
    /// In the order of their requests.
    waiting: VecDeque<Key>,
    /// Those that wait, and those that are reconciled again after their current pass.
    requested: HashSet<Key>,
    under_way: HashSet<Key>,
    /// Those that are requested at a time.
    later: BTreeSet<(Instant, Key)>,
    /// The time of each object in `later`.
    scheduled: HashMap<Key, Instant>,
}

impl Queue {
    /// Requests a pass over the object with this name; the namespace of a cluster-scoped object is empty. Repeated requests
    /// before a pass count as one.
    pub fn notify(&self, namespace: &str, name: &str) {
        self.0.state.lock().request(Key { namespace: namespace.into(), name: name.into() });
        self.0.changed.notify_one();
    }

    /// Requests a pass over an object.
    pub(crate) fn notify_of(&self, object: &impl Row) {
        let ObjectId { namespace, name, .. } = object.id();
        self.notify(namespace, name);
    }

    /// Requests a pass over every object that `is_asked`, slice by slice: a queue entry is larger than a small row, and
    /// everything else runs on the same thread.
    pub(crate) async fn notify_all<R: Row>(&self, objects: &Cache<R>, is_asked: impl Fn(&R) -> bool) {
        for slice in objects.filter(is_asked).chunks(SLICE_SIZE) {
            for object in slice {
                self.notify_of(&**object);
            }
            sleep(SLICE_INTERVAL).await;
        }
    }

    /// Records a new list, after which all objects are reconciled.
    pub(crate) fn relist(&self) {
        self.0.relisted.notify_one();
    }

    /// Waits for a new list.
    pub(crate) async fn relisted(&self) {
        self.0.relisted.notified().await;
    }

    /// From now on, requests count.
    pub(crate) fn open(&self) {
        self.0.state.lock().is_open = true;
    }

    /// Waits for the next object; its pass lasts until [`Self::done`]. There is one receiver.
    pub(crate) async fn next(&self) -> Key {
        // Passes may need nothing of the runtime, and other tasks have their turn nevertheless.
        consume_budget().await;
        loop {
            let due = {
                let mut state = self.0.state.lock();
                if let Some(key) = state.next() {
                    return key;
                }
                state.later.first().map(|(due, _)| *due)
            };
            let later = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => pending().await,
                }
            };
            select! {
                () = self.0.changed.notified() => {}
                () = later => {}
            }
        }
    }

    /// Records the end of a pass; another one follows after this time.
    pub(crate) fn done(&self, key: Key, again: Option<Duration>) {
        self.0.state.lock().done(key, again);
        self.0.changed.notify_one();
    }
}

impl State {
    fn request(&mut self, key: Key) {
        if let Some(due) = self.scheduled.remove(&key) {
            self.later.remove(&(due, key.clone()));
        }
        if self.is_open && self.requested.insert(key.clone()) && !self.under_way.contains(&key) {
            self.waiting.push_back(key);
        }
    }

    fn next(&mut self) -> Option<Key> {
        while let Some((due, key)) = self.later.first().cloned()
            && due <= Instant::now()
        {
            self.request(key);
        }
        let key = self.waiting.pop_front()?;
        self.requested.remove(&key);
        self.under_way.insert(key.clone());
        Some(key)
    }

    fn done(&mut self, key: Key, again: Option<Duration>) {
        self.under_way.remove(&key);
        if self.requested.contains(&key) {
            self.waiting.push_back(key);
        } else if let Some(time) = again {
            let due = Instant::now() + time.min(MAX_DELAY);
            if time.is_zero() {
                self.request(key);
            } else {
                self.later.insert((due, key.clone()));
                self.scheduled.insert(key, due);
            }
        }
    }
}

/// Requests passes over objects of any of a controller's kinds.
#[derive(Clone)]
pub struct Triggers<R: 'static>(Arc<Kinds<R>>);

struct Kinds<R: 'static> {
    by_id: Mutex<ById<R>>,
    /// The namespaces whose objects are all to be reconciled.
    namespaces: Mutex<HashSet<String>>,
    namespace_added: Notify,
}

type ById<R> = HashMap<Arc<str>, Open<R>>;

/// A kind that is watched.
struct Open<R: 'static> {
    queue: Queue,
    objects: Arc<Cache<DynamicRow<R>>>,
}

impl<R: 'static> Default for Triggers<R> {
    fn default() -> Self {
        let (by_id, namespaces, namespace_added) = (Mutex::default(), Mutex::default(), Notify::default());
        Self(Arc::new(Kinds { by_id, namespaces, namespace_added }))
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
    pub fn objects(&self, id: &str) -> Vec<Arc<DynamicRow<R>>> {
        self.0.by_id.lock().get(id).map(|open| open.objects.filter(|_| true)).unwrap_or_default()
    }

    /// The object with this uid of the kind with this `id`, as its watch last delivered it.
    #[must_use]
    pub fn object(&self, id: &str, uid: &str) -> Option<Arc<DynamicRow<R>>> {
        let by_id = self.0.by_id.lock();
        by_id.get(id)?.objects.row(uid)
    }

    /// Whether the cluster serves the kind with this `id`.
    ///
    /// # Errors
    /// Why its objects may not all be known, if it is served.
    pub fn is_served(&self, id: &str) -> Result<bool, String> {
        let by_id = self.0.by_id.lock();
        match by_id.get(id) {
            None => Err("its watch has not begun".to_owned()),
            Some(open) if open.objects.watch().is_unserved() => Ok(false),
            Some(open) => open.objects.watch().problem().map_or(Ok(true), Err),
        }
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
                let is_asked = |object: &DynamicRow<R>| {
                    object.metadata.namespace.as_ref().is_some_and(|namespace| namespaces.contains(namespace))
                };
                queue.notify_all(&objects, is_asked).await;
            }
        }
    }

    /// From now on, requests for objects of a kind count.
    pub(crate) fn open(&self, kind: &DynamicKind<R>, queue: Queue, objects: Arc<Cache<DynamicRow<R>>>) {
        self.0.by_id.lock().insert(kind.id.clone(), Open { queue, objects });
    }

    /// Drops the queue and the rows of a kind that is no longer watched.
    pub(crate) fn close(&self, kind: &DynamicKind<R>) {
        self.0.by_id.lock().remove(&kind.id);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use kube::{api::ObjectMeta, discovery::ApiResource, runtime::watcher::Event};
    use operator_watch::WriteTarget;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    impl Queue {
        /// The name of the next object, whose pass begins; `None` if none is due.
        fn now(&self) -> Option<String> {
            self.next().now_or_never().map(|key| key.name.to_string())
        }

        fn ask(&self, object: &str) {
            self.notify("", object);
        }

        fn end(&self, object: &str, again: Option<Duration>) {
            self.done(key(object), again);
        }
    }

    fn key(object: &str) -> Key {
        Key { namespace: "".into(), name: object.into() }
    }

    fn asked(objects: &[&str]) -> Queue {
        let queue = Queue::default();
        queue.open();
        for object in objects {
            queue.ask(object);
        }
        queue
    }

    fn all(queue: &Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.now()).collect()
    }

    #[tokio::test]
    async fn objects_are_looked_at_in_the_order_in_which_they_were_asked_for_and_each_once() {
        assert_eq!(all(&asked(&["a", "b", "a", "c", "b"])), ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn what_is_requested_again_and_again_is_received_once_in_the_order_of_the_first_requests() {
        let queue = asked(&[]);
        for number in 0..15_000 {
            queue.ask(&(number % 60).to_string());
        }
        assert_eq!(queue.0.state.lock().waiting.len(), 60);
        assert_eq!(all(&queue), (0..60).map(|number| number.to_string()).collect::<Vec<_>>());
        queue.end("7", None);
        queue.ask("7");
        assert_eq!(all(&queue), ["7"], "it is a new request by now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_ends_the_wait_for_it() {
        let queue = asked(&[]);
        let later = async {
            sleep(Duration::from_secs(1)).await;
            queue.ask("a");
        };
        let received = async { tokio::join!(queue.next(), later).0 };
        assert_eq!(timeout(Duration::from_secs(2), received).await, Ok(key("a")));
        assert!(timeout(Duration::from_secs(1), queue.next()).await.is_err());
    }

    #[tokio::test]
    async fn requests_before_the_passes_begin_do_not_count() {
        let queue = Queue::default();
        queue.ask("a");
        queue.open();
        assert_eq!(queue.now(), None);
        queue.ask("a");
        assert_eq!(all(&queue), ["a"]);
    }

    #[tokio::test]
    async fn objects_of_the_same_name_in_other_namespaces_are_others() {
        let queue = asked(&["a"]);
        queue.notify("shop", "a");
        assert_eq!(queue.next().await, key("a"));
        assert_eq!(queue.next().await, Key { namespace: "shop".into(), name: "a".into() });
    }

    #[tokio::test]
    async fn an_object_that_is_asked_for_during_its_pass_comes_again_after_it_behind_the_others() {
        let queue = asked(&["a", "b"]);
        assert_eq!(queue.now().as_deref(), Some("a"));
        queue.ask("a");
        queue.ask("c");
        assert_eq!(all(&queue), ["b", "c"]);
        queue.end("a", Some(SOON));
        assert_eq!(queue.now().as_deref(), Some("a"));
        queue.end("a", None);
        assert_eq!((queue.now(), queue.0.state.lock().later.len()), (None, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_comes_again_after_its_time_or_when_it_is_asked_for_sooner() {
        let queue = asked(&["a", "b", "c"]);
        for object in all(&queue) {
            queue.end(&object, (object != "c").then_some(SOON));
        }
        queue.ask("b");
        assert_eq!(queue.now().as_deref(), Some("b"));
        let before = Instant::now();
        assert_eq!(queue.next().await, key("a"));
        assert!(before.elapsed() >= SOON);
        assert!(
            timeout(2 * SOON, queue.next()).await.is_err(),
            "what was asked for sooner does not come once more"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_beyond_all_years_is_as_good_as_any() {
        let queue = asked(&["a"]);
        queue.done(queue.next().await, Some(Duration::MAX));
        assert_eq!(queue.next().await, key("a"));
    }

    #[tokio::test]
    async fn what_goes_on_at_once_leaves_the_others_their_turn() {
        let queue = asked(&["a", "b"]);
        assert_eq!(queue.now().as_deref(), Some("a"));
        queue.end("a", Some(Duration::ZERO));
        assert_eq!(all(&queue), ["b", "a"]);
    }

    const KIND: &str = "gadgets";

    fn kind() -> DynamicKind<()> {
        let resource = ApiResource {
            group: "example.com".into(),
            version: "v1".into(),
            api_version: "example.com/v1".into(),
            kind: "Gadget".into(),
            plural: KIND.into(),
        };
        DynamicKind {
            id: KIND.into(),
            resource: resource.into(),
            selector: None,
            is_metadata_only: false,
            prune: Arc::new(|_| ()),
            fingerprint: String::new(),
        }
    }

    /// Begins to watch the kind. It needs a runtime.
    fn opened(triggers: &Triggers<()>) -> (Queue, Arc<Cache<DynamicRow<()>>>) {
        let (queue, filled) = (Queue::default(), Cache::unwatched());
        triggers.open(&kind(), queue.clone(), filled.clone());
        (queue, filled)
    }

    fn fill(filled: &Cache<DynamicRow<()>>, namespaces: usize, objects: usize) {
        let write_target = Arc::new(WriteTarget::unwatched(kind().resource));
        filled.apply(Event::Init);
        for number in 0..objects {
            let metadata = ObjectMeta {
                namespace: Some(format!("n{}", number % namespaces)),
                name: Some(format!("o{number}")),
                uid: Some(format!("u{number}")),
                ..ObjectMeta::default()
            };
            let object =
                DynamicRow { metadata, kind_id: KIND.into(), write_target: write_target.clone(), row: () };
            filled.apply(Event::InitApply(object));
        }
        filled.apply(Event::InitDone);
    }

    #[tokio::test(start_paused = true)]
    async fn each_object_of_the_asked_namespaces_is_looked_at_once_and_others_have_their_turn_meanwhile() {
        const NAMESPACES: usize = 500;
        const OBJECTS: usize = 20_000;
        let triggers = Triggers::default();
        let (queue, filled) = opened(&triggers);
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
            sleep(Duration::from_millis(1)).await;
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

    #[tokio::test]
    async fn nothing_is_kept_of_a_kind_that_is_not_watched_any_more() {
        let triggers = Triggers::default();
        let (queue, filled) = opened(&triggers);
        fill(&filled, 1, 1);
        let row = Arc::downgrade(&filled.filter(|_| true)[0]);
        triggers.close(&kind());
        drop((queue, filled));
        assert!(row.upgrade().is_none());
    }
}

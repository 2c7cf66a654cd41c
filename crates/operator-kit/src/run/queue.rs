//! The order of passes, as client-go's `workqueue` has it: first come, first served; an object waits only once, however
//! often it is requested; and there are never two passes over one object at once.

use std::{
    collections::{BTreeSet, HashMap, HashSet, VecDeque},
    future::pending,
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    select,
    sync::Notify,
    task::coop::consume_budget,
    time::{Instant, sleep, sleep_until},
};

use operator_watch::{ObjectId, Row, SharedRows};

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
    pub(crate) async fn notify_all<R: Row>(&self, objects: &SharedRows<R>, is_asked: impl Fn(&R) -> bool) {
        let mut asked = objects.read().all();
        asked.retain(|object| is_asked(object));
        for slice in asked.chunks(SLICE_SIZE) {
            for object in slice {
                self.notify_of(&**object);
            }
            sleep(SLICE_INTERVAL).await;
        }
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

#[cfg(test)]
mod tests {
    use futures::FutureExt;
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
}

//! The order of passes: first come, first served. An object waits only once, however often it is requested, and there
//! are never two passes over one object at once. client-go's `workqueue` has the same rules.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    future::poll_fn,
    hash::Hash,
    time::Duration,
};

use tokio_util::time::{DelayQueue, delay_queue::Key};

/// Longest delay of a requeued object: a [`DelayQueue`] allows two years at most, and an early pass finds nothing to
/// do.
const MAX_DELAY: Duration = Duration::from_secs(24 * 3600);

/// Objects that wait for a pass.
pub(super) struct WorkQueue<T> {
    /// In the order of their requests.
    waiting: VecDeque<T>,
    /// Those that wait, and those that are reconciled again after their current pass.
    asked: HashSet<T>,
    under_way: HashSet<T>,
    later: DelayQueue<T>,
    /// The key of each object in `later`.
    scheduled: HashMap<T, Key>,
}

impl<T> Default for WorkQueue<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            asked: HashSet::new(),
            under_way: HashSet::new(),
            later: DelayQueue::new(),
            scheduled: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash> WorkQueue<T> {
    /// Requests a pass over an object.
    pub fn ask(&mut self, object: T) {
        if let Some(key) = self.scheduled.remove(&object) {
            self.later.remove(&key);
        }
        if self.asked.insert(object.clone()) && !self.under_way.contains(&object) {
            self.waiting.push_back(object);
        }
    }

    /// The next object; its pass lasts until [`Self::done`].
    pub fn next(&mut self) -> Option<T> {
        let object = self.waiting.pop_front()?;
        self.asked.remove(&object);
        self.under_way.insert(object.clone());
        Some(object)
    }

    /// Records the end of a pass; another one follows after this time.
    pub fn done(&mut self, object: T, again: Option<Duration>) {
        self.under_way.remove(&object);
        if self.asked.contains(&object) {
            self.waiting.push_back(object);
        } else if let Some(time) = again {
            if time.is_zero() {
                self.ask(object);
            } else {
                let key = self.later.insert(object.clone(), time.min(MAX_DELAY));
                self.scheduled.insert(object, key);
            }
        }
    }

    /// Waits for the next object that becomes due; forever while there is none.
    pub async fn due(&mut self) -> T {
        loop {
            if let Some(expired) = poll_fn(|context| self.later.poll_expired(context)).await {
                let object = expired.into_inner();
                self.scheduled.remove(&object);
                return object;
            }
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn asked(objects: &[&'static str]) -> WorkQueue<&'static str> {
        let mut queue = WorkQueue::default();
        for object in objects {
            queue.ask(*object);
        }
        queue
    }

    #[tokio::test]
    async fn objects_are_looked_at_in_the_order_in_which_they_were_asked_for_and_each_once() {
        let mut queue = asked(&["a", "b", "a", "c", "b"]);
        let order: Vec<_> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(order, ["a", "b", "c"]);
    }

    #[tokio::test]
    async fn an_object_that_is_asked_for_during_its_pass_comes_again_after_it_behind_the_others() {
        let mut queue = asked(&["a", "b"]);
        assert_eq!(queue.next(), Some("a"));
        queue.ask("a");
        queue.ask("c");
        assert_eq!((queue.next(), queue.next(), queue.next()), (Some("b"), Some("c"), None));
        queue.done("a", Some(SOON));
        assert_eq!(queue.next(), Some("a"));
        queue.done("a", None);
        assert_eq!((queue.next(), queue.due().now_or_never()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn an_object_comes_again_after_its_time_or_when_it_is_asked_for_sooner() {
        let mut queue = asked(&["a", "b", "c"]);
        while let Some(object) = queue.next() {
            queue.done(object, (object != "c").then_some(SOON));
        }
        queue.ask("b");
        assert_eq!(queue.next(), Some("b"));
        let before = tokio::time::Instant::now();
        assert_eq!(queue.due().await, "a");
        assert!(before.elapsed() >= SOON);
        assert_eq!(queue.due().now_or_never(), None, "what was asked for sooner does not come once more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_time_beyond_all_years_is_as_good_as_any() {
        let mut queue = asked(&["a"]);
        let object = queue.next().unwrap();
        queue.done(object, Some(Duration::MAX));
        assert_eq!(queue.due().await, "a");
    }

    #[tokio::test]
    async fn what_goes_on_at_once_leaves_the_others_their_turn() {
        let mut queue = asked(&["a", "b"]);
        assert_eq!(queue.next(), Some("a"));
        queue.done("a", Some(Duration::ZERO));
        assert_eq!((queue.next(), queue.next()), (Some("b"), Some("a")));
    }
}

use std::{
    collections::{HashSet, VecDeque},
    hash::Hash,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Requests that nobody has received yet, in their order. A repeated one takes no room: a list of many rows requests the
/// same few owners.
pub(crate) struct Requests<T> {
    open: Mutex<Open<T>>,
    added: Notify,
}

/// Each request once.
struct Open<T> {
    in_order: VecDeque<T>,
    all: HashSet<T>,
}

impl<T> Default for Requests<T> {
    fn default() -> Self {
        let open = Open { in_order: VecDeque::new(), all: HashSet::new() };
        Self { open: Mutex::new(open), added: Notify::default() }
    }
}

impl<T: Clone + Eq + Hash> Requests<T> {
    /// Adds a request.
    pub fn add(&self, request: T) {
        let Open { in_order, all } = &mut *self.open.lock();
        if all.insert(request.clone()) {
            in_order.push_back(request);
        }
        self.added.notify_one();
    }

    /// Receives the first request, if there is one.
    pub fn first(&self) -> Option<T> {
        let Open { in_order, all } = &mut *self.open.lock();
        let first = in_order.pop_front()?;
        all.remove(&first);
        Some(first)
    }

    /// Waits for a request; there is one receiver.
    pub async fn next(&self) -> T {
        loop {
            if let Some(first) = self.first() {
                return first;
            }
            self.added.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{sleep, timeout};

    use super::*;

    #[tokio::test]
    async fn what_is_requested_again_and_again_is_received_once_in_the_order_of_the_first_requests() {
        let requests = Requests::default();
        for number in 0..15_000 {
            requests.add(number % 60);
        }
        assert_eq!(requests.open.lock().in_order.len(), 60);
        let received: Vec<_> = std::iter::from_fn(|| requests.first()).collect();
        assert_eq!(received, (0..60).collect::<Vec<_>>());
        requests.add(7);
        assert_eq!(requests.first(), Some(7), "it is a new request by now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_ends_the_wait_for_it() {
        let requests = Requests::default();
        let later = async {
            sleep(Duration::from_secs(1)).await;
            requests.add("a");
        };
        let received = async { tokio::join!(requests.next(), later).0 };
        assert_eq!(timeout(Duration::from_secs(2), received).await, Ok("a"));
        assert!(timeout(Duration::from_secs(1), requests.next()).await.is_err());
    }
}

use std::{future::ready, pin::pin, time::Duration};

use futures::{StreamExt, stream};
use tokio::time::Instant;

/// Time after which no further call is begun: the rest is left to a later pass, after those of other objects.
const LONGEST: Duration = Duration::from_secs(30);
/// Maximum number of concurrent calls.
const MAX_CONCURRENT_CALLS: usize = 32;
/// Number of failed calls, without a success, after which no further call is made.
const MAX_FAILURES: usize = 7;

/// The outcome of a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct Batch<T, E> {
    /// The number of successful calls.
    pub done: usize,
    /// The items whose call failed.
    pub failed: Vec<(T, E)>,
}

impl<T: Clone, E> Batch<T, E> {
    /// Runs a call for each item in batches of 1, 2, 4, …, as long as there is time.
    ///
    /// A failure for a reason of its own (`is_its_own`: a taken name, a pod that cannot be deleted) does not stop the
    /// others. A failure that would affect all others (a quota, a busy server) ends the run after its batch, and so do
    /// failures without any success: work that cannot succeed costs a few calls, not one for each item. Otherwise, the rule
    /// is that of kube-controller-manager's `slowStartBatch`.
    pub async fn run<F, Fut>(items: Vec<T>, call: F, is_its_own: impl Fn(&E) -> bool) -> Self
    where
        F: Fn(T) -> Fut,
        Fut: Future<Output = Result<(), E>>,
    {
        let mut items = items.into_iter();
        let mut size = 1;
        let until = Instant::now() + LONGEST;
        let mut ended = Self { done: 0, failed: Vec::new() };
        loop {
            let batch: Vec<_> = items.by_ref().take(size).collect();
            if batch.is_empty() {
                return ended;
            }
            // A call is begun only when its turn comes: those of a large batch would take megabytes.
            let in_time = stream::iter(batch).take_while(|_| ready(Instant::now() < until));
            let calls = in_time.map(|item| {
                let call = call(item.clone());
                async move { (item, call.await) }
            });
            let mut results = pin!(calls.buffer_unordered(MAX_CONCURRENT_CALLS));
            let mut goes_on = true;
            while let Some((item, result)) = results.next().await {
                match result {
                    Ok(()) => ended.done += 1,
                    Err(error) => {
                        goes_on &= is_its_own(&error);
                        ended.failed.push((item, error));
                    }
                }
            }
            if !goes_on || Instant::now() >= until || (ended.done == 0 && ended.failed.len() >= MAX_FAILURES)
            {
                return ended;
            }
            size *= 2;
        }
    }
}

impl<T, E> Batch<T, E> {
    /// The first error, for callers that need no other.
    ///
    /// # Errors
    /// When a call failed.
    pub fn all(self) -> Result<(), E> {
        self.failed.into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    #[tokio::test]
    async fn every_item_is_called_once_when_nothing_fails() {
        let calls = RefCell::new(Vec::new());
        let call = |item: i32| {
            calls.borrow_mut().push(item);
            async { Ok::<(), ()>(()) }
        };
        let ended = Batch::run((0..10).collect(), call, |()| false).await;
        assert_eq!(ended, Batch { done: 10, failed: Vec::new() });
        assert_eq!(calls.into_inner(), (0..10).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_too_long_is_left_to_a_later_pass_without_a_failure() {
        let call = async |_: i32| {
            tokio::time::sleep(Duration::from_secs(12)).await;
            Ok::<(), ()>(())
        };
        // Batches of 1, 2 and 4 take 36 s.
        let ended = Batch::run((0..100).collect(), call, |()| false).await;
        assert_eq!(ended, Batch { done: 7, failed: Vec::new() });
    }

    #[tokio::test]
    async fn a_call_is_begun_only_when_its_turn_comes() {
        let (begun, most) = (Cell::new(0), Cell::new(0));
        let call = |_: i32| {
            begun.set(begun.get() + 1);
            most.set(begun.get().max(most.get()));
            async {
                tokio::task::yield_now().await;
                begun.set(begun.get() - 1);
                Ok::<(), ()>(())
            }
        };
        let ended = Batch::run((0..500).collect(), call, |()| false).await;
        assert_eq!((ended.done, most.get()), (500, MAX_CONCURRENT_CALLS));
    }

    #[tokio::test]
    async fn what_would_meet_all_ends_it_after_its_batch() {
        let call = async |item: i32| if item >= 3 { Err(item) } else { Ok(()) };
        let ended = Batch::run((0..100).collect(), call, |_| false).await;
        assert_eq!((ended.done, ended.failed.len()), (3, 4));
        assert!(ended.all().is_err());
    }

    #[tokio::test]
    async fn what_fails_for_one_item_alone_stops_no_other() {
        let call = async |item: i32| if item % 10 == 0 { Err(item) } else { Ok(()) };
        let ended = Batch::run((0..100).collect(), call, |_| true).await;
        assert_eq!(ended.done, 90);
        let mut failed: Vec<_> = ended.failed.into_iter().map(|(item, _)| item).collect();
        failed.sort_unstable();
        assert_eq!(failed, (0..100).step_by(10).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn what_never_works_is_not_tried_for_each_item() {
        let ended = Batch::run((0..500).collect(), async |item: i32| Err(item), |_| true).await;
        assert_eq!((ended.done, ended.failed.len()), (0, MAX_FAILURES));
    }
}

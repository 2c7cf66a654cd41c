use futures::{StreamExt, stream};

/// How many calls run side by side at most.
const SIDE_BY_SIDE: usize = 32;

/// Runs a call for each item in batches of 1, 2, 4, …, and stops after the first batch with an error.
///
/// So what cannot work (a quota, a refused pod) costs one call, not one for each item. The same rule as
/// kube-controller-manager's `slowStartBatch`.
///
/// # Errors
/// The first error, after the calls of its batch have ended.
pub async fn slow_start<T, F, Fut, E>(items: Vec<T>, call: F) -> Result<(), E>
where
    F: Fn(T) -> Fut,
    Fut: Future<Output = Result<(), E>>,
{
    let mut items = items.into_iter();
    let mut size = 1;
    loop {
        let batch: Vec<_> = items.by_ref().take(size).map(&call).collect();
        if batch.is_empty() {
            return Ok(());
        }
        let results: Vec<_> = stream::iter(batch).buffer_unordered(SIDE_BY_SIDE).collect().await;
        results.into_iter().collect::<Result<(), E>>()?;
        size *= 2;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn every_item_is_called_once_when_nothing_fails() {
        let calls = RefCell::new(Vec::new());
        let call = |item: i32| {
            calls.borrow_mut().push(item);
            async { Ok::<(), ()>(()) }
        };
        slow_start((0..10).collect(), call).await.unwrap();
        assert_eq!(calls.into_inner(), (0..10).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn the_first_failing_batch_is_the_last_one() {
        let calls = RefCell::new(0);
        let call = |item: i32| {
            *calls.borrow_mut() += 1;
            async move { if item >= 3 { Err(item) } else { Ok(()) } }
        };
        assert_eq!(slow_start((0..100).collect(), call).await, Err(3));
        assert_eq!(calls.into_inner(), 1 + 2 + 4);
    }
}

//! Ends a task.

use tokio::task::{AbortHandle, yield_now};

/// Ends a task wherever it waits, and returns once it has dropped everything that it held. An abort alone only asks for that.
pub async fn cut_off(task: &AbortHandle) {
    task.abort();
    while !task.is_finished() {
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use tokio::task::JoinSet;

    use super::*;

    /// Notes that it is dropped.
    struct Held(Arc<AtomicBool>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn what_a_task_held_is_dropped_when_it_is_cut_off() {
        let is_dropped = Arc::<AtomicBool>::default();
        let (held, mut tasks) = (Held(is_dropped.clone()), JoinSet::new());
        let task = tasks.spawn(async move {
            let _held = held;
            pending::<()>().await;
        });
        yield_now().await;
        cut_off(&task).await;
        assert!(is_dropped.load(Ordering::Relaxed));
    }
}

//! The state of a proxy that its requests and its watches share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Client;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::state::State;

pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) namespace: Option<String>,
    pub(super) state: Mutex<State>,
    pub(super) crashes: mpsc::UnboundedSender<()>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_slow(&self) -> bool {
        Instant::now() < self.state().slow_until
    }

    /// Waits until requests are passed on.
    pub(super) async fn until_open(&self) {
        let (is_dying, stalled_until) = {
            let state = self.state();
            (state.is_dying, state.stalled_until)
        };
        if is_dying {
            std::future::pending::<()>().await;
        }
        sleep_until(stalled_until).await;
    }

    /// Waits until the present is shown.
    pub(super) async fn until_present(&self) {
        let until = self.state().travel.as_ref().map(|travel| travel.until);
        if let Some(until) = until {
            sleep_until(until).await;
        }
    }
}

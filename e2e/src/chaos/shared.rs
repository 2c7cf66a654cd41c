//! The state of a proxy that its requests and its watches share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::Client;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{plan::Ending, state::State};

/// The planned end of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// The door of the process.
    pub(super) door: usize,
    /// How it ends.
    pub(super) how: Ending,
}

pub(super) struct Shared {
    pub(super) client: Client,
    pub(super) namespace: Option<String>,
    pub(super) state: Mutex<State>,
    pub(super) ends: mpsc::UnboundedSender<End>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_slow(&self) -> bool {
        Instant::now() < self.state().slow_until
    }

    /// Waits until requests through a door are passed on; those of a process that ends never are.
    pub(super) async fn until_open(&self, door: usize) {
        let (is_shut, stalled_until) = {
            let state = self.state();
            (state.shut.contains(&door), state.stalled_until)
        };
        if is_shut {
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

use std::{mem::take, sync::Arc, time::Duration};

use kube::discovery::ApiResource;
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use crate::{ApiError, Cause};

/// Time of continuous failure of a watch after which the process is not ready.
pub(super) const FAILURE_TOLERANCE: Duration = Duration::from_secs(30);
/// How often one watch may requeue every object in [`REQUEUE_WINDOW`]: a start, an outage and its end.
pub(super) const MAX_REQUEUES: u32 = 3;
/// The time in which a watch that keeps failing and recovering may end all backoffs at most [`MAX_REQUEUES`] times.
pub(super) const REQUEUE_WINDOW: Duration = Duration::from_secs(60);
/// Time after which an unanswered list will never be answered, neither with a page nor with an error.
pub(super) const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(300);

/// The readiness of the process while a watch fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadinessRule {
    /// Not ready.
    #[default]
    Always,
    /// Ready while the cluster does not know the kind: another installation brings it, in any order, and may wait for this
    /// process. Objects that wait for the kind report that themselves.
    WhileServed,
    /// Ready: it is one kind of many, whose failure does not affect the others.
    Never,
}

/// What is known of one watch.
#[derive(Clone, Debug, Default)]
pub struct WatchState {
    /// The name of its kind in messages.
    pub kind: String,
    rule: ReadinessRule,
    listed: bool,
    /// The last failure, and the time of the first one since it worked.
    failing: Option<(ApiError, Instant)>,
    /// The time of the last answer to the current list.
    listing: Option<Instant>,
    /// Whether its kind is configured and may be watched in another version.
    pub is_in_any_version: bool,
    /// The version that is watched because the wanted one is not served.
    pub substitute: Option<Arc<ApiResource>>,
}

impl WatchState {
    /// Whether it has either delivered its list or failed once.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.listed || self.failing.is_some()
    }

    /// Whether it fails because the cluster does not serve its kind.
    #[must_use]
    pub fn is_unserved(&self) -> bool {
        self.failing.as_ref().is_some_and(|(error, _)| error.cause == Cause::KindNotServed)
    }

    /// Whether its kind is configured, and not served in the wanted version.
    pub(super) fn lacks_wanted_version(&self) -> bool {
        self.is_in_any_version && (self.substitute.is_some() || self.is_unserved())
    }

    /// Whether the process is not ready while the watch fails as it does now.
    pub(super) fn is_needed(&self) -> bool {
        match self.rule {
            ReadinessRule::Always => true,
            ReadinessRule::WhileServed => !self.is_unserved(),
            ReadinessRule::Never => false,
        }
    }

    /// The reason why its cache is unreliable, if it is.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        match &self.failing {
            Some((error, since))
                if !self.listed || self.is_unserved() || since.elapsed() > FAILURE_TOLERANCE =>
            {
                Some(error.to_string())
            }
            None if !self.listed => Some("waiting for the first list".into()),
            _ => None,
        }
    }

    /// The reason why it has been failing for some time, unless its kind is not served, which another installation may
    /// change in any order.
    pub(super) fn lasting_failure(&self) -> Option<ApiError> {
        let (error, since) = self.failing.as_ref().filter(|_| !self.is_unserved())?;
        (since.elapsed() > FAILURE_TOLERANCE).then(|| error.clone())
    }

    /// The time without an answer to its list, if that is longer than a list can take.
    pub(super) fn stalled(&self) -> Option<Duration> {
        self.listing.map(|since| since.elapsed()).filter(|silent| *silent > FIRST_LIST_TIMEOUT)
    }

    fn progressed(&mut self) {
        self.listing = self.listing.map(|_| Instant::now());
    }
}

/// Reports the state of one watch; the watch has ended when this is dropped.
pub struct WatchStatus {
    state: watch::Sender<WatchState>,
    requeue_epoch: watch::Sender<u64>,
    /// The begin of the current [`REQUEUE_WINDOW`], which comes while a requeue waits for it, and the number of requeues in it.
    window: (Instant, u32),
    /// Whether its kind may have a new definition since the last list.
    is_redefined: bool,
}

impl WatchStatus {
    pub(super) fn new(kind: &str, rule: ReadinessRule, requeue_epoch: watch::Sender<u64>) -> Self {
        let state = WatchState { kind: kind.to_owned(), rule, ..WatchState::default() };
        Self {
            state: watch::Sender::new(state),
            requeue_epoch,
            window: (Instant::now(), 0),
            is_redefined: false,
        }
    }

    /// The state, for its readers.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<WatchState> {
        self.state.subscribe()
    }

    /// Records that its kind may be watched in another version.
    pub fn in_any_version(&mut self) {
        self.state.send_modify(|state| state.is_in_any_version = true);
    }

    /// Records the version that is watched instead of the wanted one, if it is not that.
    pub fn substituted(&mut self, substitute: Option<Arc<ApiResource>>) {
        self.state.send_modify(|state| state.substitute = substitute);
    }

    /// Records the start of a list, which is unreliable until it is complete.
    pub fn listing(&mut self) {
        self.state.send_modify(|state| state.listing = state.listing.or_else(|| Some(Instant::now())));
    }

    /// Records the arrival of a part of the list.
    pub fn progressed(&mut self) {
        self.state.send_modify(WatchState::progressed);
    }

    /// Records that the list is complete. True if it was incomplete before, or the watch had failed.
    pub fn synced(&mut self) -> bool {
        let before = self.modify(|state| {
            (state.listed, state.listing, state.failing) = (true, None, None);
        });
        let news = !before.listed || before.failing.is_some();
        if take(&mut self.is_redefined) || news {
            self.requeue_all();
        }
        news
    }

    /// Records that its kind may have a new definition: what the former one refused is tried again after the next list.
    pub fn redefined(&mut self) {
        self.is_redefined = true;
    }

    /// Records that the watch works.
    pub fn alive(&mut self) {
        let before = self.modify(|state| state.failing = state.failing.take().filter(|_| !state.listed));
        // Nobody was told of a shorter failure, so that no pass has failed for it.
        if before.listed && before.problem().is_some() {
            self.requeue_all();
        }
    }

    /// Records a failure. True if it differs from the one before.
    pub fn failed(&mut self, error: ApiError) -> bool {
        let before = self.modify(|state| {
            if error.cause != Cause::Silent {
                state.progressed();
            }
            let since = state.failing.as_ref().map_or_else(Instant::now, |(_, since)| *since);
            state.failing = Some((error, since));
        });
        let was_served = before.listed && !before.is_unserved();
        let news = self.state.borrow().failing != before.failing;
        if was_served && self.state.borrow().is_unserved() && before.rule != ReadinessRule::Never {
            self.requeue_all();
        }
        news
    }

    /// Changes the state, and returns the one before.
    fn modify(&mut self, change: impl FnOnce(&mut WatchState)) -> WatchState {
        let before = self.state.borrow().clone();
        self.state.send_modify(change);
        before
    }

    /// Requeues every object, because earlier findings may be outdated: now, or when the current window is over.
    fn requeue_all(&mut self) {
        let (now, (since, requeues)) = (Instant::now(), self.window);
        if since > now {
            return;
        }
        let next = since + REQUEUE_WINDOW;
        if now <= next && requeues >= MAX_REQUEUES {
            self.window = (next, 1);
            let epoch = self.requeue_epoch.clone();
            tokio::spawn(async move {
                sleep_until(next).await;
                epoch.send_modify(|epoch| *epoch += 1);
            });
            return;
        }
        self.window = if now <= next { (since, requeues + 1) } else { (now, 1) };
        self.requeue_epoch.send_modify(|epoch| *epoch += 1);
    }
}

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use tokio::{sync::Notify, time::Instant};

/// Time of continuous failure of a watch after which the process is not ready.
pub(super) const FAILURE_TOLERANCE: Duration = Duration::from_secs(30);
/// How often one watch may requeue every object in [`REQUEUE_WINDOW`]: a start, an outage and its end.
pub(super) const MAX_REQUEUES: u32 = 3;
/// The time in which a watch that keeps failing and recovering may end all backoffs at most [`MAX_REQUEUES`] times.
pub(super) const REQUEUE_WINDOW: Duration = Duration::from_secs(60);
/// Time after which an unanswered list will never be answered, neither with a page nor with an error.
pub(super) const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(300);

/// The status of one watch.
#[derive(Debug, Default)]
pub(crate) struct WatchStatus(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    need: Need,
    listed: bool,
    ended: bool,
    failing: Option<Failing>,
    /// The time of the last answer to the current list.
    listing: Option<Instant>,
    /// The begin of the current [`REQUEUE_WINDOW`].
    window: Option<Instant>,
    /// The number of recoveries and losses in it.
    turns: u32,
    /// Another one is due as soon as it is allowed.
    is_owed: bool,
    epoch: Arc<AtomicU64>,
    changed: Arc<Notify>,
}

/// The readiness of the process while a watch fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Need {
    /// Not ready.
    #[default]
    Always,
    /// Ready while the cluster does not know the kind: another installation brings it, in any order, and may wait for this
    /// process. Objects that wait for the kind report that themselves.
    WhileServed,
    /// Ready: it is one kind of many, whose failure does not affect the others.
    Never,
}

/// Why a watch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchFailure {
    /// The cluster does not know its kind, so all its objects are gone.
    NotServed(String),
    /// No answer came in time.
    Silent(String),
    /// Anything else; it may pass before the watch misses a change.
    Other(String),
}

impl WatchFailure {
    /// The state and the remedy.
    pub fn text(&self) -> &str {
        let (Self::NotServed(text) | Self::Silent(text) | Self::Other(text)) = self;
        text
    }
}

#[derive(Debug)]
struct Failing {
    since: Instant,
    error: WatchFailure,
}

impl State {
    /// Records that earlier findings may be outdated.
    fn turned(&mut self) {
        if self.is_window_over() {
            (self.window, self.turns) = (Some(Instant::now()), 0);
        }
        self.is_owed = self.turns >= MAX_REQUEUES;
        if !self.is_owed {
            self.turns += 1;
            self.epoch.fetch_add(1, Ordering::Relaxed);
        }
        self.changed.notify_waiters();
    }

    fn is_window_over(&self) -> bool {
        self.window.is_none_or(|since| since.elapsed() > REQUEUE_WINDOW)
    }

    fn progressed(&mut self) {
        if let Some(listing) = &mut self.listing {
            *listing = Instant::now();
        }
    }

    fn is_not_served(&self) -> bool {
        self.failing.as_ref().is_some_and(|failing| matches!(failing.error, WatchFailure::NotServed(_)))
    }
}

impl WatchStatus {
    pub(super) fn new(need: Need, epoch: Arc<AtomicU64>, changed: Arc<Notify>) -> Self {
        Self(Mutex::new(State { need, epoch, changed, ..State::default() }))
    }

    /// Records the start of a list, which is unreliable until it is complete.
    pub fn listing(&self) {
        self.0.lock().listing.get_or_insert_with(Instant::now);
    }

    /// Records the arrival of a part of the list.
    pub fn progressed(&self) {
        self.0.lock().progressed();
    }

    /// Records that the list is complete. True if it was incomplete before, or the watch had failed.
    pub fn synced(&self) -> bool {
        let mut state = self.0.lock();
        let news = !state.listed || state.failing.is_some();
        state.listed = true;
        state.listing = None;
        state.failing = None;
        if news {
            state.turned();
        }
        news
    }

    /// Records that the watch works.
    pub fn alive(&self) {
        let mut state = self.0.lock();
        let was_not_served = state.is_not_served();
        if !state.listed {
            return;
        }
        let Some(failing) = state.failing.take() else { return };
        // Nobody was told of a shorter failure, so that no pass has failed for it.
        if was_not_served || failing.since.elapsed() > FAILURE_TOLERANCE {
            state.turned();
        } else {
            state.changed.notify_waiters();
        }
    }

    /// Whether it fails because the cluster does not serve its kind.
    pub fn is_unserved(&self) -> bool {
        let state = self.0.lock();
        !state.ended && state.is_not_served()
    }

    /// Waits until the first list is complete, or has failed, but no longer than `limit`.
    pub async fn first_list(&self, limit: Duration) {
        let changed = self.0.lock().changed.clone();
        let is_waiting = || {
            let state = self.0.lock();
            !state.listed && state.failing.is_none()
        };
        let ended = async {
            loop {
                let told = changed.notified();
                tokio::pin!(told);
                told.as_mut().enable();
                if !is_waiting() {
                    return;
                }
                told.await;
            }
        };
        // Whoever asks sees in the problem whether it has come.
        tokio::time::timeout(limit, ended).await.ok();
    }

    /// Records a failure. True if it differs from the one before.
    pub fn failed(&self, error: WatchFailure) -> bool {
        let mut state = self.0.lock();
        if !matches!(error, WatchFailure::Silent(_)) {
            state.progressed();
        }
        let (since, news) = match &state.failing {
            Some(failing) => (failing.since, failing.error != error),
            None => (Instant::now(), true),
        };
        let was_served = state.listed && !state.is_not_served();
        state.failing = Some(Failing { since, error });
        if was_served && state.is_not_served() && state.need != Need::Never {
            state.turned();
        } else {
            state.changed.notify_waiters();
        }
        news
    }

    pub fn ended(&self) {
        self.0.lock().ended = true;
    }

    /// The reason why its cache is unreliable, if it is.
    pub fn problem(&self) -> Option<String> {
        let state = self.0.lock();
        match (&state.failing, state.listed) {
            (Some(Failing { since, error }), listed)
                if !listed || state.is_not_served() || since.elapsed() > FAILURE_TOLERANCE =>
            {
                Some(error.text().to_owned())
            }
            (None, false) => Some("waiting for the first list".into()),
            _ => None,
        }
    }

    /// The reason why it has been failing for some time, unless its kind is not served, which another installation may
    /// change in any order.
    pub(super) fn lasting_failure(&self) -> Option<String> {
        let state = self.0.lock();
        let failing = state.failing.as_ref().filter(|_| !state.ended && !state.is_not_served())?;
        (failing.since.elapsed() > FAILURE_TOLERANCE).then(|| failing.error.text().to_owned())
    }

    /// The time without an answer to its list, if that is longer than a list can take.
    pub(super) fn stalled(&self) -> Option<Duration> {
        let state = self.0.lock();
        state.listing.map(|since| since.elapsed()).filter(|silent| *silent > FIRST_LIST_TIMEOUT)
    }

    /// Performs a deferred turn as soon as it is allowed.
    pub(super) fn catch_up(&self) {
        let mut state = self.0.lock();
        if state.is_owed && state.is_window_over() {
            state.turned();
        }
    }

    pub(super) fn is_needed(&self) -> bool {
        let state = self.0.lock();
        match state.need {
            _ if state.ended => false,
            Need::Always => true,
            Need::WhileServed => !state.is_not_served(),
            Need::Never => false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.lock().ended
    }

    pub(super) fn settled(&self) -> bool {
        let state = self.0.lock();
        state.ended || state.listed || state.failing.is_some()
    }
}

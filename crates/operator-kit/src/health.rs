use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

/// A watch that only failed for this long makes the process not ready.
const TOLERATED: Duration = Duration::from_secs(30);
/// A process whose main loop did not turn for this long is no more alive.
const HEARTBEAT: Duration = Duration::from_secs(60);

/// How one watch fares.
#[derive(Debug, Default)]
pub(crate) struct WatchStatus(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    optional: bool,
    listed: bool,
    ended: bool,
    failing: Option<Failing>,
    epoch: Option<Arc<AtomicU64>>,
    changed: Option<Arc<Notify>>,
}

#[derive(Debug)]
struct Failing {
    since: Instant,
    error: WatchFailure,
}

/// Why a watch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WatchFailure {
    /// The cluster does not know its kind: what there was of it is gone.
    NotServed(String),
    /// Anything else, which may pass before anything happens that it would have shown.
    Other(String),
}

impl WatchFailure {
    /// What is so, and what to do.
    pub fn text(&self) -> &str {
        let (Self::NotServed(text) | Self::Other(text)) = self;
        text
    }
}

impl State {
    fn turned(&self) {
        if let Some(epoch) = &self.epoch {
            epoch.fetch_add(1, Ordering::Relaxed);
        }
        self.tell();
    }

    fn tell(&self) {
        if let Some(changed) = &self.changed {
            changed.notify_waiters();
        }
    }

    fn is_not_served(&self) -> bool {
        self.failing.as_ref().is_some_and(|failing| matches!(failing.error, WatchFailure::NotServed(_)))
    }
}

impl WatchStatus {
    /// The list is complete. True when it was not before, or the watch had failed.
    pub fn synced(&self) -> bool {
        let mut state = self.lock();
        let news = !state.listed || state.failing.is_some();
        state.listed = true;
        state.failing = None;
        if news {
            state.turned();
        }
        news
    }

    /// The watch delivers, or at least has not failed again for longer than it would have taken.
    pub fn alive(&self) {
        let mut state = self.lock();
        if state.listed && state.failing.take().is_some() {
            state.turned();
        }
    }

    pub fn is_failing(&self) -> bool {
        self.lock().failing.is_some()
    }

    /// Whether it fails because the cluster does not serve its kind.
    pub fn is_unserved(&self) -> bool {
        let state = self.lock();
        !state.ended && state.is_not_served()
    }

    /// The watch failed. True when it fails otherwise than before.
    pub fn failed(&self, error: WatchFailure) -> bool {
        let mut state = self.lock();
        let (since, news) = match &state.failing {
            Some(failing) => (failing.since, failing.error != error),
            None => (Instant::now(), true),
        };
        let was_served = state.listed && !state.is_not_served();
        state.failing = Some(Failing { since, error });
        if was_served && state.is_not_served() && !state.optional {
            state.turned();
        } else {
            state.tell();
        }
        news
    }

    pub fn ended(&self) {
        self.lock().ended = true;
    }

    /// Why its cache cannot be relied on, if so.
    pub fn problem(&self) -> Option<String> {
        let state = self.lock();
        match (&state.failing, state.listed) {
            (Some(Failing { since, error }), listed)
                if !listed || state.is_not_served() || since.elapsed() > TOLERATED =>
            {
                Some(error.text().to_owned())
            }
            (None, false) => Some("the first list has not come yet; waiting for it".into()),
            _ => None,
        }
    }

    fn is_needed(&self) -> bool {
        let state = self.lock();
        !state.ended && !state.optional
    }

    fn settled(&self) -> bool {
        let state = self.lock();
        state.ended || state.listed || state.failing.is_some()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the process is ready and alive, made of one status for each watch and a heartbeat.
#[derive(Debug)]
pub(crate) struct Health {
    watches: Mutex<BTreeMap<String, Vec<Arc<WatchStatus>>>>,
    epoch: Arc<AtomicU64>,
    changed: Arc<Notify>,
    heartbeat: Mutex<Instant>,
    stopping: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            watches: Mutex::default(),
            epoch: Arc::default(),
            changed: Arc::default(),
            heartbeat: Mutex::new(Instant::now()),
            stopping: AtomicBool::new(false),
        }
    }
}

impl Health {
    /// A status for a new watch; while it fails, the process is not ready.
    pub fn watch(&self, kind: &str) -> Arc<WatchStatus> {
        self.add(kind, false)
    }

    /// A status for a new watch of one kind of many, without which the others go on.
    pub fn optional_watch(&self, kind: &str) -> Arc<WatchStatus> {
        self.add(kind, true)
    }

    fn add(&self, kind: &str, optional: bool) -> Arc<WatchStatus> {
        let state = State {
            optional,
            epoch: Some(self.epoch.clone()),
            changed: Some(self.changed.clone()),
            ..State::default()
        };
        let status = Arc::new(WatchStatus(Mutex::new(state)));
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = watches.entry(kind.to_owned()).or_default();
        of_kind.retain(|status| !status.lock().ended);
        of_kind.push(status.clone());
        status
    }

    /// Whether the newest watch of a kind fails because the cluster does not serve it.
    pub fn is_unserved(&self, kind: &str) -> bool {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.get(kind).and_then(|all| all.last()).is_some_and(|status| status.is_unserved())
    }

    /// Rises when a watch came (back) to life, or lost its kind: what was found out before may hold no more.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Waits until the epoch is another than `before`.
    pub async fn next_epoch(&self, before: u64) {
        loop {
            let changed = self.changed.notified();
            if self.epoch() != before {
                return;
            }
            changed.await;
        }
    }

    /// Waits until each watch has either delivered its list or failed once.
    pub async fn settled(&self) {
        loop {
            let changed = self.changed.notified();
            if self.statuses().iter().all(|(_, status)| status.settled()) {
                return;
            }
            changed.await;
        }
    }

    /// The main loop turned.
    pub fn beat(&self) {
        *self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The process is about to end.
    pub fn stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Why the process is not ready, a line for each watch; empty when it is.
    pub fn unready(&self) -> Vec<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return vec!["stopping".into()];
        }
        let problem = |(kind, status): (String, Arc<WatchStatus>)| {
            status.problem().map(|text| format!("{kind}: {text}"))
        };
        self.statuses().into_iter().filter(|(_, status)| status.is_needed()).filter_map(problem).collect()
    }

    /// Why the process is to be restarted, if so.
    pub fn dead(&self) -> Option<String> {
        let silent = self.heartbeat.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
        (silent > HEARTBEAT).then(|| format!("the main loop has not turned for {} s", silent.as_secs()))
    }

    fn statuses(&self) -> Vec<(String, Arc<WatchStatus>)> {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches
            .iter()
            .flat_map(|(kind, all)| all.iter().map(|status| (kind.clone(), status.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ready_means_that_every_watch_has_listed() {
        let health = Health::default();
        let (pods, sets) = (health.watch("Pod"), health.watch("Set"));
        pods.synced();
        assert_eq!(health.unready().len(), 1);
        sets.synced();
        assert!(health.unready().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_only_fails_makes_the_process_unready_and_recovers_with_the_next_event() {
        let health = Health::default();
        let pods = health.watch("Pod");
        pods.synced();
        pods.failed(refused());
        assert!(health.unready().is_empty(), "a short failure is tolerated");
        tokio::time::advance(TOLERATED + Duration::from_secs(1)).await;
        assert_eq!(health.unready(), ["Pod: connection refused"]);
        let before = health.epoch();
        pods.alive();
        assert!(health.unready().is_empty());
        assert!(health.epoch() > before, "what backed off meanwhile is tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_kind_is_settled_so_that_others_can_start() {
        let health = Health::default();
        let missing = health.watch("Child");
        missing.failed(not_served());
        health.settled().await;
        assert_eq!(health.unready(), ["Child: Child is not served"]);
        let before = health.epoch();
        missing.synced();
        assert!(health.epoch() > before, "what waited for it is tried again");
    }

    #[test]
    fn a_kind_that_is_taken_away_is_no_short_failure_and_all_is_looked_at_again_once() {
        let health = Health::default();
        let sets = health.watch("Child");
        sets.synced();
        sets.failed(refused());
        let before = health.epoch();
        sets.failed(not_served());
        assert_eq!(health.unready(), ["Child: Child is not served"]);
        assert_eq!(health.epoch(), before + 1);
        sets.failed(not_served());
        assert_eq!(health.epoch(), before + 1);
    }

    #[test]
    fn a_kind_without_which_the_others_go_on_can_be_taken_away_unheard() {
        let health = Health::default();
        let one_of_many = health.optional_watch("Secret");
        one_of_many.synced();
        let before = health.epoch();
        one_of_many.failed(not_served());
        assert_eq!(health.epoch(), before);
    }

    fn refused() -> WatchFailure {
        WatchFailure::Other("connection refused".into())
    }

    fn not_served() -> WatchFailure {
        WatchFailure::NotServed("Child is not served".into())
    }

    #[tokio::test(start_paused = true)]
    async fn a_main_loop_that_hangs_is_dead() {
        let health = Health::default();
        health.beat();
        assert_eq!(health.dead(), None);
        tokio::time::advance(HEARTBEAT + Duration::from_secs(1)).await;
        assert!(health.dead().is_some());
    }
}

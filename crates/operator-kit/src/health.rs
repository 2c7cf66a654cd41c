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
    failing: Option<(Instant, String)>,
    recoveries: Option<Arc<AtomicU64>>,
    changed: Option<Arc<Notify>>,
}

impl State {
    fn recovered(&self) {
        if let Some(recoveries) = &self.recoveries {
            recoveries.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(changed) = &self.changed {
            changed.notify_waiters();
        }
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
            state.recovered();
        }
        news
    }

    /// The watch delivers, or at least has not failed again for longer than it would have taken.
    pub fn alive(&self) {
        let mut state = self.lock();
        if state.listed && state.failing.take().is_some() {
            state.recovered();
        }
    }

    pub fn is_failing(&self) -> bool {
        self.lock().failing.is_some()
    }

    /// The watch failed. True when it fails otherwise than before.
    pub fn failed(&self, error: &str) -> bool {
        let mut state = self.lock();
        let (since, news) = match &state.failing {
            Some((since, before)) => (*since, before != error),
            None => (Instant::now(), true),
        };
        state.failing = Some((since, error.to_owned()));
        if let Some(changed) = &state.changed {
            changed.notify_waiters();
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
            (Some((since, error)), listed) if !listed || since.elapsed() > TOLERATED => Some(error.clone()),
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
    recoveries: Arc<AtomicU64>,
    changed: Arc<Notify>,
    heartbeat: Mutex<Instant>,
    stopping: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            watches: Mutex::default(),
            recoveries: Arc::default(),
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
            recoveries: Some(self.recoveries.clone()),
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

    /// Rises when a watch came (back) to life: what failed for want of it is tried again.
    pub fn recoveries(&self) -> u64 {
        self.recoveries.load(Ordering::Relaxed)
    }

    /// Waits until a watch came to life after `before` was read.
    pub async fn recovered(&self, before: u64) {
        loop {
            let changed = self.changed.notified();
            if self.recoveries() != before {
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
        pods.failed("connection refused");
        assert!(health.unready().is_empty(), "a short failure is tolerated");
        tokio::time::advance(TOLERATED + Duration::from_secs(1)).await;
        assert_eq!(health.unready(), ["Pod: connection refused"]);
        let before = health.recoveries();
        pods.alive();
        assert!(health.unready().is_empty());
        assert!(health.recoveries() > before, "what backed off meanwhile is tried again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_kind_is_settled_so_that_others_can_start() {
        let health = Health::default();
        let missing = health.watch("Child");
        missing.failed("Child is not served");
        health.settled().await;
        assert_eq!(health.unready(), ["Child: Child is not served"]);
        let before = health.recoveries();
        missing.synced();
        assert!(health.recoveries() > before, "what waited for it is tried again");
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

//! Whether the process is ready and alive.

mod watch_status;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::watch, time::Instant};

pub use self::watch_status::{ReadinessRule, WatchState, WatchStatus};

/// Time without a turn of the main loop after which the process is not alive.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for which the Lease may fail before it is a problem.
const ELECTION_TOLERANCE: Duration = Duration::from_secs(30);

/// Whether the process is ready and alive, from one status for each watch and a heartbeat.
pub struct Health {
    /// Rises when a watch recovers or loses its kind, and with the settings, because earlier findings may then be outdated.
    /// The rises of each watch are bounded, because each one ends the backoff of every object.
    pub requeue_epoch: watch::Sender<u64>,
    /// In the order of their kinds.
    watches: Mutex<Vec<watch::Receiver<WatchState>>>,
    process: Mutex<Process>,
}

struct Process {
    heartbeat: Instant,
    /// Why the Lease can neither be acquired nor renewed, and since when.
    election_failure: Option<(String, Instant)>,
    is_stopping: bool,
}

impl Default for Health {
    fn default() -> Self {
        let process = Process { heartbeat: Instant::now(), election_failure: None, is_stopping: false };
        Self {
            requeue_epoch: watch::Sender::default(),
            watches: Mutex::default(),
            process: Mutex::new(process),
        }
    }
}

impl Health {
    /// A status for a new watch, which has ended when the status is dropped.
    pub fn watch(&self, kind: &str, rule: ReadinessRule) -> WatchStatus {
        let status = WatchStatus::new(kind, rule, self.requeue_epoch.clone());
        let mut watches = self.watches.lock();
        let place = watches.partition_point(|state| *state.borrow().kind <= *kind);
        watches.insert(place, status.subscribe());
        status
    }

    /// Waits until each watch has either delivered its list or failed once.
    pub async fn settled(&self) {
        let unsettled = || self.watches().iter().find(|state| !state.borrow().is_settled()).cloned();
        while let Some(mut state) = unsettled() {
            // It fails only if the watch has ended.
            state.wait_for(WatchState::is_settled).await.ok();
        }
    }

    /// Records a turn of the main loop.
    pub fn beat(&self) {
        self.process.lock().heartbeat = Instant::now();
    }

    /// Records that the Lease can neither be acquired nor renewed.
    pub fn election_fails(&self, why: String) {
        let failure = &mut self.process.lock().election_failure;
        let since = failure.as_ref().map_or_else(Instant::now, |(_, since)| *since);
        *failure = Some((why, since));
    }

    /// Records that the Lease can be read and written.
    pub fn election_works(&self) {
        self.process.lock().election_failure = None;
    }

    /// The reason why the process cannot lead, if it has lasted for some time.
    pub fn election_problem(&self) -> Option<String> {
        let process = self.process.lock();
        let (why, since) = process.election_failure.as_ref()?;
        (since.elapsed() >= ELECTION_TOLERANCE).then(|| why.clone())
    }

    /// Records that the process is about to end.
    pub fn stopping(&self) {
        self.process.lock().is_stopping = true;
    }

    /// The reasons why the process is not ready, a line for each watch and the election; empty when it is ready.
    pub fn unready(&self) -> Vec<String> {
        if self.process.lock().is_stopping {
            return vec!["stopping".into()];
        }
        let unready = |state: &WatchState| {
            let problem = state.problem().filter(|_| state.is_needed())?;
            Some(format!("{}: {problem}", state.kind))
        };
        self.each(unready).into_iter().chain(self.election_problem()).collect()
    }

    /// The watches that have been failing for some time, although their kinds are served.
    pub fn lasting_failures(&self) -> BTreeSet<String> {
        self.each(WatchState::lasting_failure).into_iter().collect()
    }

    /// Whether each kind is observed: only if all its watches work.
    pub fn observed(&self) -> BTreeMap<String, bool> {
        let mut kinds = BTreeMap::new();
        for (kind, is_observed) in self.each(|state| Some((state.kind.clone(), state.problem().is_none()))) {
            *kinds.entry(kind).or_insert(true) &= is_observed;
        }
        kinds
    }

    /// The number of configured kinds that the cluster does not serve in the wanted version.
    pub fn unserved(&self) -> u64 {
        self.each(|state| state.lacks_wanted_version().then_some(())).len() as u64
    }

    /// The reason to restart the process, if there is one.
    pub fn dead(&self) -> Option<String> {
        let silent = self.process.lock().heartbeat.elapsed();
        if silent > HEARTBEAT_TIMEOUT {
            return Some(format!("the main loop has made no progress for {} s", silent.as_secs()));
        }
        let stalled = self.each(|state| {
            let silent = state.stalled().filter(|_| state.is_needed())?.as_secs();
            Some(format!("{}: the list request has not been answered for {silent} s", state.kind))
        });
        stalled.into_iter().next()
    }

    /// What is found about the watches that have not ended.
    fn each<T>(&self, found: impl Fn(&WatchState) -> Option<T>) -> Vec<T> {
        self.watches().iter().filter_map(|state| found(&state.borrow())).collect()
    }

    /// The watches that have not ended.
    fn watches(&self) -> MutexGuard<'_, Vec<watch::Receiver<WatchState>>> {
        let mut watches = self.watches.lock();
        watches.retain(|state| state.has_changed().is_ok());
        watches
    }
}

#[cfg(test)]
mod tests;

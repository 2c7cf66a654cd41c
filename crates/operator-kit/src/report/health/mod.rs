//! Whether the process is ready and alive.

mod watch_status;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use tokio::{sync::watch, time::Instant};

pub(crate) use self::watch_status::{Need, WatchState, WatchStatus};

/// Time without a turn of the main loop after which the process is not alive.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for which the Lease may fail before it is a problem.
const ELECTION_TOLERANCE: Duration = Duration::from_secs(30);

/// Whether the process is ready and alive, from one status for each watch and a heartbeat.
pub(crate) struct Health {
    /// Rises when a watch recovers or loses its kind, because earlier findings may then be outdated. The rises of each watch
    /// are bounded, because each one ends the backoff of every object.
    pub requeue_epoch: watch::Sender<u64>,
    /// In the order of their kinds.
    watches: Mutex<Vec<Watched>>,
    process: Mutex<Process>,
}

/// A watch whose loop has not ended.
struct Watched {
    kind: String,
    need: Need,
    state: watch::Receiver<WatchState>,
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
    pub fn watch(&self, kind: &str, need: Need) -> WatchStatus {
        let status = WatchStatus::new(need, self.requeue_epoch.clone());
        let mut watches = self.watches.lock();
        let place = watches.partition_point(|watch| *watch.kind <= *kind);
        watches.insert(place, Watched { kind: kind.to_owned(), need, state: status.subscribe() });
        status
    }

    /// Waits until each watch has either delivered its list or failed once.
    pub async fn settled(&self) {
        let unsettled = || {
            let watches = self.watches();
            watches.iter().map(|watch| watch.state.clone()).find(|state| !state.borrow().is_settled())
        };
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
        let watches = self.watches();
        let needed = watches.iter().filter(|watch| watch.is_needed());
        let problems = needed.filter_map(|Watched { kind, state, .. }| {
            let problem = state.borrow().problem()?;
            Some(format!("{kind}: {problem}"))
        });
        problems.chain(self.election_problem()).collect()
    }

    /// The watches that have been failing for some time, although their kinds are served.
    pub fn lasting_failures(&self) -> BTreeSet<String> {
        self.watches().iter().filter_map(|watch| watch.state.borrow().lasting_failure()).collect()
    }

    /// Whether each kind is observed: only if all its watches work.
    pub fn observed(&self) -> BTreeMap<String, bool> {
        let mut kinds = BTreeMap::new();
        for Watched { kind, state, .. } in &*self.watches() {
            *kinds.entry(kind.clone()).or_insert(true) &= state.borrow().problem().is_none();
        }
        kinds
    }

    /// The number of configured kinds that the cluster does not serve in the wanted version.
    pub fn unserved(&self) -> u64 {
        let is_unserved = |state: &WatchState| {
            state.is_in_any_version && (state.substitute.is_some() || state.is_unserved())
        };
        self.watches().iter().filter(|watch| is_unserved(&watch.state.borrow())).count() as u64
    }

    /// The reason to restart the process, if there is one.
    pub fn dead(&self) -> Option<String> {
        let silent = self.process.lock().heartbeat.elapsed();
        if silent > HEARTBEAT_TIMEOUT {
            return Some(format!("the main loop has made no progress for {} s", silent.as_secs()));
        }
        self.watches().iter().filter(|watch| watch.is_needed()).find_map(|Watched { kind, state, .. }| {
            let silent = state.borrow().stalled()?;
            Some(format!("{kind}: the list request has not been answered for {} s", silent.as_secs()))
        })
    }

    /// The watches that have not ended.
    fn watches(&self) -> MutexGuard<'_, Vec<Watched>> {
        let mut watches = self.watches.lock();
        watches.retain(|watch| watch.state.has_changed().is_ok());
        watches
    }
}

impl Watched {
    /// Whether the process is not ready while the watch fails as it does now.
    fn is_needed(&self) -> bool {
        match self.need {
            Need::Always => true,
            Need::WhileServed => !self.state.borrow().is_unserved(),
            Need::Never => false,
        }
    }
}

#[cfg(test)]
mod tests;

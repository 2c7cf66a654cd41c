//! Whether the process is ready and alive.

mod watch_status;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;

use tokio::{sync::Notify, time::Instant};

pub(crate) use self::watch_status::{Need, WatchFailure, WatchStatus};

/// Time without a turn of the main loop after which the process is not alive.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for which the Lease may fail before it is a problem.
const ELECTION_TOLERANCE: Duration = Duration::from_secs(30);

/// Whether the process is ready and alive, from one status for each watch and a heartbeat.
#[derive(Debug)]
pub(crate) struct Health {
    watches: Mutex<BTreeMap<String, Vec<Arc<WatchStatus>>>>,
    epoch: Arc<AtomicU64>,
    changed: Arc<Notify>,
    heartbeat: Mutex<Instant>,
    election: Mutex<Option<(String, Instant)>>,
    stopping: AtomicBool,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            watches: Mutex::default(),
            epoch: Arc::default(),
            changed: Arc::default(),
            heartbeat: Mutex::new(Instant::now()),
            election: Mutex::default(),
            stopping: AtomicBool::new(false),
        }
    }
}

impl Health {
    /// A status for a new watch.
    pub fn watch(&self, kind: &str, need: Need) -> Arc<WatchStatus> {
        let status = Arc::new(WatchStatus::new(need, self.epoch.clone(), self.changed.clone()));
        self.watches.lock().entry(kind.to_owned()).or_default().push(status.clone());
        status
    }

    /// Whether the newest watch of a kind fails because the cluster does not serve it.
    pub fn is_unserved(&self, kind: &str) -> bool {
        self.watches.lock().get(kind).and_then(|all| all.last()).is_some_and(|status| status.is_unserved())
    }

    /// A counter that rises when a watch recovers or loses its kind, because earlier findings may then be outdated. The
    /// rises of each watch are bounded, because each one ends the backoff of every object.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Waits until the epoch differs from `before`.
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

    /// Records a turn of the main loop.
    pub fn beat(&self) {
        for (_, status) in self.statuses() {
            status.catch_up();
        }
        *self.heartbeat.lock() = Instant::now();
    }

    /// Records that the Lease can neither be acquired nor renewed.
    pub fn election_fails(&self, why: String) {
        let mut election = self.election.lock();
        let since = election.as_ref().map_or_else(Instant::now, |(_, since)| *since);
        *election = Some((why, since));
    }

    /// Records that the Lease can be read and written.
    pub fn election_works(&self) {
        *self.election.lock() = None;
    }

    /// The reason why the process cannot lead, if it has lasted for some time.
    pub fn election_problem(&self) -> Option<String> {
        let election = self.election.lock();
        let (why, since) = election.as_ref()?;
        (since.elapsed() >= ELECTION_TOLERANCE).then(|| why.clone())
    }

    /// Records that the process is about to end.
    pub fn stopping(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The reasons why the process is not ready, a line for each watch and the election; empty when it is ready.
    pub fn unready(&self) -> Vec<String> {
        if self.stopping.load(Ordering::Relaxed) {
            return vec!["stopping".into()];
        }
        let problem = |(kind, status): (String, Arc<WatchStatus>)| {
            status.problem().map(|text| format!("{kind}: {text}"))
        };
        let needed = self.statuses().into_iter().filter(|(_, status)| status.is_needed());
        needed.filter_map(problem).chain(self.election_problem()).collect()
    }

    /// The watches that have been failing for some time, although their kinds are served.
    pub fn lasting_failures(&self) -> BTreeSet<String> {
        self.statuses().iter().filter_map(|(_, status)| status.lasting_failure()).collect()
    }

    /// Whether each kind is observed: only if all its watches work.
    pub fn observed(&self) -> BTreeMap<String, bool> {
        let mut kinds = BTreeMap::new();
        for (kind, status) in self.statuses() {
            *kinds.entry(kind).or_insert(true) &= status.problem().is_none();
        }
        kinds
    }

    /// The reason to restart the process, if there is one.
    pub fn dead(&self) -> Option<String> {
        let silent = self.heartbeat.lock().elapsed();
        if silent > HEARTBEAT_TIMEOUT {
            return Some(format!("the main loop has made no progress for {} s", silent.as_secs()));
        }
        self.statuses().into_iter().filter(|(_, status)| status.is_needed()).find_map(|(kind, status)| {
            let silent = status.stalled()?;
            Some(format!("{kind}: the list request has not been answered for {} s", silent.as_secs()))
        })
    }

    fn statuses(&self) -> Vec<(String, Arc<WatchStatus>)> {
        let mut watches = self.watches.lock();
        watches.retain(|_, of_kind| {
            of_kind.retain(|status| !status.has_ended());
            !of_kind.is_empty()
        });
        watches
            .iter()
            .flat_map(|(kind, all)| all.iter().map(|status| (kind.clone(), status.clone())))
            .collect()
    }
}

#[cfg(test)]
mod tests;

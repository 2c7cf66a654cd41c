//! Whether the watches of a process work.

mod watch_status;

use std::collections::BTreeMap;

use parking_lot::MutexGuard;
use tokio::sync::watch::Receiver;

pub use self::watch_status::{ReadinessRule, WatchState, WatchStatus};
use crate::{ApiError, Watches};

impl Watches {
    /// A status for a new watch, which has ended when the status is dropped.
    pub(crate) fn status(&self, kind: &str, rule: ReadinessRule) -> WatchStatus {
        let status = WatchStatus::new(kind, rule, self.requeue_epoch.clone());
        let mut all = self.states.lock();
        let place = all.partition_point(|state| *state.borrow().kind <= *kind);
        all.insert(place, status.subscribe());
        status
    }

    /// Waits until each watch has either delivered its list or failed once.
    pub async fn settled(&self) {
        let unsettled = || self.states().iter().find(|state| !state.borrow().is_settled()).cloned();
        while let Some(mut state) = unsettled() {
            // It fails only if the watch has ended.
            state.wait_for(WatchState::is_settled).await.ok();
        }
    }

    /// The reasons why the process is not ready, a line for each watch; empty when it is ready.
    #[must_use]
    pub fn unready(&self) -> Vec<String> {
        self.each(|state| {
            let problem = state.problem().filter(|_| state.is_needed())?;
            Some(format!("{}: {problem}", state.kind))
        })
    }

    /// The failures of the watches that have been failing for some time, although their kinds are served.
    #[must_use]
    pub fn lasting_failures(&self) -> Vec<ApiError> {
        self.each(WatchState::lasting_failure)
    }

    /// Whether each kind is observed: only if all its watches work.
    #[must_use]
    pub fn observed(&self) -> BTreeMap<String, bool> {
        let mut kinds = BTreeMap::new();
        for (kind, is_observed) in self.each(|state| Some((state.kind.clone(), state.problem().is_none()))) {
            *kinds.entry(kind).or_insert(true) &= is_observed;
        }
        kinds
    }

    /// The number of configured kinds that the cluster does not serve in the wanted version.
    #[must_use]
    pub fn unserved(&self) -> u64 {
        self.each(|state| state.lacks_wanted_version().then_some(())).len() as u64
    }

    /// A needed watch whose list will never be answered, which is a reason to restart the process.
    #[must_use]
    pub fn stalled(&self) -> Option<String> {
        let stalled = self.each(|state| {
            let silent = state.stalled().filter(|_| state.is_needed())?.as_secs();
            Some(format!("{}: the list request has not been answered for {silent} s", state.kind))
        });
        stalled.into_iter().next()
    }

    /// What is found about the watches that have not ended.
    fn each<T>(&self, found: impl Fn(&WatchState) -> Option<T>) -> Vec<T> {
        self.states().iter().filter_map(|state| found(&state.borrow())).collect()
    }

    /// The states of the watches that have not ended.
    fn states(&self) -> MutexGuard<'_, Vec<Receiver<WatchState>>> {
        let mut states = self.states.lock();
        states.retain(|state| state.has_changed().is_ok());
        states
    }
}

#[cfg(test)]
mod tests;

use std::time::Duration;

use operator_watch::Watches;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Time without a turn of the main loop after which the process is not alive.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for which the Lease may fail before it is a problem.
const ELECTION_TOLERANCE: Duration = Duration::from_secs(30);

/// Whether the process is ready and alive, from its watches, a heartbeat and the election.
pub(crate) struct Health {
    pub watches: Watches,
    process: Mutex<Process>,
}

struct Process {
    heartbeat: Instant,
    /// Why the Lease can neither be acquired nor renewed, and since when.
    election_failure: Option<(String, Instant)>,
    is_stopping: bool,
}

impl Health {
    pub fn new(watches: Watches) -> Self {
        let process = Process { heartbeat: Instant::now(), election_failure: None, is_stopping: false };
        Self { watches, process: Mutex::new(process) }
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
        self.watches.unready().into_iter().chain(self.election_problem()).collect()
    }

    /// The reason to restart the process, if there is one.
    pub fn dead(&self) -> Option<String> {
        let silent = self.process.lock().heartbeat.elapsed();
        if silent > HEARTBEAT_TIMEOUT {
            return Some(format!("the main loop has made no progress for {} s", silent.as_secs()));
        }
        self.watches.stalled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_main_loop_that_hangs_is_dead() {
        let health = Health::new(Watches::default());
        health.beat();
        assert_eq!(health.dead(), None);
        tokio::time::advance(HEARTBEAT_TIMEOUT + Duration::from_secs(1)).await;
        assert!(health.dead().is_some());
    }
}

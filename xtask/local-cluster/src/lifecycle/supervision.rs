//! What others do to a running cluster: they recognise its supervisor, look at its health, and take it down.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    os::unix::ffi::OsStrExt,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::{
    control_plane::{keeper::Kept, readiness},
    files, kubeconfig,
    local_cluster::LocalCluster,
    progress::Step,
    state::State,
};

/// Time limit of the supervisor, a little more than its slowest child may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// The state of a running cluster.
#[derive(Debug)]
pub struct Health {
    /// The supervisor's pid.
    pub supervisor: i32,
    /// The number of ready and of all nodes; an error is the reason why the cluster is not usable.
    pub nodes: Result<(usize, usize)>,
    /// Its setup; an error if it was set up by another version of this program.
    pub setup: Result<Setup>,
    /// The components of the control plane by name.
    pub components: BTreeMap<String, Kept>,
}

/// What stays the same as long as a cluster exists.
#[derive(Debug)]
pub struct Setup {
    /// The API server's URL.
    pub server: String,
    /// The directory in which the host runner finds programs named like images.
    pub bin_dir: PathBuf,
}

impl LocalCluster {
    /// Its health; `None` if it is not running.
    pub async fn health(&self) -> Option<Health> {
        let supervisor = self.supervisor().filter(|_| self.is_running())?;
        Some(Health {
            supervisor: supervisor.as_raw_nonzero().get(),
            nodes: nodes(self).await,
            setup: State::require(self).map(Setup::of),
            components: self.components(),
        })
    }

    /// Stops all of its processes and removes its data; returns false when there was nothing.
    pub fn take_down(&self) -> Result<bool> {
        if !self.exists() {
            return Ok(false);
        }
        let _lock = files::lock(&self.change_lock(), "brings the cluster up or down")?;
        // The other run may have taken it down.
        if !self.exists() {
            return Ok(false);
        }
        let step = Step::start(format!("taking down cluster {:?}", self.name()));
        let was_running = self.stop_supervisor(STOP_TIMEOUT, |last| step.note(last))?;
        files::remove_directory(self.directory())?;
        step.done(if was_running { "stopped, data removed" } else { "was not running, data removed" });
        Ok(true)
    }

    /// Whether a supervisor is running this cluster.
    pub(super) fn is_running(&self) -> bool {
        // The lock is decisive, because a pid file may be stale.
        File::open(self.supervisor_lock()).is_ok_and(|lock| lock.try_lock_shared().is_err())
    }

    /// The supervisor, if it is alive and belongs to this cluster.
    fn supervisor(&self) -> Option<Pid> {
        let pid: i32 = fs::read_to_string(self.supervisor_pid()).ok()?.trim().parse().ok()?;
        let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let program = command_line.split(|byte| *byte == 0).next()?;
        // A pid may be reused: only the copy of this program in this cluster's directory is ours.
        (program == self.supervisor_binary().as_os_str().as_bytes()).then(|| Pid::from_raw(pid)).flatten()
    }

    /// Ends the supervisor, and with it all processes of the cluster. True when there was one.
    pub(super) fn stop_supervisor(&self, patience: Duration, mut waiting: impl FnMut(&str)) -> Result<bool> {
        if !self.is_running() {
            return Ok(false);
        }
        let pid = self.supervisor().with_context(|| {
            let lock = self.supervisor_lock();
            let lock = lock.display();
            format!("something holds {lock} locked but is not this cluster's supervisor: see who with `fuser {lock}`")
        })?;
        kill_process(pid, Signal::TERM).context("could not signal the supervisor")?;
        let asked = Instant::now();
        while self.is_running() {
            if asked.elapsed() > patience {
                bail!(
                    "the supervisor (pid {pid}) did not end within {} s: read {}; as a last resort `kill -9 {pid}` ends it \
                     and all of its children",
                    patience.as_secs(),
                    self.log_of("supervisor").display(),
                    pid = pid.as_raw_nonzero()
                );
            }
            let log = fs::read_to_string(self.log_of("supervisor")).unwrap_or_default();
            let line = log.lines().next_back().unwrap_or_default();
            // Without its time.
            waiting(line.split_once(' ').map_or(line, |(_, text)| text));
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(true)
    }
}

impl Setup {
    fn of(state: State) -> Self {
        Self { server: state.addresses.server(), bin_dir: state.bin_dir }
    }
}

async fn nodes(cluster: &LocalCluster) -> Result<(usize, usize)> {
    let client = kubeconfig::client(&cluster.kubeconfig()).await.context("without a usable kubeconfig")?;
    ensure!(readiness::api_server_is_ready(&client).await, "the API server is not ready");
    readiness::nodes_ready(&client).await.context("its nodes could not be listed")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::again;

    #[test]
    fn a_cluster_that_another_run_takes_down_meanwhile_is_gone_without_an_error() {
        let cache = tempfile::tempdir().unwrap();
        let test = "lifecycle::supervision::tests::\
                    a_cluster_that_another_run_takes_down_meanwhile_is_gone_without_an_error";
        if !again::has(test, &[("CATENA_CACHE", cache.path().into())]) {
            return;
        }
        let cluster = LocalCluster::named("shared").unwrap();
        cluster.create().unwrap();
        let other = files::lock(&cluster.change_lock(), "is none").unwrap();
        let waiting = thread::spawn({
            let cluster = cluster.clone();
            move || cluster.take_down()
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        fs::remove_dir_all(cluster.directory()).unwrap();
        drop(other);
        assert!(!waiting.join().unwrap().unwrap());
    }
}

//! Keeps one component of the control plane running.

use std::{
    collections::BTreeMap,
    process::ExitStatus,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use super::components::Component;
use crate::{backoff::Backoff, explain::note, files, local_cluster::LocalCluster, own_program};

/// An API server needs several seconds to end its watches.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The state of one component's process.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Kept {
    /// `None` while it is down.
    pub pid: Option<u32>,
    /// The number of its restarts.
    pub restarts: u32,
}

/// The state of all components, in a file that `up` and `status` read.
pub struct Roster {
    cluster: LocalCluster,
    components: Mutex<BTreeMap<String, Kept>>,
}

impl Roster {
    pub fn new(cluster: LocalCluster) -> Self {
        Self { cluster, components: Mutex::default() }
    }

    fn set(&self, name: &str, kept: Kept) {
        let mut components = self.components.lock().unwrap_or_else(PoisonError::into_inner);
        components.insert(name.to_owned(), kept);
        let written = serde_json::to_vec_pretty(&*components)
            .map_err(Into::into)
            .and_then(|text| files::write_atomically(&self.cluster.components_file(), &text));
        if let Err(error) = written {
            note(&format!("could not note the state of {name}: {error:#}"));
        }
    }

    /// Runs the component until `stop`, and restarts it after each unexpected end.
    pub async fn keep(&self, component: Component, stop: CancellationToken) {
        let name = component.name;
        let mut restarts = 0;
        let mut backoff = Backoff::default();
        while !stop.is_cancelled() {
            let started = Instant::now();
            match self.spawn(&component) {
                Ok(mut process) => {
                    self.set(name, Kept { pid: process.id(), restarts });
                    note(&format!("{name} runs as pid {}", process.id().unwrap_or_default()));
                    let end = tokio::select! {
                        end = process.wait() => end,
                        () = stop.cancelled() => {
                            terminate(name, &mut process).await;
                            self.set(name, Kept { pid: None, restarts });
                            return;
                        }
                    };
                    note(&format!("{name} ended unexpectedly: {}", describe(end)));
                }
                Err(error) => note(&format!("{name} could not be started: {error:#}")),
            }
            restarts += 1;
            self.set(name, Kept { pid: None, restarts });
            tokio::select! {
                () = tokio::time::sleep(backoff.after(started.elapsed())) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    fn spawn(&self, component: &Component) -> Result<Child> {
        let Component { name, program, arguments, environment } = component;
        let mut command = own_program::child(&self.cluster.supervisor_binary(), program, arguments);
        command.env("HOME", self.cluster.directory());
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        own_program::spawn(command, program, &self.cluster.log_of(name))
    }
}

async fn terminate(name: &str, process: &mut Child) {
    let asked = Instant::now();
    if let Some(pid) = process.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
        // It may have ended by itself just now.
        kill_process(pid, Signal::TERM).ok();
    }
    if let Ok(end) = tokio::time::timeout(STOP_TIMEOUT, process.wait()).await {
        note(&format!("{name} stopped after {:.1} s: {}", asked.elapsed().as_secs_f64(), describe(end)));
        return;
    }
    note(&format!("{name} did not stop within {} s: killing it", STOP_TIMEOUT.as_secs()));
    process.kill().await.ok();
}

fn describe(end: std::io::Result<ExitStatus>) -> String {
    end.map_or_else(|error| error.to_string(), |status| status.to_string())
}

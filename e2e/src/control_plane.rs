//! The processes of a local cluster's control plane.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cluster::path_from;

/// A component of the control plane on this machine, such as `etcd` or `api-server`. It is started again when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component(Pid);

impl Component {
    /// The process that is running now.
    pub fn running(name: &str) -> Result<Self> {
        let file = path_from("CATENA_LOGS")?.with_file_name("components.json");
        let text = fs::read_to_string(&file).context("this test needs a local cluster")?;
        let components: Value = serde_json::from_str(&text)?;
        let pid = components[name]["pid"].as_i64().with_context(|| format!("{name} does not run"))?;
        Ok(Self(Pid::from_raw(i32::try_from(pid)?).context("0 is no process")?))
    }

    /// Sends it a signal.
    pub fn signal(self, signal: Signal) -> Result<()> {
        Ok(kill_process(self.0, signal)?)
    }
}

//! Takes down a cluster and removes its data.

use std::{
    fs::{self, File},
    time::Duration,
};

use anyhow::{Context, Result};

use super::supervision;
use crate::{home::Home, progress::Step};

/// Time limit of the supervisor, a little more than its slowest child may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// Stops all processes of the cluster and removes its data; returns false when there was nothing.
pub fn take_down(home: &Home) -> Result<bool> {
    if !home.exists() {
        return Ok(false);
    }
    let path = home.change_lock();
    let lock = File::create(&path).with_context(|| format!("could not create {}", path.display()))?;
    lock.lock().with_context(|| format!("could not lock {}", path.display()))?;
    let step = Step::start(format!("taking down cluster {:?}", home.name()));
    let was_running = supervision::stop_supervisor(home, STOP_TIMEOUT, |last| step.note(last))?;
    fs::remove_dir_all(home.directory())
        .with_context(|| format!("could not remove {}", home.directory().display()))?;
    step.done(if was_running { "stopped, data removed" } else { "was not running, data removed" });
    Ok(true)
}

//! Takes down a cluster and removes its data.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

use super::supervision;
use crate::{home::Home, lock, progress::Step};

/// Time limit of the supervisor, a little more than its slowest child may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(120);

/// Stops all processes of the cluster and removes its data; returns false when there was nothing.
pub fn take_down(home: &Home) -> Result<bool> {
    if !home.exists() {
        return Ok(false);
    }
    let _lock = lock::wait_for(&home.change_lock(), "brings the cluster up or down")?;
    // The other run may have taken it down.
    if !home.exists() {
        return Ok(false);
    }
    let step = Step::start(format!("taking down cluster {:?}", home.name()));
    let was_running = supervision::stop_supervisor(home, STOP_TIMEOUT, |last| step.note(last))?;
    fs::remove_dir_all(home.directory())
        .with_context(|| format!("could not remove {}", home.directory().display()))?;
    step.done(if was_running { "stopped, data removed" } else { "was not running, data removed" });
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::again;

    #[test]
    fn a_cluster_that_another_run_takes_down_meanwhile_is_gone_without_an_error() {
        let cache = tempfile::tempdir().unwrap();
        let test = "lifecycle::take_down::tests::\
                    a_cluster_that_another_run_takes_down_meanwhile_is_gone_without_an_error";
        if !again::has(test, &[("CATENA_CACHE", cache.path().into())]) {
            return;
        }
        let home = Home::of("shared").unwrap();
        home.create().unwrap();
        let other = lock::wait_for(&home.change_lock(), "is none").unwrap();
        let waiting = thread::spawn({
            let home = home.clone();
            move || take_down(&home)
        });
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        fs::remove_dir_all(home.directory()).unwrap();
        drop(other);
        assert!(!waiting.join().unwrap().unwrap());
    }
}

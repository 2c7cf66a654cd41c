//! Recognising and ending the supervisor of a cluster.

use std::{
    fs::{self, File},
    os::unix::ffi::OsStrExt,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::home::Home;

/// Whether a supervisor is running this cluster.
pub fn is_running(home: &Home) -> bool {
    // The lock is decisive, because a pid file may be stale.
    File::open(home.supervisor_lock()).is_ok_and(|lock| lock.try_lock_shared().is_err())
}

/// The supervisor's pid, if it is alive and belongs to this cluster.
pub fn supervisor_pid(home: &Home) -> Option<Pid> {
    let pid: i32 = fs::read_to_string(home.supervisor_pid()).ok()?.trim().parse().ok()?;
    let command_line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let program = command_line.split(|byte| *byte == 0).next()?;
    // A pid may be reused: only the copy of this program in this cluster's directory is ours.
    (program == home.supervisor_binary().as_os_str().as_bytes()).then(|| Pid::from_raw(pid)).flatten()
}

/// Ends the supervisor, and with it all processes of the cluster. True when there was one.
pub fn stop_supervisor(home: &Home, patience: Duration, mut waiting: impl FnMut(&str)) -> Result<bool> {
    if !is_running(home) {
        return Ok(false);
    }
    let pid = supervisor_pid(home).with_context(|| {
        format!(
            "something holds {} locked but is not this cluster's supervisor: see who with `fuser {}`",
            home.supervisor_lock().display(),
            home.supervisor_lock().display()
        )
    })?;
    kill_process(pid, Signal::TERM).context("could not signal the supervisor")?;
    let asked = Instant::now();
    while is_running(home) {
        if asked.elapsed() > patience {
            bail!(
                "the supervisor (pid {}) did not end within {} s: read {}; as a last resort `kill -9 {}` ends \
                 it and all of its children",
                pid.as_raw_nonzero(),
                patience.as_secs(),
                home.log_of("supervisor").display(),
                pid.as_raw_nonzero()
            );
        }
        waiting(&last_line(home));
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(true)
}

fn last_line(home: &Home) -> String {
    let log = fs::read_to_string(home.log_of("supervisor")).unwrap_or_default();
    let line = log.lines().next_back().unwrap_or_default();
    line.split_once(' ').map_or(line, |(_, text)| text).to_owned()
}

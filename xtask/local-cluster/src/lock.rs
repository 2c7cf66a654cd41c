//! Locks between the runs of this program.

use std::{fs::File, path::Path};

use anyhow::{Context, Result};

use crate::{files, progress::Step};

/// Locks a file until the result is dropped; a wait for whoever holds it is shown.
pub fn wait_for(path: &Path, holder: &str) -> Result<File> {
    let lock = files::create(path)?;
    if lock.try_lock().is_err() {
        let step = Step::start(format!("waiting for another run that {holder}"));
        lock.lock().with_context(|| format!("could not lock {}", path.display()))?;
        step.done("");
    }
    Ok(lock)
}

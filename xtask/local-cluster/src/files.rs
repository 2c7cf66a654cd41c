//! Files, with errors that name them.

use std::{
    fs::{self, File, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::progress::Step;

/// The text of a file.
pub fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()))
}

/// Replaces the content of a file.
pub fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    fs::write(path, content).with_context(|| format!("could not write {}", path.display()))
}

/// The same so that no reader sees half of it.
pub fn write_atomically(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let unfinished = path.with_extension("unfinished");
    write(&unfinished, content)?;
    fs::rename(&unfinished, path).with_context(|| format!("could not write {}", path.display()))
}

/// The same for a file that only its owner may read.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("could not write {}", path.display()))
}

/// An empty file to write to.
pub fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("could not create {}", path.display()))
}

/// Creates a directory and those above it, as far as they are missing.
pub fn create_directory(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("could not create {}", path.display()))
}

/// Removes a directory with everything in it.
pub fn remove_directory(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).with_context(|| format!("could not remove {}", path.display()))
}

/// Locks a file until the result is dropped; a wait for the other run that holds it is shown.
pub(crate) fn lock(path: &Path, holder: &str) -> Result<File> {
    let lock = create(path)?;
    if lock.try_lock().is_err() {
        let step = Step::start(format!("waiting for another run that {holder}"));
        lock.lock().with_context(|| format!("could not lock {}", path.display()))?;
        step.done("");
    }
    Ok(lock)
}

/// What is in a directory, by name.
pub fn list(path: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(path).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    let mut paths: Vec<PathBuf> = entries.with_context(|| format!("could not list {}", path.display()))?;
    paths.sort();
    Ok(paths)
}

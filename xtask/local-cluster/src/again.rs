//! Tests with variables of their own, which this process cannot set while others run.

use std::{ffi::OsString, fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

/// Set in the process that has the variables.
const IS_AGAIN: &str = "CATENA_TEST_AGAIN";

/// Whether this process is the one that [`passes`] has started.
pub fn is_here() -> bool {
    std::env::var_os(IS_AGAIN).is_some()
}

/// Whether this process has the variables; otherwise, `test` has just passed in one that has them.
pub fn has(test: &str, variables: &[(&str, OsString)]) -> bool {
    if is_here() {
        return true;
    }
    passes(&std::env::current_exe().unwrap(), test, variables);
    false
}

/// Runs a test of a copy of this program.
pub fn passes(copy: &Path, test: &str, variables: &[(&str, OsString)]) {
    let mut again = Command::new(copy);
    again.args(["--exact", test]).env(IS_AGAIN, "1");
    again.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Writes a program to a directory, and returns a PATH on which it comes first.
pub fn program(directory: &Path, name: &str, script: &str) -> OsString {
    let draft = directory.join("draft");
    fs::write(&draft, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755)).unwrap();
    // Another process writes it, because a child that some other test starts may hold a file of this one busy.
    assert!(Command::new("cp").arg(draft).arg(directory.join(name)).status().unwrap().success());
    let mut path = directory.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    path
}

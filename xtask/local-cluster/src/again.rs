//! Tests with variables of their own, which this process cannot set while others run.

use std::{ffi::OsString, process::Command};

/// Set in the process that has the variables.
const IS_AGAIN: &str = "CATENA_TEST_AGAIN";

/// Whether this process has the variables; otherwise, `test` has just passed in one that has them.
pub fn has(test: &str, variables: &[(&str, OsString)]) -> bool {
    if std::env::var_os(IS_AGAIN).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", test]).env(IS_AGAIN, "1");
    again.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    false
}

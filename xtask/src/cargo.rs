//! Runs cargo from a program that cargo started.

use std::process::Command;

use anyhow::Result;
use local_cluster::Interrupt;

use crate::workspace;

/// The variables by which cargo describes a program's package to it.
const OF_THIS_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Cargo in the checkout, without the variables about this package: build scripts read them, so that cargo here and
/// cargo by hand would rebuild each other's results.
pub fn command() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root());
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    for name in names.filter(|name| OF_THIS_PACKAGE.iter().any(|prefix| name.starts_with(prefix))) {
        command.env_remove(name);
    }
    command
}

/// Runs cargo in the checkout; its output is the progress.
pub async fn run(arguments: &[&str], interrupt: &Interrupt) -> Result<()> {
    interrupt.run(command().args(arguments)).await
}

/// Builds these programs as `cargo build` does, for a cluster of local processes.
pub async fn build(programs: &[String], interrupt: &Interrupt) -> Result<()> {
    let packages = programs.iter().flat_map(|program| ["--package", program]);
    interrupt.run(command().arg("build").args(packages)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_said_of_this_package_is_not_passed_on() {
        assert!(std::env::var_os("CARGO_PKG_NAME").is_some(), "cargo runs this test");
        let command = command();
        let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
        assert!(removed.iter().any(|(name, _)| *name == "CARGO_PKG_NAME"));
        assert!(removed.iter().any(|(name, _)| *name == "CARGO_MANIFEST_DIR"));
    }
}

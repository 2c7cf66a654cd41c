//! `cargo xtask kubectl` and `cargo xtask helm`

use std::{ffi::OsString, os::unix::process::CommandExt, process::Command};

use anyhow::{Context, Result};

use crate::{
    cluster::{home::Home, state::State},
    toolchain::Tool,
};

/// Becomes the tool, pointed at the cluster; returns only when that fails.
pub fn run(name: &str, tool: Tool, arguments: &[OsString]) -> Result<()> {
    let home = Home::of(name)?;
    let state = State::require(&home)?;
    let program = state.toolchain.path(tool)?;
    let error = Command::new(program).args(arguments).env("KUBECONFIG", home.kubeconfig()).exec();
    Err(error).with_context(|| format!("could not run {}", program.display()))
}

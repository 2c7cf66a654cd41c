//! `cargo xtask kubeconfig`

use anyhow::Result;

use crate::cluster::{home::Home, state::State};

/// Prints the path of the administrator's kubeconfig.
pub fn run(name: &str) -> Result<()> {
    let home = Home::of(name)?;
    State::require(&home)?;
    println!("{}", home.kubeconfig().display());
    Ok(())
}

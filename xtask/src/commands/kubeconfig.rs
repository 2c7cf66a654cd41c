//! `cargo xtask kubeconfig`

use anyhow::Result;

use crate::access::Access;

/// Prints the path of the administrator's kubeconfig.
pub fn run(name: &str) -> Result<()> {
    println!("{}", Access::of(name)?.kubeconfig.display());
    Ok(())
}

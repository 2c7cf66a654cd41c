//! `cargo xtask kubeconfig`

use anyhow::Result;

use crate::cluster::Cluster;

/// Prints the path of the administrator's kubeconfig.
pub fn run(name: &str) -> Result<()> {
    println!("{}", Cluster::named(name)?.access.kubeconfig.display());
    Ok(())
}

//! `cargo xtask toolchain`

use anyhow::Result;
use local_cluster::Toolchain;

/// Builds the missing tools and prints all paths.
pub async fn run() -> Result<()> {
    for (name, path) in Toolchain::provide().await?.iter() {
        println!("{name:<24} {}", path.display());
    }
    Ok(())
}

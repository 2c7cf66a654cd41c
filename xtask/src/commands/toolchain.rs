//! `cargo xtask toolchain`

use anyhow::Result;
use local_cluster::Toolchain;

/// Downloads or builds the missing tools, and prints where each is and comes from.
pub async fn run() -> Result<()> {
    for (name, path, source) in Toolchain::provide().await?.iter() {
        println!("{name:<24} {} ({source})", path.display());
    }
    Ok(())
}

//! `cargo xtask toolchain`

use anyhow::Result;
use local_cluster::Toolchain;

/// Builds what is missing and says where everything lies.
pub fn run() -> Result<()> {
    for (name, path) in Toolchain::provide()?.iter() {
        println!("{name:<24} {}", path.display());
    }
    Ok(())
}

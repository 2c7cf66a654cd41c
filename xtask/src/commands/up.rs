//! `cargo xtask up`

use std::{path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use local_cluster::{LocalCluster, Wanted, seconds};

use crate::workspace::{self, Profile};

/// The options of the cluster.
#[derive(clap::Args)]
pub struct Options {
    /// Minimum number of fake nodes
    #[arg(long, default_value_t = 3)]
    nodes: u32,
    /// Directory in which the host runner finds binaries named like images [default: the workspace's target/debug]
    #[arg(long, value_name = "DIRECTORY")]
    bin_dir: Option<PathBuf>,
}

/// Starts the cluster and explains its use.
pub async fn run(name: &str, options: Options) -> Result<()> {
    let started = Instant::now();
    let cluster = LocalCluster::named(name)?;
    let bin_dir = options
        .bin_dir
        .map(|path| std::path::absolute(&path).with_context(|| format!("odd path {}", path.display())))
        .transpose()?;
    let default_bin_dir = workspace::binaries(Profile::Development)?;
    let wanted = Wanted { nodes: options.nodes, bin_dir, default_bin_dir };
    let newly = cluster.bring_up(&wanted).await?;
    let flag = if name == "default" { String::new() } else { format!(" --name {name}") };
    if newly {
        println!("cluster {name:?} is up after {}", seconds(started.elapsed()));
    } else {
        println!("cluster {name:?} was up already");
    }
    println!("  cargo xtask kubectl{flag} get nodes");
    println!("  export KUBECONFIG={}", cluster.kubeconfig().display());
    println!("  cargo xtask down{flag}");
    Ok(())
}

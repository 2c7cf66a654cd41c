//! `cargo xtask down`

use std::path::Path;

use anyhow::Result;
use local_cluster::{KindCluster, LocalCluster, kind_problem};

/// Takes down one cluster, the demo's on kind if there is no local one with that name; or all.
pub fn run(name: &str, all: bool) -> Result<()> {
    let (locals, kinds) = match LocalCluster::named(name)? {
        _ if all => (LocalCluster::all()?, KindCluster::known()?),
        local if local.exists() => (vec![local], Vec::new()),
        _ => (Vec::new(), vec![KindCluster::named(name)?]),
    };
    let mut gone = Vec::new();
    for local in locals {
        if local.take_down()? {
            gone.push(local.kubeconfig());
        }
    }
    for kind in kinds.iter().filter(|kind| kind.is_known()) {
        kind.delete()?;
        gone.push(kind.kubeconfig());
    }
    if let [kind] = &kinds[..]
        && gone.is_empty()
        && kind_problem().is_none()
    {
        kind.ensure_known()?;
    }
    if gone.is_empty() {
        println!("there is no cluster{}", if all { String::new() } else { format!(" {name:?}") });
    }
    if let Some(current) = std::env::var_os("KUBECONFIG")
        && gone.iter().any(|gone| gone == Path::new(&current))
    {
        println!("its kubeconfig is gone, too: `unset KUBECONFIG`");
    }
    Ok(())
}

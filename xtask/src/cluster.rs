//! A cluster of any kind with installed charts.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use local_cluster::{Access, KindCluster, LocalCluster};

use crate::workspace;

/// The access to a cluster, and the values of the charts on it.
#[derive(Clone, Debug)]
pub struct Cluster {
    pub access: Access,
    /// Values of all charts: a file for all, or a directory with a file for each.
    pub values: PathBuf,
}

impl Cluster {
    /// The cluster of `--name`: a local one, otherwise the demo's cluster on kind.
    ///
    /// # Errors
    /// When there is neither.
    pub fn named(name: &str) -> Result<Self> {
        let (local, kind) = (LocalCluster::named(name)?, KindCluster::named(name)?);
        if !local.exists() && kind.is_known() {
            return Self::on_kind(&kind);
        }
        ensure_set_up(&local)?;
        Self::local(&local)
    }

    /// A cluster of local processes.
    pub fn local(cluster: &LocalCluster) -> Result<Self> {
        Ok(Self { access: cluster.access()?, values: workspace::local_values() })
    }

    /// A cluster on kind.
    pub fn on_kind(cluster: &KindCluster) -> Result<Self> {
        Ok(Self { access: cluster.access()?, values: workspace::kind_values() })
    }

    /// The file of values with which a chart is installed.
    pub fn values_of(&self, chart: &str) -> PathBuf {
        if self.values.is_dir() { self.values.join(format!("{chart}.yaml")) } else { self.values.clone() }
    }
}

/// Refuses a local cluster that was never brought up.
pub fn ensure_set_up(cluster: &LocalCluster) -> Result<()> {
    let name = cluster.name();
    ensure!(
        cluster.is_set_up(),
        "there is no local cluster {name:?}: `cargo xtask demo --name {name}` starts one and installs the charts, `cargo \
         xtask up --name {name}` starts an empty one"
    );
    Ok(())
}

//! A cluster of any kind with installed charts.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    path::PathBuf,
};

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

/// A name for what one run makes and removes. Containers that share a Docker daemon or a cache may have the same pid.
pub fn temporary_name(purpose: &str) -> String {
    let random = RandomState::new().build_hasher().finish();
    format!("{purpose}-{}-{:08x}", std::process::id(), random >> 32)
}

/// A new local cluster for a run that takes it down afterwards.
pub fn temporary(purpose: &str) -> Result<LocalCluster> {
    new(&temporary_name(purpose))
}

/// Refuses a name of a local cluster that exists: this run would continue with its data, and delete it.
fn new(name: &str) -> Result<LocalCluster> {
    let cluster = LocalCluster::named(name)?;
    ensure!(
        !cluster.exists(),
        "there is a local cluster {name:?} already: `cargo xtask down --name {name}` removes it"
    );
    Ok(cluster)
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

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use super::*;

    #[test]
    fn two_runs_with_the_same_pid_have_different_names() {
        let [one, other] = [temporary_name("bench"), temporary_name("bench")];
        assert_ne!(one, other);
        assert!(one.starts_with(&format!("bench-{}-", std::process::id())), "{one}");
        let longest = one.len() - std::process::id().to_string().len() + "4194304".len();
        assert!(longest <= 40, "{one} could be too long for a cluster");
    }

    #[test]
    fn a_run_does_not_adopt_a_cluster_that_is_left() {
        const AGAIN: &str = "CATENA_TEST_AGAIN";
        if std::env::var_os(AGAIN).is_some() {
            assert!(new("left").unwrap_err().to_string().contains("down --name left"));
            new("new").unwrap();
            return;
        }
        let cache = tempfile::tempdir().unwrap();
        fs::create_dir_all(cache.path().join("clusters/left")).unwrap();
        // Variables of this process cannot be set while other tests run.
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cluster::tests::a_run_does_not_adopt_a_cluster_that_is_left"])
            .env(AGAIN, "1")
            .env("CATENA_CACHE", cache.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
}

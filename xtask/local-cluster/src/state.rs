//! The setup of a cluster: written when it is brought up, read by everything else.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::{files, local_cluster::LocalCluster, toolchain::Toolchain};

/// The fixed facts of one cluster.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct State {
    pub addresses: Addresses,
    /// The directory in which the host runner finds the binaries for images.
    pub bin_dir: PathBuf,
    pub toolchain: Toolchain,
}

/// The ports on 127.0.0.1 and the range of loopback addresses that only this cluster uses.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub struct Addresses {
    pub etcd: u16,
    pub etcd_peer: u16,
    pub api_server: u16,
    pub controller_manager: u16,
    pub scheduler: u16,
    /// Pods on the host runner's node get addresses in 127.`pods`.0.0/16.
    pub pods: u8,
}

impl Addresses {
    /// The API server's URL.
    pub fn server(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_server)
    }

    /// All ports, so that other clusters avoid them.
    pub fn ports(&self) -> [u16; 5] {
        [self.etcd, self.etcd_peer, self.api_server, self.controller_manager, self.scheduler]
    }
}

impl State {
    /// Reads the state, if the cluster has one.
    pub fn read(cluster: &LocalCluster) -> Result<Option<Self>> {
        let path = cluster.state_file();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("could not read {}", path.display())),
        };
        let state = serde_json::from_str(&text).with_context(|| {
            format!(
                "could not understand {}: another version of this program wrote it; take the cluster {:?} down and bring \
                 it up again",
                path.display(),
                cluster.name()
            )
        })?;
        Ok(Some(state))
    }

    /// Reads the state of a cluster that must exist.
    pub fn require(cluster: &LocalCluster) -> Result<Self> {
        Self::read(cluster)?.with_context(|| format!("there is no local cluster {:?}", cluster.name()))
    }

    /// Writes the state.
    pub fn write(&self, cluster: &LocalCluster) -> Result<()> {
        files::write_atomically(&cluster.state_file(), serde_json::to_vec_pretty(self)?)
    }
}

//! The common state of all pods of the node.

use std::path::PathBuf;

use kube::Client;

use super::pod_addresses::PodAddresses;
use crate::{home::Home, state::State};

/// The node whose pods are processes of this machine.
pub const NODE_NAME: &str = "catena-host";
/// The node's own address.
pub const HOST_IP: &str = "127.0.0.1";

/// The cluster of the node, and the addresses of its pods.
pub struct Runner {
    pub client: Client,
    pub home: Home,
    pub server_port: u16,
    pub addresses: PodAddresses,
}

impl Runner {
    /// The present directory of binaries, which another `up` may change while the cluster is running.
    pub fn bin_dir(&self) -> PathBuf {
        State::read(&self.home).ok().flatten().map(|state| state.bin_dir).unwrap_or_default()
    }
}

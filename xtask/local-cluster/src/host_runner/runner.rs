//! What all pods of the node share.

use std::path::PathBuf;

use kube::Client;

use super::pod_addresses::PodAddresses;
use crate::{home::Home, state::State};

/// The node whose pods are processes of this machine.
pub const NODE_NAME: &str = "catena-host";
/// The node's own address.
pub const HOST_IP: &str = "127.0.0.1";

/// The cluster that the node is part of, and the addresses that its pods have.
pub struct Runner {
    pub client: Client,
    pub home: Home,
    pub server_port: u16,
    pub addresses: PodAddresses,
}

impl Runner {
    /// Where binaries are looked up now: bringing the cluster up again may change it while it runs.
    pub fn bin_dir(&self) -> PathBuf {
        State::read(&self.home).ok().flatten().map(|state| state.bin_dir).unwrap_or_default()
    }
}

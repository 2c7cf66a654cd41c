//! Runs the pods of one real node as local processes, like a kubelet, without containers.
//!
//! Pods are written as for any node; this turns them into processes with the
//! pods' arguments, environment, volumes, ServiceAccount token and probes.

mod atomic_directory;
mod container;
mod environment;
mod image;
mod mounts;
mod node;
mod pod;
mod pod_addresses;
mod pods;
mod probe;
mod process;
mod publisher;
mod refusal;
mod service_names;
mod shutdown;
mod status;
mod volumes;

use std::{path::PathBuf, sync::Arc};

use kube::Client;
use tokio_util::sync::CancellationToken;

use self::pod_addresses::PodAddresses;
use crate::{explain::note, kubeconfig, local_cluster::LocalCluster, state::State};

pub use publisher::PID_ANNOTATION;

/// The node whose pods are processes of this machine.
pub const NODE_NAME: &str = "catena-host";
/// The node's own address.
const HOST_IP: &str = "127.0.0.1";

/// The cluster of the node, and the addresses of its pods.
struct Runner {
    client: Client,
    cluster: LocalCluster,
    server_port: u16,
    addresses: PodAddresses,
}

impl Runner {
    /// The present directory of binaries, which another `up` may change while the cluster is running.
    fn bin_dir(&self) -> PathBuf {
        State::read(&self.cluster).ok().flatten().map(|state| state.bin_dir).unwrap_or_default()
    }
}

/// Acts as the node until `stop`, then ends its processes.
pub async fn run(cluster: &LocalCluster, state: &State, stop: CancellationToken) {
    let client = match kubeconfig::client(&cluster.kubeconfig_of("host-runner")).await {
        Ok(client) => client,
        Err(error) => {
            note(&format!("the host runner has no client: {error:#}"));
            return;
        }
    };
    let runner = Arc::new(Runner {
        client: client.clone(),
        cluster: cluster.clone(),
        server_port: state.addresses.api_server,
        addresses: PodAddresses::new(state.addresses.pods),
    });
    tokio::join!(stop.run_until_cancelled(node::keep_ready(&client)), pods::run(runner, stop.clone()));
}

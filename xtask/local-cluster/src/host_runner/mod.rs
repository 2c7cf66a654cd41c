//! Runs the pods of one real node as local processes, like a kubelet, without containers.
//!
//! Pods are written as for any node; this turns them into processes with the
//! pods' arguments, environment, volumes, ServiceAccount token and probes.

mod atomic_directory;
mod backoff;
mod board;
mod config_maps;
mod container;
mod downward;
mod environment;
mod image;
mod last_words;
mod mounts;
mod node;
mod pod;
mod pod_addresses;
mod pod_status;
mod pods;
mod probe;
mod probe_attempt;
mod process;
mod publisher;
mod refusal;
mod restart_policy;
mod runner;
mod sandbox;
mod service_names;
mod shutdown;
mod token;
mod variables;
mod volume_payload;
mod volumes;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::{pod_addresses::PodAddresses, runner::Runner};
use crate::{home::Home, journal::note, kubeconfig, state::State};

pub use publisher::PID_ANNOTATION;
pub use runner::NODE_NAME;

/// Acts as the node until `stop`, then ends its processes.
pub async fn run(home: &Home, state: &State, stop: CancellationToken) {
    let client = match kubeconfig::client(&home.kubeconfig_of("host-runner")).await {
        Ok(client) => client,
        Err(error) => {
            note(&format!("the host runner has no client: {error:#}"));
            return;
        }
    };
    let runner = Arc::new(Runner {
        client: client.clone(),
        home: home.clone(),
        server_port: state.addresses.api_server,
        addresses: PodAddresses::new(state.addresses.pods),
    });
    tokio::join!(stop.run_until_cancelled(node::keep_ready(&client)), pods::run(runner, stop.clone()));
}

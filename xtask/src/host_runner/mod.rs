//! Runs the pods of one real node as local processes.

mod node;

use tokio_util::sync::CancellationToken;

use crate::cluster::{home::Home, journal::note, kubeconfig, state::State};

/// The node whose pods are processes of this machine.
pub const NODE_NAME: &str = "catena-host";

/// Plays the node until `stop`, then ends its processes.
pub async fn run(home: &Home, _state: &State, stop: CancellationToken) {
    let client = match kubeconfig::client(&home.kubeconfig_of("host-runner")).await {
        Ok(client) => client,
        Err(error) => {
            note(&format!("the host runner has no client: {error:#}"));
            return;
        }
    };
    stop.run_until_cancelled(node::keep_ready(&client)).await;
}

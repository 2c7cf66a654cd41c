//! The health of a running cluster.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result, ensure};

use super::supervision;
use crate::{
    control_plane::{
        keeper::{Kept, Roster},
        readiness,
    },
    home::Home,
    kubeconfig,
    state::State,
};

/// The state of a running cluster.
#[derive(Debug)]
pub struct Health {
    /// The supervisor's pid.
    pub supervisor: i32,
    /// The number of ready and of all nodes; an error is the reason why the cluster is not usable.
    pub nodes: Result<(usize, usize)>,
    /// Its setup; an error if it was set up by another version of this program.
    pub setup: Result<Setup>,
    /// The components of the control plane by name.
    pub components: BTreeMap<String, Kept>,
}

/// The setup of a cluster.
#[derive(Debug)]
pub struct Setup {
    /// The API server's URL.
    pub server: String,
    /// The directory in which the host runner finds programs named like images.
    pub bin_dir: PathBuf,
}

/// The health; `None` if it is not running.
pub async fn health(home: &Home) -> Option<Health> {
    let supervisor = supervision::supervisor_pid(home).filter(|_| supervision::is_running(home))?;
    Some(Health {
        supervisor: supervisor.as_raw_nonzero().get(),
        nodes: nodes(home).await,
        setup: setup(home),
        components: Roster::read(home),
    })
}

async fn nodes(home: &Home) -> Result<(usize, usize)> {
    let client = kubeconfig::client(&home.kubeconfig()).await.context("without a usable kubeconfig")?;
    ensure!(readiness::api_server_is_ready(&client).await, "the API server is not ready");
    readiness::nodes_ready(&client).await.context("its nodes could not be listed")
}

fn setup(home: &Home) -> Result<Setup> {
    let state = State::require(home)?;
    Ok(Setup { server: state.addresses.server(), bin_dir: state.bin_dir })
}

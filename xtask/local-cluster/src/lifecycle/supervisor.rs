//! The one process that owns a cluster: it starts the components, keeps them alive and ends them.

use std::{
    fs::{self, File},
    time::Duration,
};

use anyhow::{Context, Result};
use futures::future::join_all;
use tokio::{
    net::TcpStream,
    signal::unix::{SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

use crate::{
    control_plane::{
        addresses,
        components::{self, Component},
        keeper::Roster,
        readiness,
    },
    explain::note,
    host_runner, kubeconfig,
    local_cluster::LocalCluster,
    state::State,
};

/// Runs until SIGTERM. Must be called on the main thread, outside of other runtimes: see
/// [`crate::own_program::child`].
pub async fn supervise(cluster: LocalCluster) -> Result<()> {
    // Closing the terminal of `up` must not affect the cluster.
    if let Err(error) = rustix::process::setsid() {
        note(&format!("keeping the terminal's session: {error}"));
    }
    let lock = File::create(cluster.supervisor_lock()).context("could not create the supervisor's lock")?;
    lock.try_lock().context("another supervisor runs this cluster already")?;
    fs::write(cluster.supervisor_pid(), std::process::id().to_string())
        .context("could not write the supervisor's pid")?;
    let state = State::require(&cluster)?;
    let reservation = addresses::reserve(state.addresses.pods).with_context(|| {
        format!("take the cluster {:?} down and bring it up again, so that it gets others", cluster.name())
    })?;
    note(&format!("supervising {:?} as pid {}", cluster.name(), std::process::id()));

    let roster = Roster::new(cluster.clone());
    // Clients end before their servers: processes of pods, then the control plane, then etcd.
    let (stop_pods, stop_control_plane, stop_etcd) =
        (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
    let api_ready = CancellationToken::new();
    let keep = |component: Component, stop: &CancellationToken| roster.keep(component, stop.clone());

    let etcd = keep(components::etcd(&cluster, &state)?, &stop_etcd);
    let api_server = keep(components::api_server(&cluster, &state)?, &stop_control_plane);
    let clients = [
        keep(components::controller_manager(&cluster, &state)?, &stop_control_plane),
        keep(components::scheduler(&cluster, &state)?, &stop_control_plane),
        keep(components::kwok(&cluster, &state)?, &stop_control_plane),
    ];
    let control_plane = async {
        stop_control_plane.run_until_cancelled(port_opens(state.addresses.etcd)).await;
        let after_api_server = async {
            stop_control_plane.run_until_cancelled(api_ready.cancelled()).await;
            join_all(clients).await;
        };
        tokio::join!(api_server, after_api_server);
    };
    let pods = async {
        if stop_pods.run_until_cancelled(api_server_ready(&cluster)).await.is_some() {
            api_ready.cancel();
            Box::pin(host_runner::run(&cluster, &state, stop_pods.clone())).await;
        }
    };
    let until_told = async {
        asked_to_stop().await;
        note("stopping: processes of pods first, then the control plane, etcd last");
        stop_pods.cancel();
    };

    let pods_then_control_plane = async {
        tokio::join!(until_told, pods);
        stop_control_plane.cancel();
    };
    let control_plane_then_etcd = async {
        tokio::join!(pods_then_control_plane, control_plane);
        stop_etcd.cancel();
    };
    tokio::join!(etcd, control_plane_then_etcd);
    note("stopped");
    // They end with the process at the latest; this line shows that they are held until here.
    drop((lock, reservation));
    Ok(())
}

async fn port_opens(port: u16) {
    while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn api_server_ready(cluster: &LocalCluster) {
    let client = match kubeconfig::client(&cluster.kubeconfig()).await {
        Ok(client) => client,
        Err(error) => {
            note(&format!("no client for the API server: {error:#}"));
            return std::future::pending().await;
        }
    };
    while !readiness::api_server_is_ready(&client).await {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    note("the API server is ready");
}

async fn asked_to_stop() {
    let (mut terminate, mut interrupt) =
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(terminate), Ok(interrupt)) => (terminate, interrupt),
            (Err(error), _) | (_, Err(error)) => {
                // Without a handler the default action ends us, and the kernel our children.
                note(&format!("cannot listen for signals: {error}"));
                return std::future::pending().await;
            }
        };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

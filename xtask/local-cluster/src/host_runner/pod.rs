//! The life of one pod, from its binding to this node to the removal of its object.

use std::{fs, sync::Arc, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodSpec};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use tokio_util::sync::CancellationToken;

use super::{
    board::{Board, End, Trouble},
    container::keep,
    publisher::Publisher,
    refusal,
    restart_policy::RestartPolicy,
    runner::Runner,
    sandbox::{Latest, Sandbox},
    shutdown::{self, Shutdown, Teller},
    volumes::Volumes,
};
use crate::journal::note;

/// Longest grace period of a pod when the whole cluster stops.
const LONGEST_GRACE_AT_STOP: Duration = Duration::from_secs(10);
/// Time limit for a final status that nobody needs.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Runs the pod to its end, or until `stop`.
pub async fn live(runner: Arc<Runner>, pod: Arc<Pod>, latest: Latest, stop: CancellationToken) {
    let status = pod.status.as_ref();
    let before = status.and_then(|status| status.pod_ip.as_ref()?.parse().ok());
    let address = runner.addresses.take(before);
    let directory = runner.home.pods().join(pod.uid().unwrap_or_default());
    let sandbox = Sandbox::new(runner, pod, latest, address, directory);
    if let Err(error) = fs::create_dir_all(&sandbox.directory) {
        note(&format!("could not create {}: {error}", sandbox.directory.display()));
    }
    // On the heap, because the future for a pod's whole life is large.
    Box::pin(run(&sandbox, &stop)).await;
    if !stop.is_cancelled() {
        until_deleted(&sandbox, &stop).await;
    }
    fs::remove_dir_all(&sandbox.directory).ok();
    sandbox.runner.addresses.give_back(address);
}

async fn run(sandbox: &Sandbox, stop: &CancellationToken) {
    let pod = sandbox.pod();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if matches!(phase, Some("Succeeded" | "Failed")) {
        return;
    }
    let spec = pod.spec.clone().unwrap_or_default();
    let policy = RestartPolicy::of(&spec);
    let board = Board::new(&pod);
    let (teller, shutdown) = shutdown::channel();
    let mut publisher = Publisher::new(sandbox, policy, board.follow());
    if phase == Some("Running") && policy == RestartPolicy::Never {
        // It was running when the supervisor died, and must not run twice.
        lost(&spec, &board);
    } else {
        tokio::select! {
            () = run_containers(sandbox, &spec, policy, &board, shutdown) => {}
            () = publisher.follow() => {}
            () = relay_end(sandbox, &teller, stop) => {}
        }
    }
    tokio::select! {
        () = publisher.publish() => {}
        // Then the object or the whole cluster is deleted, so the state of the containers is of little use.
        () = until_over(sandbox, stop) => {}
    }
}

/// Waits until the pod is to be deleted or the cluster stops, and a little longer, for a last status.
async fn until_over(sandbox: &Sandbox, stop: &CancellationToken) {
    let mut latest = sandbox.latest();
    let deleted =
        latest.wait_for(|pod| pod.as_ref().is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    stop.run_until_cancelled(deleted).await;
    tokio::time::sleep(LAST_WORD).await;
}

async fn run_containers(
    sandbox: &Sandbox,
    spec: &PodSpec,
    policy: RestartPolicy,
    board: &Board,
    mut shutdown: Shutdown,
) {
    let all_wait = |trouble: &Trouble| {
        for container in &spec.containers {
            board.waits(&container.name, trouble.clone());
        }
    };
    if let Some(trouble) = refusal::of(spec) {
        note(&format!("{} is not run: {}", sandbox.title(), trouble.message));
        all_wait(&trouble);
        shutdown.asked().await;
        return;
    }
    let volumes = Volumes::new(sandbox, spec);
    while let Err(trouble) = volumes.write_all().await {
        all_wait(&trouble);
        tokio::select! {
            () = volumes.changed() => {}
            _ = shutdown.asked() => return,
        }
    }
    let containers =
        spec.containers.iter().map(|container| keep(sandbox, container, policy, board, shutdown.clone()));
    tokio::select! {
        _ = join_all(containers) => {}
        () = volumes.keep_current() => {}
    }
}

/// Asks the containers to end when the pod is deleted, sooner when it is deleted by force, or when the cluster stops.
async fn relay_end(sandbox: &Sandbox, teller: &Teller, stop: &CancellationToken) {
    let mut latest = sandbox.latest();
    loop {
        let gone = latest.borrow_and_update().is_none();
        if gone {
            teller.ask(Duration::ZERO);
        } else if sandbox.pod().metadata.deletion_timestamp.is_some() {
            teller.ask(sandbox.grace());
        }
        if stop.is_cancelled() {
            teller.ask(sandbox.grace().min(LONGEST_GRACE_AT_STOP));
        }
        tokio::select! {
            changed = latest.changed() => if changed.is_err() {
                teller.ask(Duration::ZERO);
                std::future::pending::<()>().await;
            },
            () = stop.cancelled(), if !stop.is_cancelled() => {}
        }
    }
}

/// Waits for the pod's deletion and completes it, like a kubelet.
async fn until_deleted(sandbox: &Sandbox, stop: &CancellationToken) {
    let mut latest = sandbox.latest();
    let deleted =
        latest.wait_for(|pod| pod.as_ref().is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
    let still_there = match stop.run_until_cancelled(deleted).await {
        Some(Ok(pod)) => pod.is_some(),
        _ => false,
    };
    let pod = sandbox.pod();
    let pods = Api::<Pod>::namespaced(sandbox.runner.client.clone(), &pod.namespace().unwrap_or_default());
    let parameters = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    while still_there && !stop.is_cancelled() {
        match pods.delete(&pod.name_any(), &parameters).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => return,
            Err(error) => note(&format!("{} could not be deleted: {error}", sandbox.title())),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn lost(spec: &PodSpec, board: &Board) {
    let now = Timestamp::now();
    for container in &spec.containers {
        board.ended(
            &container.name,
            End {
                exit_code: 137,
                signal: Some(9),
                reason: "ContainerStatusUnknown".to_owned(),
                message: Some("the process ended together with the cluster's supervisor".to_owned()),
                started: now,
                finished: now,
            },
        );
    }
}

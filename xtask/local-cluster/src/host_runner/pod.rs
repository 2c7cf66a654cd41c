//! The life of one pod, from its binding to this node to the removal of its object.

use std::{fs, net::Ipv4Addr, path::PathBuf, sync::Arc, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{ContainerStateTerminated, ContainerStateWaiting, Pod, PodSpec},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    Runner,
    container::keep,
    publisher::Publisher,
    refusal,
    shutdown::Shutdown,
    status::{Board, are_restarted},
    volumes::Volumes,
};
use crate::explain::note;

/// As Kubernetes' own default.
const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// Longest grace period of a pod when the whole cluster stops.
const LONGEST_GRACE_AT_STOP: Duration = Duration::from_secs(10);
/// Time limit for a final status that nobody needs.
const LAST_WORD: Duration = Duration::from_secs(2);

/// The newest version of a pod's object; `None` once it is gone.
pub type Latest = watch::Receiver<Option<Arc<Pod>>>;

/// One pod of the node: its object, its address and its directory.
pub struct Sandbox {
    pub runner: Arc<Runner>,
    first: Arc<Pod>,
    latest: Latest,
    pub address: Ipv4Addr,
    pub directory: PathBuf,
}

impl Sandbox {
    /// The present or last state of the pod.
    pub fn pod(&self) -> Arc<Pod> {
        self.latest.borrow().clone().unwrap_or_else(|| Arc::clone(&self.first))
    }

    /// Follows the changes of the pod.
    pub fn latest(&self) -> Latest {
        self.latest.clone()
    }

    /// Namespace and name.
    pub fn title(&self) -> String {
        format!("{}/{}", self.first.namespace().unwrap_or_default(), self.first.name_any())
    }

    /// The grace period of a container.
    pub fn grace(&self) -> Duration {
        let pod = self.pod();
        let of_spec = || pod.spec.as_ref()?.termination_grace_period_seconds;
        let seconds = pod.metadata.deletion_grace_period_seconds.or_else(of_spec);
        seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DEFAULT_GRACE, Duration::from_secs)
    }

    /// Waits until the pod is to be deleted; returns whether it is still there then.
    async fn deleted(&self) -> bool {
        let mut latest = self.latest();
        let deleted =
            latest.wait_for(|pod| pod.as_ref().is_none_or(|pod| pod.metadata.deletion_timestamp.is_some()));
        deleted.await.is_ok_and(|pod| pod.is_some())
    }
}

/// Runs the pod to its end, or until `stop`.
pub async fn live(runner: Arc<Runner>, pod: Arc<Pod>, latest: Latest, stop: CancellationToken) {
    let before = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok());
    let address = runner.addresses.take(before);
    let directory = runner.cluster.pods().join(pod.uid().unwrap_or_default());
    let sandbox = Sandbox { runner, first: pod, latest, address, directory };
    if let Err(error) = fs::create_dir_all(&sandbox.directory) {
        note(&format!("could not create {}: {error}", sandbox.directory.display()));
    }
    // On the heap, because the future for a pod's whole life is large.
    Box::pin(run(&sandbox, &stop)).await;
    if stop.run_until_cancelled(sandbox.deleted()).await == Some(true) {
        complete_deletion(&sandbox, &stop).await;
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
    let board = Board::new(&pod);
    let (asking, asked) = watch::channel(None);
    let mut publisher = Publisher::new(sandbox, board.follow());
    if phase == Some("Running") && !are_restarted(&pod) {
        // It was running when the supervisor died, and must not run twice.
        lost(&spec, &board);
    } else {
        tokio::select! {
            () = run_containers(sandbox, &spec, &board, Shutdown(asked)) => {}
            () = publisher.follow() => {}
            () = relay_end(sandbox, &asking, stop) => {}
        }
    }
    // Once the object or the whole cluster is deleted, the state of the containers is of little use.
    let over = async {
        stop.run_until_cancelled(sandbox.deleted()).await;
        tokio::time::sleep(LAST_WORD).await;
    };
    tokio::select! {
        () = publisher.publish() => {}
        () = over => {}
    }
}

async fn run_containers(sandbox: &Sandbox, spec: &PodSpec, board: &Board, mut shutdown: Shutdown) {
    let all_wait = |problem: &ContainerStateWaiting| {
        for container in &spec.containers {
            board.waits(&container.name, problem.clone());
        }
    };
    if let Some(problem) = refusal::of(spec) {
        let message = problem.message.as_deref().unwrap_or_default();
        note(&format!("{} is not run: {message}", sandbox.title()));
        all_wait(&problem);
        shutdown.asked().await;
        return;
    }
    let mut volumes = Volumes::new(sandbox, spec);
    while let Err(problem) = volumes.write_all().await {
        all_wait(&problem);
        tokio::select! {
            () = volumes.changed() => {}
            _ = shutdown.asked() => return,
        }
    }
    let containers =
        spec.containers.iter().map(|container| keep(sandbox, container, board, shutdown.clone()));
    tokio::select! {
        _ = join_all(containers) => {}
        () = volumes.keep_current() => {}
    }
}

/// Asks the containers to end when the pod is deleted, sooner when it is deleted by force, or when the cluster stops.
async fn relay_end(sandbox: &Sandbox, asking: &watch::Sender<Option<Duration>>, stop: &CancellationToken) {
    let ask = |grace: Duration| {
        asking.send_if_modified(|present| {
            let is_shorter = present.is_none_or(|present| grace < present);
            if is_shorter {
                *present = Some(grace);
            }
            is_shorter
        });
    };
    let mut latest = sandbox.latest();
    loop {
        let is_gone = latest.borrow_and_update().is_none();
        if is_gone {
            ask(Duration::ZERO);
        } else if sandbox.pod().metadata.deletion_timestamp.is_some() {
            ask(sandbox.grace());
        }
        if stop.is_cancelled() {
            ask(sandbox.grace().min(LONGEST_GRACE_AT_STOP));
        }
        tokio::select! {
            changed = latest.changed() => if changed.is_err() {
                ask(Duration::ZERO);
                std::future::pending::<()>().await;
            },
            () = stop.cancelled(), if !stop.is_cancelled() => {}
        }
    }
}

/// Removes the object of a pod that is to be deleted, like a kubelet.
async fn complete_deletion(sandbox: &Sandbox, stop: &CancellationToken) {
    let pod = sandbox.pod();
    let pods = Api::<Pod>::namespaced(sandbox.runner.client.clone(), &pod.namespace().unwrap_or_default());
    let parameters = DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    while !stop.is_cancelled() {
        match pods.delete(&pod.name_any(), &parameters).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => return,
            Err(error) => note(&format!("{} could not be deleted: {error}", sandbox.title())),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn lost(spec: &PodSpec, board: &Board) {
    let now = Some(Time(Timestamp::now()));
    for container in &spec.containers {
        let end = ContainerStateTerminated {
            exit_code: 137,
            signal: Some(9),
            reason: Some("ContainerStatusUnknown".to_owned()),
            message: Some("the process ended together with the cluster's supervisor".to_owned()),
            started_at: now.clone(),
            finished_at: now.clone(),
            ..ContainerStateTerminated::default()
        };
        board.ended(&container.name, end);
    }
}

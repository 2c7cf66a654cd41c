//! The pods that are bound to the node.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{NODE_NAME, Runner, pod::live};
use crate::explain::note;

/// Longer than the longest grace of a pod when the cluster stops.
const LONGEST_STOP: Duration = Duration::from_secs(15);

/// Starts a task for each pod and sends it every change, until `stop`; then waits for all of them.
pub async fn run(runner: Arc<Runner>, stop: CancellationToken) {
    let api = Api::<Pod>::all(runner.client.clone());
    let on_the_node = watcher::Config::default().fields(&format!("spec.nodeName={NODE_NAME}"));
    let mut events = std::pin::pin!(watcher(api, on_the_node).default_backoff());
    let mut pods = Pods { runner, stop: stop.clone(), known: BTreeMap::new(), lives: JoinSet::new() };
    let mut listed = BTreeSet::new();
    loop {
        let event = tokio::select! {
            event = events.next() => event,
            Some(ended) = pods.lives.join_next() => {
                if let Err(error) = ended {
                    note(&format!("the task of a pod failed: {error}"));
                }
                continue;
            }
            () = stop.cancelled() => break,
        };
        match event {
            Some(Ok(watcher::Event::Apply(pod))) => pods.seen(pod),
            Some(Ok(watcher::Event::InitApply(pod))) => {
                listed.extend(pod.uid());
                pods.seen(pod);
            }
            Some(Ok(watcher::Event::Delete(pod))) => pods.gone(&pod.uid().unwrap_or_default()),
            Some(Ok(watcher::Event::Init)) => listed.clear(),
            Some(Ok(watcher::Event::InitDone)) => pods.only(&listed),
            Some(Err(error)) => note(&format!("the pods of {NODE_NAME} cannot be watched: {error}")),
            None => break,
        }
    }
    let all_ended = async { while pods.lives.join_next().await.is_some() {} };
    if tokio::time::timeout(LONGEST_STOP, all_ended).await.is_err() {
        // Remaining processes get their death signal when the supervisor ends.
        note("some pods did not end in time");
    }
}

struct Pods {
    runner: Arc<Runner>,
    stop: CancellationToken,
    /// By uid.
    known: BTreeMap<String, watch::Sender<Option<Arc<Pod>>>>,
    lives: JoinSet<()>,
}

impl Pods {
    fn seen(&mut self, pod: Pod) {
        let uid = pod.uid().unwrap_or_default();
        let pod = Arc::new(pod);
        if let Some(known) = self.known.get(&uid) {
            known.send_replace(Some(pod));
        } else {
            let (sender, receiver) = watch::channel(Some(Arc::clone(&pod)));
            self.known.insert(uid, sender);
            self.lives.spawn(live(Arc::clone(&self.runner), pod, receiver, self.stop.clone()));
        }
    }

    fn gone(&mut self, uid: &str) {
        if let Some(known) = self.known.remove(uid) {
            known.send_replace(None);
        }
    }

    /// Applies a new list: missing pods were deleted while the watch was interrupted.
    fn only(&mut self, listed: &BTreeSet<String>) {
        self.known.retain(|uid, known| {
            let is_there = listed.contains(uid);
            if !is_there {
                known.send_replace(None);
            }
            is_there
        });
    }
}

use std::{collections::BTreeMap, pin::pin, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use tokio::{
    sync::{Mutex, oneshot},
    task::JoinHandle,
};

use crate::{Namespace, pods};

/// How many pods there were at each moment, told by a watch: no moment between two changes is missed.
pub struct Recording {
    moments: Arc<Mutex<Vec<Moment>>>,
    watch: JoinHandle<()>,
}

/// The pods of a namespace between two changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    alive: usize,
    ready: usize,
}

impl Recording {
    /// Starts to record the pods of a namespace.
    pub async fn start(namespace: &Namespace) -> Self {
        let moments = Arc::new(Mutex::new(Vec::new()));
        let (started, listening) = oneshot::channel();
        let watch = tokio::spawn(record(namespace.api(), moments.clone(), started));
        listening.await.ok();
        Self { moments, watch }
    }

    /// The most pods that were there at once and not terminating, and the fewest that were ready.
    pub async fn end(self) -> (usize, usize) {
        self.watch.abort();
        let moments = self.moments.lock().await;
        let most = moments.iter().map(|moment| moment.alive).max().unwrap_or_default();
        let fewest = moments.iter().map(|moment| moment.ready).min().unwrap_or_default();
        (most, fewest)
    }
}

async fn record(api: kube::Api<Pod>, moments: Arc<Mutex<Vec<Moment>>>, started: oneshot::Sender<()>) {
    let mut started = Some(started);
    let mut events = pin!(watcher(api, watcher::Config::default()));
    // Whether each pod is ready.
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => known.clear(),
            Ok(Event::InitApply(pod)) => take(&mut known, &pod),
            Ok(Event::InitDone) => {
                if let Some(started) = started.take() {
                    started.send(()).ok();
                }
                moments.lock().await.push(moment(&known));
            }
            Ok(Event::Apply(pod)) => {
                take(&mut known, &pod);
                moments.lock().await.push(moment(&known));
            }
            Ok(Event::Delete(pod)) => {
                known.remove(&pod.uid().unwrap_or_default());
                moments.lock().await.push(moment(&known));
            }
            Err(error) => eprintln!("recording pods: {error}"),
        }
    }
}

fn take(known: &mut BTreeMap<String, bool>, pod: &Pod) {
    let uid = pod.uid().unwrap_or_default();
    if pods::is_alive(pod) {
        known.insert(uid, pods::is_ready(pod));
    } else {
        known.remove(&uid);
    }
}

fn moment(known: &BTreeMap<String, bool>) -> Moment {
    Moment { alive: known.len(), ready: known.values().filter(|ready| **ready).count() }
}

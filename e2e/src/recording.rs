use std::{
    collections::{BTreeMap, BTreeSet},
    panic::Location,
    pin::pin,
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    runtime::watcher::{self, Event, watcher},
};
use tokio::{sync::watch, task::JoinSet, time::timeout};

use crate::{Namespace, WAIT_TIMEOUT, pods};

/// The numbers of pods over time, recorded by a watch, so that no change is missed.
pub struct Recording {
    recorded: watch::Receiver<Recorded>,
    _watch: JoinSet<()>,
}

/// The observed numbers so far.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Pods now that are not terminating.
    pub alive: usize,
    /// Pods now that are ready, and not terminating.
    pub ready: usize,
    /// The largest number of pods at once, without terminating ones.
    pub most: usize,
    /// The smallest number of ready pods.
    pub fewest_ready: usize,
    /// The number of all pods that ever existed.
    pub made: usize,
}

impl Recording {
    /// Starts to record the pods of a namespace.
    pub async fn start(namespace: &Namespace) -> Self {
        let nothing = Recorded { alive: 0, ready: 0, most: 0, fewest_ready: usize::MAX, made: 0 };
        let (sender, mut recorded) = watch::channel(nothing);
        let watch = JoinSet::from_iter([record(namespace.api(), sender)]);
        recorded.changed().await.ok();
        Self { recorded, _watch: watch }
    }

    /// Waits for a moment, without delay.
    ///
    /// # Panics
    /// When it does not come in time.
    #[track_caller]
    pub fn until(&self, is: impl Fn(&Recorded) -> bool) -> impl Future<Output = ()> {
        let (caller, mut recorded) = (Location::caller(), self.recorded.clone());
        async move {
            let limit = 3 * WAIT_TIMEOUT;
            let came = timeout(limit, recorded.wait_for(|recorded| is(recorded))).await.is_ok();
            assert!(came, "{caller}: not within {limit:?}; there was last: {:?}", *recorded.borrow());
        }
    }

    /// The observed numbers so far.
    #[must_use]
    pub fn so_far(&self) -> Recorded {
        *self.recorded.borrow()
    }
}

async fn record(api: Api<Pod>, sender: watch::Sender<Recorded>) {
    let mut events = pin!(watcher(api, watcher::Config::default()));
    // Whether each pod is ready, by uid.
    let mut known: BTreeMap<String, bool> = BTreeMap::new();
    let mut ever = BTreeSet::new();
    let mut listed = false;
    while let Some(event) = events.next().await {
        if let Ok(Event::InitApply(pod) | Event::Apply(pod) | Event::Delete(pod)) = &event {
            ever.insert(pod.uid());
        }
        match event {
            Ok(Event::Init) => {
                known.clear();
                listed = false;
            }
            Ok(Event::InitApply(pod) | Event::Apply(pod)) if pods::is_alive(&pod) => {
                known.insert(pod.uid().unwrap_or_default(), pods::is_ready(&pod));
            }
            Ok(Event::InitApply(pod) | Event::Apply(pod) | Event::Delete(pod)) => {
                known.remove(&pod.uid().unwrap_or_default());
            }
            Ok(Event::InitDone) => listed = true,
            Err(error) => eprintln!("recording pods: {error}"),
        }
        if listed {
            let (alive, ready) = (known.len(), known.values().filter(|ready| **ready).count());
            sender.send_modify(|recorded| {
                let (most, fewest_ready) = (recorded.most.max(alive), recorded.fewest_ready.min(ready));
                *recorded = Recorded { alive, ready, most, fewest_ready, made: ever.len() };
            });
        }
    }
}

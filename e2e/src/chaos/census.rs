//! All present and former objects of a namespace, recorded by watches, so that nothing is missed between two
//! reads.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    time::Duration,
};

use anyhow::{Result, bail};
use futures::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::watcher::{self, Event, watcher},
};
use serde_json::Value;
use tokio::{sync::watch, task::JoinSet, time::Instant, time::timeout};

/// Group, version and kind of the recorded objects.
const KINDS: [(&str, &str, &str); 7] = [
    ("catena.dev", "v1alpha1", "BasicDeployment"),
    ("catena.dev", "v1alpha1", "BasicDeploymentRestart"),
    ("catena.dev", "v1alpha1", "BasicDeploymentRollback"),
    ("catena.dev", "v1alpha1", "BasicReplicaSet"),
    ("apps", "v1", "ControllerRevision"),
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
];

/// Watches a namespace until it is dropped.
pub struct Census {
    seen: watch::Receiver<Seen>,
    _watches: JoinSet<()>,
}

/// The records so far.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The present objects, by kind and name.
    pub now: BTreeMap<(&'static str, String), Value>,
    /// The uids of all objects that ever existed, by kind.
    pub ever: BTreeMap<&'static str, BTreeSet<String>>,
    /// The highest number of pods at one time, without terminating ones.
    pub most_pods: usize,
    /// The uids of pods that were created after their set was gone.
    pub orphans: BTreeSet<String>,
    /// The version of the world at which the `BasicDeployment` was gone.
    pub gone_at: Option<u64>,
    /// The time of the last change.
    pub changed: Instant,
}

impl Census {
    /// Starts with an empty namespace.
    pub async fn begin(client: &Client, namespace: &str) -> Self {
        let nothing = Seen {
            now: BTreeMap::new(),
            ever: BTreeMap::new(),
            most_pods: 0,
            orphans: BTreeSet::new(),
            gone_at: None,
            changed: Instant::now(),
        };
        let (sender, seen) = watch::channel(nothing);
        let (listed, mut lists) = tokio::sync::mpsc::channel(KINDS.len());
        let mut watches = JoinSet::new();
        for (group, version, kind) in KINDS {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource);
            watches.spawn(follow(kind, api, sender.clone(), listed.clone()));
        }
        for _ in KINDS {
            lists.recv().await;
        }
        Self { seen, _watches: watches }
    }

    /// Waits for a moment.
    pub async fn until(&self, what: &str, limit: Duration, is: impl Fn(&Seen) -> bool) -> Result<()> {
        let mut seen = self.seen.clone();
        match timeout(limit, seen.wait_for(|seen| is(seen))).await {
            Ok(Ok(_)) => Ok(()),
            _ => bail!("not within {limit:?}: {what}"),
        }
    }

    /// The records so far.
    pub fn so_far(&self) -> Seen {
        self.seen.borrow().clone()
    }
}

impl Seen {
    /// The objects of a kind.
    pub fn all(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.now.iter().filter(move |((of, _), _)| *of == kind).map(|(_, object)| object)
    }

    /// An object.
    pub fn get(&self, kind: &'static str, name: &str) -> Option<&Value> {
        self.now.get(&(kind, name.to_owned()))
    }

    /// The pods that are not terminating.
    pub fn alive(&self) -> impl Iterator<Item = &Value> {
        self.all("Pod").filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
    }

    /// Whether the owner of all this is deleted.
    pub fn is_over(&self) -> bool {
        let is_deleted = |web: &Value| !web["metadata"]["deletionTimestamp"].is_null();
        self.get("BasicDeployment", "web").is_none_or(is_deleted)
    }

    /// Whether the `BasicDeployment` was backed up before it was gone.
    pub fn was_backed_up(&self) -> bool {
        let version = |secret: &Value| secret["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
        let backed_up_at = self.all("Secret").filter_map(version).min();
        backed_up_at.zip(self.gone_at).is_some_and(|(backed_up_at, gone_at)| backed_up_at < gone_at)
    }

    /// The number of objects of each kind that ever existed.
    pub fn made(&self) -> BTreeMap<&'static str, usize> {
        self.ever.iter().map(|(kind, uids)| (*kind, uids.len())).collect()
    }
}

async fn follow(
    kind: &'static str,
    api: Api<DynamicObject>,
    sender: watch::Sender<Seen>,
    listed: tokio::sync::mpsc::Sender<()>,
) {
    let mut events = pin!(watcher(api, watcher::Config::default()));
    let mut listing = BTreeSet::new();
    while let Some(event) = events.next().await {
        if let Ok(Event::InitApply(object)) = &event {
            listing.insert(object.name_any());
        }
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => sender.send_modify(|seen| {
                let name = object.name_any();
                let is_new = seen.ever.entry(kind).or_default().insert(object.uid().unwrap_or_default());
                if is_new && kind == "Pod" && seen.is_over() {
                    seen.orphans.extend(object.uid());
                }
                seen.now.insert((kind, name), serde_json::to_value(&object).unwrap_or_default());
                seen.most_pods = seen.most_pods.max(seen.alive().count());
                seen.changed = Instant::now();
            }),
            Ok(Event::Delete(object)) => sender.send_modify(|seen| {
                let key = (kind, object.name_any());
                let is_it = |now: &Value| now["metadata"]["uid"].as_str() == object.uid().as_deref();
                if seen.now.get(&key).is_some_and(is_it) {
                    seen.now.remove(&key);
                }
                if kind == "BasicDeployment" {
                    seen.gone_at = object.resource_version().and_then(|version| version.parse().ok());
                }
                seen.changed = Instant::now();
            }),
            Ok(Event::InitDone) => {
                let still = std::mem::take(&mut listing);
                sender
                    .send_modify(|seen| seen.now.retain(|(of, name), _| *of != kind || still.contains(name)));
                // There is no receiver after everything has been listed.
                listed.try_send(()).ok();
            }
            Ok(Event::Init) => listing.clear(),
            Err(error) => eprintln!("the census of {kind}: {error}"),
        }
    }
}

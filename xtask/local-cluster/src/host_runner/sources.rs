//! The objects behind a pod's volumes, each watched by itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec, Secret, Volume};
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use tokio::{sync::Notify, task::JoinSet};

/// Key → content of one ConfigMap or Secret.
pub type Entries = BTreeMap<String, Vec<u8>>;

/// Which object is meant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    ConfigMap(String),
    Secret(String),
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ConfigMap(name) => write!(formatter, "configmap {name:?}"),
            Self::Secret(name) => write!(formatter, "secret {name:?}"),
        }
    }
}

/// What is known of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    NotYet,
    Missing,
    Present(Entries),
}

/// Watches the objects as long as it lives.
pub struct Sources {
    seen: Arc<Mutex<BTreeMap<Source, Seen>>>,
    changed: Arc<Notify>,
    _watches: JoinSet<()>,
}

impl Sources {
    /// Starts one watch for each object that a volume of the pod refers to.
    pub fn watch(client: &Client, namespace: &str, spec: &PodSpec) -> Self {
        let seen = Arc::new(Mutex::new(BTreeMap::new()));
        let changed = Arc::new(Notify::new());
        let mut watches = JoinSet::new();
        for source in referenced(spec) {
            let place =
                Place { source: source.clone(), seen: Arc::clone(&seen), changed: Arc::clone(&changed) };
            match source {
                Source::ConfigMap(name) => {
                    let api = Api::<ConfigMap>::namespaced(client.clone(), namespace);
                    watches.spawn(follow(api, name, place, config_map_entries));
                }
                Source::Secret(name) => {
                    let api = Api::<Secret>::namespaced(client.clone(), namespace);
                    watches.spawn(follow(api, name, place, secret_entries));
                }
            }
        }
        Self { seen, changed, _watches: watches }
    }

    /// What is known of one object now.
    pub fn get(&self, source: &Source) -> Seen {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(source).cloned().unwrap_or(Seen::NotYet)
    }

    /// Waits until one of them changed.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Where a watch puts what it sees.
struct Place {
    source: Source,
    seen: Arc<Mutex<BTreeMap<Source, Seen>>>,
    changed: Arc<Notify>,
}

impl Place {
    fn put(&self, now: Seen) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(&self.source) != Some(&now) {
            seen.insert(self.source.clone(), now);
            self.changed.notify_one();
        }
    }
}

async fn follow<K>(api: Api<K>, name: String, place: Place, entries: fn(K) -> Entries)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let mut listed = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Apply(object)) => place.put(Seen::Present(entries(object))),
            Ok(watcher::Event::Delete(_)) => place.put(Seen::Missing),
            Ok(watcher::Event::Init) => listed = None,
            Ok(watcher::Event::InitApply(object)) => listed = Some(object),
            Ok(watcher::Event::InitDone) => {
                place.put(listed.take().map_or(Seen::Missing, |object| Seen::Present(entries(object))));
            }
            // The stream tries again by itself; until then the last known state holds.
            Err(_) => {}
        }
    }
}

fn config_map_entries(map: ConfigMap) -> Entries {
    let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
    texts.chain(map.binary_data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0))).collect()
}

fn secret_entries(secret: Secret) -> Entries {
    secret.data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0)).collect()
}

fn referenced(spec: &PodSpec) -> BTreeSet<Source> {
    spec.volumes.iter().flatten().flat_map(of_volume).collect()
}

fn of_volume(volume: &Volume) -> Vec<Source> {
    let projections = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let map = volume.config_map.iter().map(|map| map.name.clone());
    let secret = volume.secret.iter().filter_map(|secret| secret.secret_name.clone());
    let mut sources: Vec<Source> = map.map(Source::ConfigMap).chain(secret.map(Source::Secret)).collect();
    for projection in projections {
        sources.extend(projection.config_map.iter().map(|map| Source::ConfigMap(map.name.clone())));
        sources.extend(projection.secret.iter().map(|secret| Source::Secret(secret.name.clone())));
    }
    sources
}

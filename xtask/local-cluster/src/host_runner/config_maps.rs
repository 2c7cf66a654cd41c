//! The `ConfigMaps` of a pod's volumes, each with its own watch.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec, Volume};
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use tokio::{sync::Notify, task::JoinSet};

/// Key → content.
pub type Entries = BTreeMap<String, Vec<u8>>;

/// The last known state of a ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watermark {
    NotYet,
    Missing,
    Present(Entries),
}

/// Watches them as long as it lives.
pub struct ConfigMaps {
    board: Arc<Board>,
    _watches: JoinSet<()>,
}

#[derive(Default)]
struct Board {
    seen: Mutex<BTreeMap<String, Watermark>>,
    changed: Notify,
}

impl ConfigMaps {
    /// Starts one watch for each ConfigMap that a volume of the pod refers to.
    pub fn watch(client: &Client, namespace: &str, spec: &PodSpec) -> Self {
        let board = Arc::<Board>::default();
        let mut watches = JoinSet::new();
        for name in referenced(spec) {
            watches.spawn(follow(Api::namespaced(client.clone(), namespace), name, Arc::clone(&board)));
        }
        Self { board, _watches: watches }
    }

    /// The last known state of one.
    pub fn get(&self, name: &str) -> Watermark {
        let seen = self.board.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(name).cloned().unwrap_or(Watermark::NotYet)
    }

    /// Waits until one of them changed.
    pub async fn changed(&self) {
        self.board.changed.notified().await;
    }
}

impl Board {
    fn put(&self, name: &str, now: Watermark) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.get(name) != Some(&now) {
            seen.insert(name.to_owned(), now);
            self.changed.notify_one();
        }
    }
}

async fn follow(api: Api<ConfigMap>, name: String, board: Arc<Board>) {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let mut listed = None;
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Apply(map)) => board.put(&name, Watermark::Present(entries(map))),
            Ok(watcher::Event::Delete(_)) => board.put(&name, Watermark::Missing),
            Ok(watcher::Event::Init) => listed = None,
            Ok(watcher::Event::InitApply(map)) => listed = Some(map),
            Ok(watcher::Event::InitDone) => {
                let now = listed.take().map_or(Watermark::Missing, |map| Watermark::Present(entries(map)));
                board.put(&name, now);
            }
            // The stream retries by itself; until then, the last known state applies.
            Err(_) => {}
        }
    }
}

fn entries(map: ConfigMap) -> Entries {
    let texts = map.data.into_iter().flatten().map(|(key, text)| (key, text.into_bytes()));
    texts.chain(map.binary_data.into_iter().flatten().map(|(key, bytes)| (key, bytes.0))).collect()
}

fn referenced(spec: &PodSpec) -> BTreeSet<String> {
    spec.volumes.iter().flatten().flat_map(of_volume).collect()
}

fn of_volume(volume: &Volume) -> impl Iterator<Item = String> {
    let projections = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let projected = projections.filter_map(|projection| projection.config_map.as_ref());
    let own = volume.config_map.iter().map(|map| map.name.clone());
    own.chain(projected.map(|map| map.name.clone()))
}

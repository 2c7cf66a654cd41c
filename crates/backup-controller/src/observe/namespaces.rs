//! The labels of namespaces, read only if a kind needs them.

use std::{collections::BTreeMap, sync::Arc};

use backup_controller::{Settings, observed::Row};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Client,
    core::{Selector, SelectorExt},
    discovery::ApiResource,
};
use operator_kit::run::Triggers;
use operator_watch::{ApiError, Cache, ObjectId, PrunedObject, Row as CacheRow, Watch, Watches};
use parking_lot::Mutex;

use super::live;

/// The namespaces of the cluster.
#[derive(Clone)]
pub struct Namespaces {
    client: Client,
    watches: Watches,
    triggers: Triggers<Row>,
    cache: Arc<Mutex<Option<Arc<Cache<NamespaceRow>>>>>,
}

/// The row of a namespace.
struct NamespaceRow {
    uid: String,
    name: String,
    labels: BTreeMap<String, String>,
}

impl CacheRow for NamespaceRow {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: "", name: &self.name, uid: &self.uid }
    }

    fn index_key(&self) -> Option<&str> {
        Some(&self.name)
    }
}

impl Namespaces {
    /// Begins without any watch.
    pub fn new(client: Client, watches: Watches, triggers: Triggers<Row>) -> Self {
        Self { client, watches, triggers, cache: Arc::default() }
    }

    /// Watches them if a kind needs their labels.
    pub fn keep(&self, settings: &Settings) {
        let needed = settings.kinds.values().any(|kind| kind.namespaces.is_some());
        let mut cache = self.cache.lock();
        if !needed {
            *cache = None;
        } else if cache.is_none() {
            *cache = Some(self.start());
        }
    }

    /// Whether a selector selects a namespace. A namespace that the watch has not shown yet is read live.
    pub async fn selects(&self, selector: &Selector, namespace: &str) -> Result<bool, ApiError> {
        let cache = self.cache.lock().clone();
        let known = cache.and_then(|cache| cache.by_index("", namespace).first().cloned());
        if let Some(row) = known {
            return Ok(selector.matches(&row.labels));
        }
        let found = live::read(&self.client, &ApiResource::erase::<Namespace>(&()), "", namespace).await?;
        let labels =
            found.whole()?.and_then(|found| serde_json::from_value(found["metadata"]["labels"].clone()).ok());
        Ok(selector.matches(&labels.unwrap_or_default()))
    }

    fn start(&self) -> Arc<Cache<NamespaceRow>> {
        let triggers = self.triggers.clone();
        let prune = |namespace: PrunedObject| NamespaceRow {
            uid: namespace.metadata.uid.unwrap_or_default(),
            name: namespace.metadata.name.unwrap_or_default(),
            labels: namespace.metadata.labels.unwrap_or_default(),
        };
        let watch = Watch::metadata_of::<Namespace>(&self.client);
        self.watches.cache(watch, prune, move |row: &NamespaceRow| triggers.notify_all_in(&row.name))
    }
}

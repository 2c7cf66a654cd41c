use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, runtime::watcher::Event};

use crate::{
    report::{Events, metrics::Metrics},
    watch::lenient::{Identity, Lenient, Place, Unreadable},
};

/// The unreadable objects of a watch: each is reported once, and counted until it can be read or is gone.
pub(crate) struct Unread {
    kind: String,
    events: Option<Events>,
    metrics: Arc<Metrics>,
    /// The mistake in each, by its uid.
    known: HashMap<String, String>,
    /// Those of the current list.
    listed: HashSet<String>,
}

impl Unread {
    pub fn new(kind: &str, events: Option<Events>, metrics: Arc<Metrics>) -> Self {
        metrics.unreadable(kind, 0);
        Self { kind: kind.to_owned(), events, metrics, known: HashMap::new(), listed: HashSet::new() }
    }

    pub fn hear<K: Resource>(&mut self, event: &Event<Lenient<K>>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(Lenient(Err(unreadable))) => {
                self.listed.extend(unreadable.identity.metadata.uid.clone());
                self.found(unreadable);
            }
            Event::Apply(Lenient(Err(unreadable))) => self.found(unreadable),
            Event::Apply(Lenient(Ok(object))) | Event::Delete(Lenient(Ok(object))) => {
                self.forget(object.meta().uid.as_deref());
            }
            Event::Delete(Lenient(Err(unreadable))) => {
                self.forget(unreadable.identity.metadata.uid.as_deref());
            }
            Event::InitApply(Lenient(Ok(_))) => {}
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.known.retain(|uid, _| listed.contains(uid));
                self.count();
            }
        }
    }

    fn found(&mut self, Unreadable { identity, error }: &Unreadable) {
        let Identity { api_version, kind, metadata } = identity;
        let Place { namespace, name, uid, .. } = metadata.clone();
        let before = self.known.insert(uid.clone().unwrap_or_default(), error.clone());
        if before.as_ref() == Some(error) {
            return;
        }
        self.count();
        let text =
            format!("this object cannot be read and is skipped until it can: {error}; correct or delete it");
        let object = [&namespace, &name].map(|part| part.as_deref().unwrap_or_default()).join("/");
        tracing::error!(kind = self.kind, object, "{text}");
        let Some(events) = &self.events else { return };
        let reference = ObjectReference {
            api_version: api_version.clone(),
            kind: Some(kind.clone().unwrap_or_else(|| self.kind.clone())),
            namespace,
            name,
            uid,
            ..ObjectReference::default()
        };
        events.warn(&reference, "Unreadable", &text);
    }

    fn forget(&mut self, uid: Option<&str>) {
        if uid.is_some_and(|uid| self.known.remove(uid).is_some()) {
            self.count();
        }
    }

    fn count(&self) {
        self.metrics.unreadable(&self.kind, self.known.len());
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.metrics.unreadable(&self.kind, 0);
    }
}

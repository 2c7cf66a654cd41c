use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, runtime::watcher::Event};

use crate::{
    report::{Events, Told, metrics::Metrics, warning},
    watch::lenient::{Identity, Lenient, Place, Unreadable},
};

/// The unreadable objects of a watch: each is reported, again before its Event expires, and counted until it can be read
/// or is gone.
pub(crate) struct Unread {
    kind: String,
    events: Option<Events>,
    metrics: Arc<Metrics>,
    /// Each object and the mistake in it, by its uid.
    known: HashMap<String, (ObjectReference, String)>,
    told: Told,
    /// The uids of those in the current list.
    listed: HashSet<String>,
}

impl Unread {
    pub fn new(kind: &str, events: Option<Events>, metrics: Arc<Metrics>) -> Self {
        metrics.unreadable.get_or_create(&Metrics::of(kind)).set(0);
        Self {
            kind: kind.to_owned(),
            events,
            metrics,
            known: HashMap::new(),
            told: Told::default(),
            listed: HashSet::new(),
        }
    }

    /// Takes note of an event, and passes it on.
    pub fn hear<K: Resource>(&mut self, event: Event<Lenient<K>>) -> Event<Lenient<K>> {
        match &event {
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
                self.told.retain(|uid| listed.contains(uid));
                self.count();
            }
        }
        event
    }

    /// Reports again the objects whose Events expire soon.
    pub fn tell_again(&mut self) {
        for (uid, (object, error)) in &self.known {
            if has_room(self.events.as_ref()) && self.told.is_due(uid, error) {
                tell(&self.kind, self.events.as_ref(), object, error);
            }
        }
    }

    fn found(&mut self, Unreadable { identity, error }: &Unreadable) {
        let Identity { api_version, kind, metadata } = identity;
        let Place { namespace, name, uid, .. } = metadata.clone();
        let key = uid.clone().unwrap_or_default();
        let object = ObjectReference {
            api_version: api_version.clone(),
            kind: Some(kind.clone().unwrap_or_else(|| self.kind.clone())),
            namespace,
            name,
            uid,
            ..ObjectReference::default()
        };
        // Without room, it is told when the others are told again.
        if has_room(self.events.as_ref()) && self.told.is_due(&key, error) {
            tell(&self.kind, self.events.as_ref(), &object, error);
        }
        self.known.insert(key, (object, error.clone()));
        self.count();
    }

    fn forget(&mut self, uid: Option<&str>) {
        let Some(uid) = uid else { return };
        if self.known.remove(uid).is_some() {
            self.told.forget(uid);
            self.count();
        }
    }

    fn count(&self) {
        self.metrics.unreadable.get_or_create(&Metrics::of(&self.kind)).set(self.known.len() as u64);
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.metrics.unreadable.get_or_create(&Metrics::of(&self.kind)).set(0);
    }
}

/// Whether an Event would not be dropped.
fn has_room(events: Option<&Events>) -> bool {
    events.is_none_or(Events::has_capacity)
}

fn tell(kind: &str, events: Option<&Events>, object: &ObjectReference, error: &str) {
    let text =
        format!("this object cannot be read and is skipped until it can: {error}; correct or delete it");
    let name = [&object.namespace, &object.name].map(|part| part.as_deref().unwrap_or_default()).join("/");
    tracing::error!(kind, object = name, "{text}");
    if let Some(events) = events {
        events.publish(object, warning("Unreadable", &text));
    }
}

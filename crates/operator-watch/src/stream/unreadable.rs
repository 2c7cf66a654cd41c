use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, runtime::watcher::Event};

use crate::{
    lenient::{Lenient, Unreadable},
    report::Report,
};

/// The unreadable objects of a watch: each is reported, again before its Event expires, and counted until it can be read
/// or is gone.
pub(crate) struct Unread {
    kind: String,
    report: Arc<dyn Report>,
    /// Each object and the mistake in it, by its uid.
    known: HashMap<String, (ObjectReference, String)>,
    /// The uids of those that the current list has not shown yet.
    unlisted: HashSet<String>,
}

impl Unread {
    pub fn new(kind: &str, report: Arc<dyn Report>) -> Self {
        report.unreadable(kind, 0);
        Self { kind: kind.to_owned(), report, known: HashMap::new(), unlisted: HashSet::new() }
    }

    /// Takes note of an event, and passes it on.
    pub fn hear<K: Resource>(&mut self, event: Event<Lenient<K>>) -> Event<Lenient<K>> {
        match &event {
            Event::Init => self.unlisted = self.known.keys().cloned().collect(),
            Event::InitApply(Lenient(Err(unreadable))) | Event::Apply(Lenient(Err(unreadable))) => {
                self.found(unreadable);
            }
            Event::Apply(Lenient(Ok(object))) | Event::Delete(Lenient(Ok(object))) => {
                self.forget(object.meta().uid.as_deref());
            }
            Event::Delete(Lenient(Err(unreadable))) => {
                self.forget(unreadable.object.uid.as_deref());
            }
            Event::InitApply(Lenient(Ok(_))) => {}
            Event::InitDone => {
                for uid in std::mem::take(&mut self.unlisted) {
                    self.forget(Some(&uid));
                }
            }
        }
        event
    }

    /// Reports those again whose Events expire soon, and those that the queue of Events had no room for.
    pub fn tell_again(&self) {
        for (object, error) in self.known.values() {
            self.tell(object, error);
        }
    }

    fn found(&mut self, Unreadable { object, error }: &Unreadable) {
        let kind = object.kind.clone().or_else(|| Some(self.kind.clone()));
        let object = ObjectReference { kind, resource_version: None, ..object.clone() };
        let key = object.uid.clone().unwrap_or_default();
        self.unlisted.remove(&key);
        if self.known.get(&key).is_none_or(|(_, known)| known != error) {
            self.forget(object.uid.as_deref());
            let name = [&object.namespace, &object.name].map(|part| part.as_deref().unwrap_or_default());
            tracing::error!(kind = self.kind, object = name.join("/"), "{}", text(error));
        }
        self.tell(&object, error);
        self.known.insert(key, (object, error.clone()));
        self.count();
    }

    fn forget(&mut self, uid: Option<&str>) {
        let Some(uid) = uid else { return };
        let Some((object, error)) = self.known.remove(uid) else { return };
        self.report.is_mended(&object, &error);
        self.count();
    }

    fn tell(&self, object: &ObjectReference, error: &str) {
        self.report.is_unreadable(object, error, &text(error));
    }

    fn count(&self) {
        self.report.unreadable(&self.kind, self.known.len());
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.report.unreadable(&self.kind, 0);
    }
}

fn text(error: &str) -> String {
    format!("this object cannot be read and is skipped until it can: {error}; correct or delete it")
}

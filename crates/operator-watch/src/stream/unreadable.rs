use std::{
    collections::{HashMap, HashSet},
    mem::take,
    sync::Arc,
};

use kube::{Resource, runtime::watcher::Event};

use crate::{
    Failure,
    lenient::{Lenient, Unreadable},
    reason::UNREADABLE,
    report::Report,
};

/// The unreadable objects of a watch: each is reported, again before its Event expires, and counted until it can be read
/// or is gone.
pub(crate) struct Unread {
    kind: String,
    report: Arc<dyn Report>,
    /// By uid.
    known: HashMap<String, Unreadable>,
    /// The uids of those that the current list has not shown yet.
    unlisted: HashSet<String>,
}

impl Unread {
    pub fn new(kind: &str, report: Arc<dyn Report>) -> Self {
        let unread = Self { kind: kind.to_owned(), report, known: HashMap::new(), unlisted: HashSet::new() };
        unread.count();
        unread
    }

    /// Takes note of an event, and passes it on.
    pub fn hear<K: Resource>(&mut self, event: Event<Lenient<K>>) -> Event<Lenient<K>> {
        match &event {
            Event::Init => self.unlisted = self.known.keys().cloned().collect(),
            Event::InitApply(Lenient(Err(unreadable))) | Event::Apply(Lenient(Err(unreadable))) => {
                self.found(unreadable.clone());
            }
            Event::InitApply(Lenient(Ok(_))) => {}
            Event::Apply(object) | Event::Delete(object) => self.forget(object.uid()),
            Event::InitDone => take(&mut self.unlisted).iter().for_each(|uid| self.forget(uid)),
        }
        event
    }

    /// Reports those again whose Events expire soon, and those that the queue of Events had no room for.
    pub fn tell_again(&self) {
        self.known.values().for_each(|unreadable| self.tell(unreadable));
    }

    fn found(&mut self, mut unreadable: Unreadable) {
        let Unreadable { object, error } = &mut unreadable;
        object.kind.get_or_insert_with(|| self.kind.clone());
        object.resource_version = None;
        let uid = object.uid.clone().unwrap_or_default();
        self.unlisted.remove(&uid);
        if self.known.get(&uid).is_none_or(|known| known.error != *error) {
            self.forget(&uid);
            let name = [&object.namespace, &object.name].map(|part| part.as_deref().unwrap_or_default());
            tracing::error!(kind = self.kind, object = name.join("/"), "{}", text(error));
        }
        self.tell(&unreadable);
        self.known.insert(uid, unreadable);
        self.count();
    }

    fn forget(&mut self, uid: &str) {
        let Some(Unreadable { object, error }) = self.known.remove(uid) else { return };
        self.report.is_mended(&object, &error);
        self.count();
    }

    fn tell(&self, Unreadable { object, error }: &Unreadable) {
        self.report.is_unreadable(object, error, &Failure::transient(UNREADABLE, text(error)));
    }

    fn count(&self) {
        self.report.unreadable(&self.kind, self.known.len());
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        self.known.clear();
        self.count();
    }
}

fn text(error: &str) -> String {
    format!("this object cannot be read and is skipped until it can: {error}; correct or delete it")
}

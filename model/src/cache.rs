//! A watch and its cache.

use std::{
    collections::{BTreeMap, VecDeque},
    hash::{Hash, Hasher},
};

use crate::server::{
    Event, Server,
    object::{Key, Object, Stored, Text, Version},
};

/// One watch of one process: it lags behind the server independently of others.
#[derive(Clone, Debug)]
pub struct Cache<S, T> {
    rows: BTreeMap<Key, Stored<S, T>>,
    pending: VecDeque<Event<S, T>>,
    /// The highest version of an own write that decisions wait for: the rule of `operator-kit/src/write/record.rs`,
    /// which also has a time limit there.
    awaited: Version,
}

impl<S, T> Default for Cache<S, T> {
    fn default() -> Self {
        Self { rows: BTreeMap::new(), pending: VecDeque::new(), awaited: Version::default() }
    }
}

impl<S: Clone + PartialEq + Hash, T: Clone + PartialEq + Hash + Default> Cache<S, T> {
    /// Lists: changes between the last event and now are never shown.
    pub fn list(&mut self, server: &Server<S, T>, is_watched: impl Fn(&Object<S, T>) -> bool) {
        self.rows = server
            .objects()
            .filter(|object| is_watched(object))
            .map(|object| (object.meta.key.clone(), object.clone()))
            .collect();
        self.pending.clear();
    }

    /// A change that the watch has yet to show. An object that no longer matches the watch is shown as deleted.
    pub fn hear(&mut self, event: &Event<S, T>, is_watched: impl Fn(&Object<S, T>) -> bool) {
        let is_shown = is_watched(&event.object);
        let was_shown =
            || match self.pending.iter().rev().find(|before| before.object.meta.key == event.object.meta.key)
            {
                Some(before) => !before.is_deletion,
                None => self.rows.contains_key(&event.object.meta.key),
            };
        if is_shown || was_shown() {
            let is_deletion = event.is_deletion || !is_shown;
            self.pending.push_back(Event { is_deletion, ..event.clone() });
        }
    }

    /// Number of events that have yet to be shown.
    pub fn lag(&self) -> usize {
        self.pending.len()
    }

    /// Shows the next events, and returns the uids of the deleted objects.
    pub fn show(&mut self, count: usize) -> Vec<Text> {
        let mut gone = Vec::new();
        for event in self.pending.drain(..count) {
            let key = event.object.meta.key.clone();
            if event.is_deletion {
                gone.push(event.object.meta.uid.clone());
                self.rows.remove(&key);
            } else {
                self.rows.insert(key, event.object);
            }
        }
        gone
    }

    /// An own write was answered with this version.
    pub fn wrote(&mut self, version: Version) {
        self.awaited = self.awaited.max(version);
    }

    /// Whether every own write is shown after `count` more events.
    pub fn is_current_after(&self, count: usize) -> bool {
        self.awaited_events() <= count
    }

    /// Number of events until every own write is shown. A watch without an event for a
    /// write passes it by a bookmark.
    fn awaited_events(&self) -> usize {
        self.pending.iter().filter(|event| event.version <= self.awaited).count()
    }

    /// No decision waits any more.
    pub fn forget_writes(&mut self) {
        self.awaited = Version::default();
    }

    /// Its objects, in the order of names.
    pub fn rows(&self) -> impl Iterator<Item = &Stored<S, T>> {
        self.rows.values()
    }

    /// An object in the cache.
    pub fn get(&self, key: &Key) -> Option<&Stored<S, T>> {
        self.rows.get(key)
    }
}

/// Versions matter only for awaited writes.
impl<S: Clone + PartialEq + Hash, T: Clone + PartialEq + Hash + Default> Hash for Cache<S, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rows.hash(state);
        self.pending.hash(state);
        self.awaited_events().hash(state);
    }
}

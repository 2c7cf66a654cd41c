//! The API server's treatment of objects: a small value, each step of which is one request.
//!
//! The rules are those of kube-apiserver's generic registry (`registry/generic/registry/store.go`, `registry/rest`) and
//! of server-side apply; they are stated for one namespace.

pub mod garbage;
pub mod object;
pub mod operation;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, hash::Hash};

use object::{FOREGROUND, Key, Meta, ORPHAN, Object, Stored, Version};
use operation::{Answer, Change, Operation, Preconditions, Propagation, Verb};

/// An event of a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event<S, T> {
    /// The resourceVersion of the event.
    pub version: Version,
    /// The object, in its present or last state.
    pub object: Stored<S, T>,
    /// Whether it is gone.
    pub is_deletion: bool,
}

/// All objects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Server<S, T> {
    objects: BTreeMap<Key, Stored<S, T>>,
    /// The number of incarnations of each name.
    incarnations: BTreeMap<Key, u8>,
    version: Version,
    /// The time, in ticks.
    pub clock: u8,
    news: Vec<Event<S, T>>,
}

impl<S, T> Default for Server<S, T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            incarnations: BTreeMap::new(),
            version: Version::default(),
            clock: 0,
            news: Vec::new(),
        }
    }
}

impl<S, T> Server<S, T> {
    /// The present state of an object.
    #[must_use]
    pub fn get(&self, key: &Key) -> Option<&Stored<S, T>> {
        self.objects.get(key)
    }

    /// All objects, in the order of kind and name.
    pub fn objects(&self) -> impl Iterator<Item = &Stored<S, T>> {
        self.objects.values()
    }

    /// The resourceVersion of the last write.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The number of objects that were ever created.
    #[must_use]
    pub fn created(&self) -> u8 {
        self.incarnations.values().sum()
    }

    /// The events for watches since the last call.
    pub fn take_news(&mut self) -> Vec<Event<S, T>> {
        std::mem::take(&mut self.news)
    }
}

impl<S: Clone + PartialEq + Hash, T: Clone + PartialEq + Hash + Default> Server<S, T> {
    /// Answers a request.
    pub fn apply(&mut self, operation: Operation<S, T>) -> Answer<S, T> {
        match operation {
            Operation::Create(object) => self.create(object),
            Operation::Get(key) => self.objects.get(&key).cloned().map_or(Answer::NotFound, Answer::Done),
            Operation::Patch { key, verb, preconditions, changes } => {
                let missing = match verb {
                    Verb::Apply if preconditions.uid.is_some() => Answer::Conflict,
                    Verb::Apply | Verb::Merge => Answer::NotFound,
                };
                self.change(&key, &preconditions, missing, |object| {
                    changes.iter().all(|change| apply_change(object, change))
                })
            }
            Operation::PatchStatus { key, preconditions, status } => {
                // A subresource creates nothing, so that an apply to it finds nothing, whatever uid it names.
                self.change(&key, &preconditions, Answer::NotFound, |object| {
                    object.status = status.clone();
                    true
                })
            }
            Operation::Delete { key, preconditions, propagation, is_immediate } => {
                self.delete(&key, &preconditions, propagation, is_immediate)
            }
        }
    }

    fn create(&mut self, mut object: Object<S, T>) -> Answer<S, T> {
        let key = object.meta.key.clone();
        if self.objects.contains_key(&key) {
            return Answer::AlreadyExists;
        }
        if !is_valid(&object.meta) {
            return Answer::Invalid;
        }
        let incarnation = self.incarnations.entry(key.clone()).or_default();
        *incarnation += 1;
        object.meta.uid = format!("{:?}:{}:{incarnation}", key.kind, key.name).into();
        object.meta.generation = 1;
        object.meta.created = self.clock;
        (object.meta.is_deleting, object.meta.deleted, object.meta.has_grace) = (false, 0, false);
        // The status is a subresource; a create drops it.
        object.status = T::default();
        self.store(object)
    }

    fn change(
        &mut self,
        key: &Key,
        preconditions: &Preconditions,
        missing: Answer<S, T>,
        change: impl FnOnce(&mut Object<S, T>) -> bool,
    ) -> Answer<S, T> {
        let Some(before) = self.objects.get(key).cloned() else { return missing };
        if !holds(preconditions, &before.meta) {
            return Answer::Conflict;
        }
        let mut after = Object::clone(&*before);
        if !change(&mut after) || !is_valid(&after.meta) {
            return Answer::Invalid;
        }
        let is_new = |finalizer| !before.meta.is_held_by(finalizer);
        if before.meta.is_deleting && after.meta.finalizers.iter().any(|finalizer| is_new(finalizer)) {
            return Answer::Invalid;
        }
        if after.spec != before.spec {
            after.meta.generation += 1;
        }
        // A patch without an effect is no write.
        if after == *before {
            return Answer::Done(before);
        }
        let has_lost_its_last =
            !before.meta.finalizers.is_empty() && after.meta.finalizers.is_empty() && after.meta.is_deleting;
        if has_lost_its_last && !after.meta.has_grace {
            return self.remove(after);
        }
        self.store(after)
    }

    fn delete(
        &mut self,
        key: &Key,
        preconditions: &Preconditions,
        propagation: Option<Propagation>,
        is_immediate: bool,
    ) -> Answer<S, T> {
        let Some(before) = self.objects.get(key).cloned() else { return Answer::NotFound };
        if !holds(preconditions, &before.meta) {
            return Answer::Conflict;
        }
        if before.meta.has_grace && !is_immediate {
            // `rest.BeforeDelete`: while a graceful deletion is pending, a delete can only end its grace period.
            return Answer::Done(before);
        }
        let mut after = Object::clone(&*before);
        let finalizers = &mut after.meta.finalizers;
        let ours = match propagation {
            None => None,
            Some(Propagation::Background) => Some(None),
            Some(Propagation::Foreground) => Some(Some(FOREGROUND)),
            Some(Propagation::Orphan) => Some(Some(ORPHAN)),
        };
        if let Some(ours) = ours {
            finalizers.retain(|held| &**held != FOREGROUND && &**held != ORPHAN);
            finalizers.extend(ours.map(Into::into));
        }
        // A second delete does not prolong a grace period, but may end it.
        let is_graceful = key.kind.is_graceful() && (!before.meta.is_deleting || before.meta.has_grace);
        after.meta.has_grace = is_graceful && !is_immediate;
        if after.meta.finalizers.is_empty() && !after.meta.has_grace {
            return self.remove(after);
        }
        if !after.meta.is_deleting {
            (after.meta.is_deleting, after.meta.deleted) = (true, self.clock);
            after.meta.generation += 1;
        }
        if after == *before { Answer::Done(before) } else { self.store(after) }
    }

    fn store(&mut self, mut object: Object<S, T>) -> Answer<S, T> {
        self.version.0 += 1;
        object.meta.version = self.version;
        let object = Stored::from(object);
        self.objects.insert(object.meta.key.clone(), object.clone());
        self.news.push(Event { version: self.version, object: object.clone(), is_deletion: false });
        Answer::Done(object)
    }

    fn remove(&mut self, mut object: Object<S, T>) -> Answer<S, T> {
        self.version.0 += 1;
        object.meta.version = self.version;
        object.meta.is_deleting = true;
        self.objects.remove(&object.meta.key);
        let object = Stored::from(object);
        self.news.push(Event { version: self.version, object: object.clone(), is_deletion: true });
        Answer::Done(object)
    }
}

fn holds(preconditions: &Preconditions, meta: &Meta) -> bool {
    preconditions.uid.as_ref().is_none_or(|uid| *uid == meta.uid)
        && preconditions.version.is_none_or(|version| version == meta.version)
}

/// An object has at most one controller.
fn is_valid(meta: &Meta) -> bool {
    meta.owners.iter().filter(|owner| owner.is_controller).count() <= 1
}

/// Applies a change, and returns whether it was possible.
fn apply_change<S: Clone, T>(object: &mut Object<S, T>, change: &Change<S>) -> bool {
    let meta = &mut object.meta;
    match change {
        Change::Label(key, Some(value)) => drop(meta.labels.insert(key.clone(), value.clone())),
        Change::Label(key, None) => drop(meta.labels.remove(key)),
        Change::Annotation(key, Some(value)) => drop(meta.annotations.insert(key.clone(), value.clone())),
        Change::Annotation(key, None) => drop(meta.annotations.remove(key)),
        Change::AddOwner(owner) => match meta.owners.iter_mut().find(|other| other.uid == owner.uid) {
            Some(other) => *other = owner.clone(),
            None => meta.owners.push(owner.clone()),
        },
        Change::RemoveOwner(uid) => meta.owners.retain(|owner| owner.uid != *uid),
        Change::AddFinalizer(name) if !meta.is_held_by(name) => meta.finalizers.push(name.clone()),
        Change::AddFinalizer(_) => {}
        Change::RemoveFinalizer(name) => meta.finalizers.retain(|held| held != name),
        Change::Spec(spec) => object.spec = spec.clone(),
    }
    true
}

//! Tells changes of contents from changes of a status, such as the use of a quota.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    mem::take,
};

use kube::runtime::watcher::Event;
use serde_json::Value;

use crate::watch::{Lenient, TrimmedObject};

/// A digest of the content of each object, by its uid, and its namespace.
type Digests = HashMap<String, (Option<String>, u64)>;

/// The contents of all objects of a kind.
#[derive(Default)]
pub(super) struct Contents {
    known: Digests,
    /// A list that is not complete.
    list: Digests,
    is_listed: bool,
}

impl Contents {
    /// Takes an event, and returns the namespaces in which an object came, changed or went; `None` stands for all of them.
    pub fn take(&mut self, event: Event<Lenient<TrimmedObject>>) -> Vec<Option<String>> {
        match event {
            Event::Init => self.list.clear(),
            Event::InitApply(object) => self.list.extend(digest(object)),
            Event::InitDone => return self.listed(),
            Event::Apply(object) => {
                let Some((uid, now)) = digest(object) else { return Vec::new() };
                if self.known.get(&uid) != Some(&now) {
                    self.known.insert(uid, now.clone());
                    return vec![now.0];
                }
            }
            Event::Delete(object) => {
                let gone = digest(object).and_then(|(uid, _)| self.known.remove(&uid));
                return gone.into_iter().map(|(namespace, _)| namespace).collect();
            }
        }
        Vec::new()
    }

    fn listed(&mut self) -> Vec<Option<String>> {
        let before = std::mem::replace(&mut self.known, take(&mut self.list));
        if !std::mem::replace(&mut self.is_listed, true) {
            // Something may have changed between the refusal and the list.
            return vec![None];
        }
        let differs = |one: &Digests, other: &Digests| {
            let differing = one.iter().filter(|(uid, object)| other.get(*uid) != Some(*object));
            differing.map(|(_, (namespace, _))| namespace.clone()).collect::<Vec<_>>()
        };
        [differs(&before, &self.known), differs(&self.known, &before)].concat()
    }
}

/// The uid, the namespace and the digest of the content of an object that can be read. A cluster-scoped object
/// has none, and concerns all of them.
fn digest(object: Lenient<TrimmedObject>) -> Option<(String, (Option<String>, u64))> {
    let TrimmedObject { metadata, mut data } = object.0.ok()?;
    if let Value::Object(fields) = &mut data {
        // An object of a list has no type, and that of an event has one.
        for field in ["status", "apiVersion", "kind"] {
            fields.remove(field);
        }
    }
    let mut hasher = DefaultHasher::new();
    data.to_string().hash(&mut hasher);
    metadata.deletion_timestamp.is_some().hash(&mut hasher);
    Some((metadata.uid?, (metadata.namespace, hasher.finish())))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(uid: &str, pods: u32, used: u32) -> Lenient<TrimmedObject> {
        let object = json!({
            "metadata": {"name": uid, "namespace": "shop", "uid": uid},
            "spec": {"hard": {"pods": pods}}, "status": {"used": {"pods": used}},
        });
        Lenient(Ok(serde_json::from_value(object).unwrap()))
    }

    fn listed(contents: &mut Contents, objects: Vec<Lenient<TrimmedObject>>) -> Vec<Option<String>> {
        contents.take(Event::Init);
        for object in objects {
            assert!(contents.take(Event::InitApply(object)).is_empty());
        }
        contents.take(Event::InitDone)
    }

    #[test]
    fn a_quota_that_came_changed_or_went_is_noticed_and_its_use_is_not() {
        let in_shop = vec![Some("shop".to_owned())];
        let mut contents = Contents::default();
        assert_eq!(listed(&mut contents, vec![quota("a", 3, 0)]), [None], "it may have changed before");
        let Lenient(Ok(mut used)) = quota("a", 3, 2) else { panic!("it can be read") };
        used.data["apiVersion"] = "v1".into();
        used.data["kind"] = "ResourceQuota".into();
        assert!(contents.take(Event::Apply(Lenient(Ok(used)))).is_empty(), "only its use has changed");
        assert_eq!(contents.take(Event::Apply(quota("a", 4, 2))), in_shop);
        assert_eq!(contents.take(Event::Apply(quota("b", 1, 0))), in_shop);
        assert_eq!(contents.take(Event::Delete(quota("b", 1, 1))), in_shop);
        assert!(contents.take(Event::Delete(quota("b", 1, 1))).is_empty());
    }

    #[test]
    fn changes_during_an_interruption_are_noticed_by_the_next_list() {
        let mut contents = Contents::default();
        listed(&mut contents, vec![quota("a", 3, 0), quota("b", 3, 0)]);
        assert!(listed(&mut contents, vec![quota("a", 3, 1), quota("b", 3, 1)]).is_empty());
        assert_eq!(listed(&mut contents, vec![quota("a", 3, 1)]).len(), 1, "one has gone");
        assert_eq!(listed(&mut contents, vec![quota("a", 5, 1), quota("c", 3, 0)]).len(), 3);
    }
}

use std::{
    borrow::Borrow,
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    mem::take,
    sync::Arc,
};

use kube::{Resource, runtime::watcher::Event};
use parking_lot::RwLock;

use crate::{WatchHandle, decode::Received, object::ObjectId};

/// The part of a watched object that a controller keeps: only the fields that it reads.
pub trait Row: Send + Sync + 'static {
    /// The object's identity.
    fn id(&self) -> ObjectId<'_>;
    /// The key for looking up the object: the uid of its controller, or for an object without one, a key that its next
    /// owner knows.
    fn index_key(&self) -> Option<&str>;
    /// Whether a newer row of the same object is equal. This one then stays in place: nobody is told of a change in fields
    /// that nobody reads, and during a new list, many rows are not in memory twice.
    fn is_unchanged(&self, _newer: &Self) -> bool {
        false
    }
    /// Whether a newer row of the same object differs only in fields that no decision waits for. It takes the place of this
    /// one, and nobody is told.
    fn is_quiet(&self, _newer: &Self) -> bool {
        false
    }
}

/// A whole object is looked up by its name.
impl<K: Resource + Send + Sync + 'static> Row for K {
    fn id(&self) -> ObjectId<'_> {
        ObjectId::of(self)
    }

    fn index_key(&self) -> Option<&str> {
        self.meta().name.as_deref()
    }
}

/// The rows of one watch, by uid and by index key.
///
/// A new list replaces the old one at once when it is complete, so that a reader never sees half of it.
pub struct Cache<R> {
    pub(crate) rows: SharedRows<R>,
    pub(crate) watch: WatchHandle,
}

/// The rows of one watch, which it fills.
pub(crate) type SharedRows<R> = Arc<RwLock<Rows<R>>>;

/// The rows of one watch, by uid and by index key.
pub(crate) struct Rows<R> {
    by_uid: HashSet<ByUid<R>>,
    /// By [`index_key_in`] a namespace: very many namespaces may have an object of the same name.
    index: HashMap<Box<str>, Vec<Arc<R>>>,
    relist: Option<HashSet<ByUid<R>>>,
}

/// A row that is its own key, so that no uid is stored twice.
struct ByUid<R>(Arc<R>);

impl<R: Row> Borrow<str> for ByUid<R> {
    fn borrow(&self) -> &str {
        self.0.id().uid
    }
}

impl<R: Row> Hash for ByUid<R> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let uid: &str = self.borrow();
        uid.hash(state);
    }
}

impl<R: Row> PartialEq for ByUid<R> {
    fn eq(&self, other: &Self) -> bool {
        let (one, other): (&str, &str) = (self.borrow(), other.borrow());
        one == other
    }
}

impl<R: Row> Eq for ByUid<R> {}

impl<R> Default for Rows<R> {
    fn default() -> Self {
        Self { by_uid: HashSet::new(), index: HashMap::new(), relist: None }
    }
}

impl<R: Row> Cache<R> {
    /// The watch that fills it.
    #[must_use]
    pub fn watch(&self) -> &WatchHandle {
        &self.watch
    }

    /// The row of an object.
    #[must_use]
    pub fn row(&self, uid: &str) -> Option<Arc<R>> {
        self.rows.read().row(uid)
    }

    /// The rows with an index key in a namespace, in no order. Owners and dependents are in the same namespace, because users
    /// with rights in another one could name any uid there.
    #[must_use]
    pub fn by_index(&self, namespace: &str, key: &str) -> Vec<Arc<R>> {
        self.rows.read().by_index(namespace, key)
    }

    /// All rows for which `keep` is true, in no order. It is called for every row.
    pub fn filter(&self, keep: impl Fn(&R) -> bool) -> Vec<Arc<R>> {
        self.rows.read().by_uid.iter().filter(|ByUid(row)| keep(row)).map(|ByUid(row)| row.clone()).collect()
    }
}

impl<R: Row> Rows<R> {
    /// The rows with an index key in a namespace, in no order.
    pub fn by_index(&self, namespace: &str, key: &str) -> Vec<Arc<R>> {
        self.index.get(&*index_key_in(namespace, key)).cloned().unwrap_or_default()
    }

    /// The row of an object.
    pub fn row(&self, uid: &str) -> Option<Arc<R>> {
        self.by_uid.get(uid).map(|ByUid(row)| row.clone())
    }

    /// Applies one event, and returns each row that is new, changed (also its former state) or gone. An unreadable object
    /// keeps its last row, because it must not look deleted.
    pub fn take<K: Resource>(
        &mut self,
        event: Event<Received<K>>,
        prune: impl FnOnce(K) -> Arc<R>,
    ) -> Vec<Arc<R>> {
        match event {
            Event::Apply(Received(Ok(object))) => return self.put(prune(object)),
            Event::Apply(Received(Err(_))) => {}
            Event::Delete(object) => return self.remove(object.uid()).into_iter().collect(),
            Event::Init => self.relist = Some(HashSet::new()),
            Event::InitApply(Received(Ok(object))) => self.list(prune(object)),
            Event::InitApply(unreadable) => {
                self.row(unreadable.uid()).into_iter().for_each(|known| self.list(known));
            }
            Event::InitDone => return self.replace(),
        }
        Vec::new()
    }

    fn put(&mut self, row: Arc<R>) -> Vec<Arc<R>> {
        if self.by_uid.get(row.id().uid).is_some_and(|ByUid(known)| known.is_unchanged(&row)) {
            return Vec::new();
        }
        let old = self.by_uid.replace(ByUid(row.clone())).map(|ByUid(old)| old);
        // The former owner needs to know only if the row moved.
        let moved = old.as_ref().filter(|old| index_of(&***old) != index_of(&*row)).cloned();
        match &old {
            Some(old) if moved.is_none() => self.remove_from_index(old, Some(row.clone())),
            _ => self.add_to_index(&row),
        }
        if let Some(moved) = &moved {
            self.remove_from_index(moved, None);
        }
        if old.is_some_and(|old| old.is_quiet(&row)) {
            return Vec::new();
        }
        moved.into_iter().chain([row]).collect()
    }

    fn add_to_index(&mut self, row: &Arc<R>) {
        let Some(key) = row.index_key() else { return };
        self.index.entry(index_key_in(row.id().namespace, key)).or_default().push(row.clone());
    }

    /// Takes a row out of the index, or puts its successor in its place. Rows with the same key have no order.
    fn remove_from_index(&mut self, row: &Arc<R>, successor: Option<Arc<R>>) {
        let Some(key) = row.index_key().map(|key| index_key_in(row.id().namespace, key)) else { return };
        let Some(members) = self.index.get_mut(&key) else { return };
        let place = members.iter().position(|member| Arc::ptr_eq(member, row));
        match (place, successor) {
            (Some(place), Some(successor)) => members[place] = successor,
            (Some(place), None) => drop(members.swap_remove(place)),
            (None, _) => {}
        }
        if members.is_empty() {
            self.index.remove(&key);
        }
    }

    fn remove(&mut self, uid: &str) -> Option<Arc<R>> {
        let ByUid(old) = self.by_uid.take(uid)?;
        self.remove_from_index(&old, None);
        Some(old)
    }

    /// Adds a row to the new list.
    fn list(&mut self, row: Arc<R>) {
        let known = self.by_uid.get(row.id().uid).filter(|ByUid(known)| known.is_unchanged(&row));
        let row = known.map_or(row, |ByUid(known)| known.clone());
        self.relist.get_or_insert_default().replace(ByUid(row));
    }

    fn replace(&mut self) -> Vec<Arc<R>> {
        let Some(new) = self.relist.take() else { return Vec::new() };
        let old = take(&mut self.by_uid);
        self.index.clear();
        let stays =
            |row: &R| new.get(row.id().uid).is_some_and(|ByUid(new)| new.index_key() == row.index_key());
        let gone = old.into_iter().map(|ByUid(row)| row).filter(|row| !stays(row));
        let affected: Vec<_> = gone.chain(new.iter().map(|ByUid(row)| row.clone())).collect();
        for ByUid(row) in &new {
            self.add_to_index(row);
        }
        self.by_uid = new;
        affected
    }
}

/// The namespace and the index key of a row.
fn index_of<R: Row>(row: &R) -> Option<(&str, &str)> {
    Some((row.id().namespace, row.index_key()?))
}

/// An index key in a namespace, whose name contains no slash.
fn index_key_in(namespace: &str, key: &str) -> Box<str> {
    [namespace, "/", key].concat().into()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::ObjectMeta;

    use super::*;
    use crate::{
        Watch, Watches,
        testing::{Answer, answering},
    };

    #[derive(PartialEq)]
    struct Pod(&'static str, Option<&'static str>);

    impl Row for Pod {
        fn id(&self) -> ObjectId<'_> {
            let (namespace, name) = self.0.split_once('/').unwrap_or(("", self.0));
            ObjectId { namespace, name, uid: self.0 }
        }
        fn index_key(&self) -> Option<&str> {
            self.1
        }
        fn is_unchanged(&self, newer: &Self) -> bool {
            self == newer
        }
        fn is_quiet(&self, newer: &Self) -> bool {
            newer.1 == Some("quiet")
        }
    }

    /// One that is filled by the test alone.
    fn cache() -> Arc<Cache<Pod>> {
        let (client, _log) = answering(|_| Answer::Silence);
        let watch = Watch::<ConfigMap>::all(&client, &());
        Watches::default().cache(watch, |_| unreachable!("it lists nothing"), |_| {})
    }

    /// Nothing but its uid is read of an object.
    fn object(pod: &Pod) -> Received<ConfigMap> {
        let metadata = ObjectMeta { uid: Some(pod.0.to_owned()), ..ObjectMeta::default() };
        Received(Ok(ConfigMap { metadata, ..ConfigMap::default() }))
    }

    fn take(cache: &Cache<Pod>, event: Event<Pod>) -> Vec<(String, Option<String>)> {
        let (event, pod) = match event {
            Event::Apply(pod) => (Event::Apply(object(&pod)), Some(pod)),
            Event::Delete(pod) => (Event::Delete(object(&pod)), Some(pod)),
            Event::InitApply(pod) => (Event::InitApply(object(&pod)), Some(pod)),
            Event::Init => (Event::Init, None),
            Event::InitDone => (Event::InitDone, None),
        };
        let told = cache.rows.write().take(event, |_| Arc::new(pod.unwrap()));
        told.iter().map(|pod| (pod.0.to_owned(), pod.1.map(str::to_owned))).collect()
    }

    fn uids(cache: &Cache<Pod>, key: &str) -> Vec<String> {
        cache.by_index("", key).iter().map(|pod| pod.0.to_owned()).collect()
    }

    #[tokio::test]
    async fn a_row_that_moves_tells_its_old_and_its_new_index_key() {
        let cache = cache();
        take(&cache, Event::Apply(Pod("p", Some("a"))));
        let told = take(&cache, Event::Apply(Pod("p", Some("b"))));
        assert_eq!(told, [("p".into(), Some("a".into())), ("p".into(), Some("b".into()))]);
        assert_eq!((uids(&cache, "a").len(), uids(&cache, "b").len()), (0, 1));
    }

    #[tokio::test]
    async fn a_change_that_no_row_shows_is_not_told() {
        let cache = cache();
        assert_eq!(take(&cache, Event::Apply(Pod("p", Some("a")))).len(), 1);
        assert!(take(&cache, Event::Apply(Pod("p", Some("a")))).is_empty());
        assert_eq!(uids(&cache, "a"), ["p"]);
    }

    #[tokio::test]
    async fn a_quiet_change_takes_effect_and_is_not_told() {
        let cache = cache();
        take(&cache, Event::Apply(Pod("p", Some("a"))));
        assert!(take(&cache, Event::Apply(Pod("p", Some("quiet")))).is_empty());
        assert_eq!((uids(&cache, "a").len(), uids(&cache, "quiet")), (0, vec!["p".to_owned()]));
    }

    #[tokio::test]
    async fn a_relist_shows_at_once_when_complete_and_tells_what_is_gone() {
        let cache = cache();
        take(&cache, Event::Apply(Pod("old", Some("a"))));
        take(&cache, Event::Init);
        take(&cache, Event::InitApply(Pod("new", Some("a"))));
        assert_eq!(uids(&cache, "a"), ["old"]);
        let told = take(&cache, Event::InitDone);
        assert_eq!(uids(&cache, "a"), ["new"]);
        assert_eq!(told.iter().map(|(uid, _)| uid.as_str()).collect::<Vec<_>>(), ["old", "new"]);
    }

    #[tokio::test]
    async fn a_relist_tells_the_old_and_the_new_index_key_of_a_row_that_moved() {
        let cache = cache();
        take(&cache, Event::Apply(Pod("p", Some("a"))));
        take(&cache, Event::Init);
        take(&cache, Event::InitApply(Pod("p", Some("b"))));
        let told = take(&cache, Event::InitDone);
        assert_eq!(told, [("p".into(), Some("a".into())), ("p".into(), Some("b".into()))]);
    }

    #[tokio::test]
    async fn a_relist_keeps_the_rows_that_have_not_changed() {
        let cache = cache();
        for pod in [Pod("same", Some("a")), Pod("moved", Some("a"))] {
            take(&cache, Event::Apply(pod));
        }
        let before = ["same", "moved"].map(|uid| cache.rows.read().row(uid).unwrap());
        for event in [
            Event::Init,
            Event::InitApply(Pod("same", Some("a"))),
            Event::InitApply(Pod("moved", Some("b"))),
            Event::InitDone,
        ] {
            take(&cache, event);
        }
        let after = ["same", "moved"].map(|uid| cache.rows.read().row(uid).unwrap());
        assert!(Arc::ptr_eq(&before[0], &after[0]));
        assert_eq!((after[1].index_key(), uids(&cache, "a").len()), (Some("b"), 1));
    }

    #[tokio::test]
    async fn an_index_key_does_not_reach_into_another_namespace() {
        let cache = cache();
        for pod in [Pod("shop/a", Some("set")), Pod("lab/b", Some("set"))] {
            take(&cache, Event::Apply(pod));
        }
        let in_shop: Vec<_> = cache.by_index("shop", "set").iter().map(|pod| pod.0).collect();
        assert_eq!(in_shop, ["shop/a"]);
        assert_eq!(cache.rows.read().index.len(), 2, "those of other namespaces are not looked at");
    }

    #[tokio::test]
    async fn a_row_without_a_uid_takes_the_place_of_no_row_of_another_namespace() {
        struct Unnumbered(&'static str);

        impl Row for Unnumbered {
            fn id(&self) -> ObjectId<'_> {
                ObjectId { namespace: self.0, name: "web", uid: "" }
            }
            fn index_key(&self) -> Option<&str> {
                Some("web")
            }
        }

        let mut rows = Rows::default();
        for namespace in ["a", "b"] {
            rows.take(Event::Apply(object(&Pod("", None))), |_| Arc::new(Unnumbered(namespace)));
        }
        assert_eq!([rows.by_index("a", "web").len(), rows.by_index("b", "web").len()], [0, 1]);
    }

    #[tokio::test]
    async fn the_deletion_of_an_older_object_leaves_its_successor() {
        let cache = cache();
        take(&cache, Event::Apply(Pod("uid-2", Some("a"))));
        assert!(take(&cache, Event::Delete(Pod("uid-1", Some("a")))).is_empty());
        assert_eq!(uids(&cache, "a"), ["uid-2"]);
    }
}

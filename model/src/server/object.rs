//! Objects as plain data.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    ops::Deref,
    sync::Arc,
};

/// A text that is cheap to copy.
pub type Text = Arc<str>;

/// The finalizer of an object that waits for its dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents are released before it goes.
pub const ORPHAN: &str = "orphan";

/// The modelled kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `BasicDeployment`.
    Deployment,
    /// `BasicReplicaSet`.
    ReplicaSet,
    /// Another kind of children that keeps the replica contract.
    Workload,
    /// `Pod`.
    Pod,
    /// `ControllerRevision`.
    Revision,
    /// `BasicDeploymentRestart`.
    Restart,
    /// `BasicDeploymentRollback`.
    Rollback,
    /// `Job`, as a backup.
    Backup,
}

impl Kind {
    /// Whether a deletion only marks an object until it has ended (reported by the kubelet, for a pod).
    #[must_use]
    pub fn is_graceful(self) -> bool {
        self == Self::Pod
    }
}

/// A resourceVersion.
///
/// The number by itself does not matter, and states that differ only in it are equal: whatever depends on it
/// (whether a cache has reached it) has to hash it there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub u64);

impl Hash for Version {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// The place of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Text,
}

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The owner's kind and name.
    pub key: Key,
    /// The owner's uid.
    pub uid: Text,
    /// Whether it is the controller.
    pub is_controller: bool,
    /// Whether its foreground deletion waits for this object.
    pub blocks_deletion: bool,
}

impl Owner {
    /// A reference to a controller that waits for this object when it is deleted in the foreground.
    #[must_use]
    pub fn controller(owner: &Meta) -> Self {
        let (key, uid) = (owner.key.clone(), owner.uid.clone());
        Self { key, uid, is_controller: true, blocks_deletion: true }
    }
}

/// The metadata of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Meta {
    /// `kind` and `metadata.name`.
    pub key: Key,
    /// `metadata.uid`. It names the incarnation, and is equal in all orders of events, so that they lead to the same state.
    pub uid: Text,
    /// `metadata.resourceVersion`.
    pub version: Version,
    /// `metadata.generation`.
    pub generation: i64,
    /// `metadata.creationTimestamp`, in ticks of the server's clock.
    pub created: u8,
    /// Whether there is a `metadata.deletionTimestamp`.
    pub is_deleting: bool,
    /// The `metadata.deletionTimestamp`, in ticks of the server's clock; 0 before.
    pub deleted: u8,
    /// Whether its grace period (`metadata.deletionGracePeriodSeconds`) is running.
    pub has_grace: bool,
    /// `metadata.labels`.
    pub labels: BTreeMap<Text, Text>,
    /// `metadata.annotations`.
    pub annotations: BTreeMap<Text, Text>,
    /// `metadata.ownerReferences`.
    pub owners: Vec<Owner>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Text>,
}

impl Meta {
    /// An object to be created, with a kind and a name only.
    #[must_use]
    pub fn new(kind: Kind, name: impl Into<Text>) -> Self {
        Self {
            key: Key { kind, name: name.into() },
            uid: "".into(),
            version: Version::default(),
            generation: 0,
            created: 0,
            is_deleting: false,
            deleted: 0,
            has_grace: false,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            owners: Vec::new(),
            finalizers: Vec::new(),
        }
    }

    /// Whether it has a finalizer.
    #[must_use]
    pub fn is_held_by(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|held| &**held == finalizer)
    }

    /// The uid of its controller.
    #[must_use]
    pub fn controller(&self) -> Option<&Text> {
        self.owners.iter().find(|owner| owner.is_controller).map(|owner| &owner.uid)
    }
}

/// An object with a spec `S` and a status `T`, which the server compares and never reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Object<S, T> {
    /// `metadata`.
    pub meta: Meta,
    /// `spec`.
    pub spec: S,
    /// `status`.
    pub status: T,
}

/// An object as the server stores it: cheap to copy and to hash.
#[derive(Clone, Debug)]
pub struct Stored<S, T>(Arc<(u64, Object<S, T>)>);

impl<S: Hash, T: Hash> From<Object<S, T>> for Stored<S, T> {
    fn from(object: Object<S, T>) -> Self {
        let mut hasher = DefaultHasher::new();
        object.hash(&mut hasher);
        Self(Arc::new((hasher.finish(), object)))
    }
}

impl<S, T> Deref for Stored<S, T> {
    type Target = Object<S, T>;

    fn deref(&self) -> &Object<S, T> {
        &self.0.1
    }
}

impl<S: PartialEq, T: PartialEq> PartialEq for Stored<S, T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<S: Eq, T: Eq> Eq for Stored<S, T> {}

impl<S, T> Hash for Stored<S, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.0.hash(state);
    }
}

//! What can be asked of the server, and what it answers.

use super::object::{Key, Object, Owner, Stored, Text, Version};

/// What dependents meet when an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// They follow when it is gone.
    Background,
    /// It waits for those that block it.
    Foreground,
    /// They stay, without their reference to it.
    Orphan,
}

/// What a write relies on: anything else is a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Preconditions {
    /// The object has this uid.
    pub uid: Option<Text>,
    /// It has this resourceVersion.
    pub version: Option<Version>,
}

impl Preconditions {
    /// It is this very object, in whatever version.
    #[must_use]
    pub fn uid(uid: &Text) -> Self {
        Self { uid: Some(uid.clone()), version: None }
    }
}

/// How a patch treats a name that is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    /// A merge patch finds nothing.
    Merge,
    /// A server-side apply that names a uid conflicts.
    Apply,
}

/// One change of a patch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change<S> {
    /// Sets a label, or removes it.
    Label(Text, Option<Text>),
    /// Sets an annotation, or removes it.
    Annotation(Text, Option<Text>),
    /// Adds an owner, or replaces the entry of the same uid.
    AddOwner(Owner),
    /// Removes the owner of this uid.
    RemoveOwner(Text),
    /// Adds a finalizer.
    AddFinalizer(Text),
    /// Removes a finalizer.
    RemoveFinalizer(Text),
    /// Sets the spec.
    Spec(S),
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operation<S, T> {
    /// POST. What only the server sets is ignored.
    Create(Object<S, T>),
    /// GET.
    Get(Key),
    /// PATCH, all changes or none.
    Patch {
        /// Of what.
        key: Key,
        /// Merge or apply.
        verb: Verb,
        /// What it relies on.
        preconditions: Preconditions,
        /// What it changes.
        changes: Vec<Change<S>>,
    },
    /// PATCH of the status subresource.
    PatchStatus {
        /// Of what.
        key: Key,
        /// What it relies on.
        preconditions: Preconditions,
        /// The new status.
        status: T,
    },
    /// DELETE.
    Delete {
        /// Of what.
        key: Key,
        /// What it relies on.
        preconditions: Preconditions,
        /// What dependents meet; `None` leaves it as it is, which is in the background at first.
        propagation: Option<Propagation>,
        /// Whether there is no grace period, as when a kubelet says that a pod has ended.
        is_immediate: bool,
    },
}

impl<S, T> Operation<S, T> {
    /// What it is about.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::Create(object) => &object.meta.key,
            Self::Get(key)
            | Self::Patch { key, .. }
            | Self::PatchStatus { key, .. }
            | Self::Delete { key, .. } => key,
        }
    }
}

/// What the server answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<S, T> {
    /// The object as it is now; of a delete, as it was last or is while it waits for its finalizers.
    Done(Stored<S, T>),
    /// 404.
    NotFound,
    /// 409 of a create.
    AlreadyExists,
    /// 409 of a precondition.
    Conflict,
    /// 422.
    Invalid,
}

impl<S, T> Answer<S, T> {
    /// The object that the answer shows.
    #[must_use]
    pub fn object(&self) -> Option<&Stored<S, T>> {
        match self {
            Self::Done(object) => Some(object),
            _ => None,
        }
    }
}

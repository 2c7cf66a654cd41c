//! Requests and answers of the server.

use super::object::{Key, Object, Owner, Stored, Text, Version};

/// The fate of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// They follow when it is gone.
    Background,
    /// It waits for those that block it.
    Foreground,
    /// They stay, without their reference to it.
    Orphan,
}

/// The preconditions of a write: any other state is a conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Preconditions {
    /// The object has this uid.
    pub uid: Option<Text>,
    /// It has this resourceVersion.
    pub version: Option<Version>,
}

impl Preconditions {
    /// This very object, in any version.
    #[must_use]
    pub fn uid(uid: &Text) -> Self {
        Self { uid: Some(uid.clone()), version: None }
    }
}

/// The reaction of a patch to a free name.
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
    /// POST. Fields that only the server sets are ignored.
    Create(Object<S, T>),
    /// GET.
    Get(Key),
    /// PATCH, all changes or none.
    Patch {
        /// The object.
        key: Key,
        /// Merge or apply.
        verb: Verb,
        /// The preconditions.
        preconditions: Preconditions,
        /// The changes.
        changes: Vec<Change<S>>,
    },
    /// PATCH of the status subresource.
    PatchStatus {
        /// The object.
        key: Key,
        /// The preconditions.
        preconditions: Preconditions,
        /// The new status.
        status: T,
    },
    /// DELETE.
    Delete {
        /// The object.
        key: Key,
        /// The preconditions.
        preconditions: Preconditions,
        /// The fate of its dependents; `None` leaves it unchanged, which at first is background deletion.
        propagation: Option<Propagation>,
        /// Whether there is no grace period, as when a kubelet reports the end of a pod.
        is_immediate: bool,
    },
}

impl<S, T> Operation<S, T> {
    /// A merge patch.
    #[must_use]
    pub fn merge(key: Key, preconditions: Preconditions, changes: Vec<Change<S>>) -> Self {
        Self::Patch { key, verb: Verb::Merge, preconditions, changes }
    }

    /// A delete with the grace period of the object.
    #[must_use]
    pub fn delete(key: Key, preconditions: Preconditions, propagation: Option<Propagation>) -> Self {
        Self::Delete { key, preconditions, propagation, is_immediate: false }
    }

    /// A kubelet's report that a pod has ended.
    #[must_use]
    pub fn end(key: Key) -> Self {
        Self::Delete { key, preconditions: Preconditions::default(), propagation: None, is_immediate: true }
    }

    /// The report of an object's own controller.
    #[must_use]
    pub fn report(key: Key, status: T) -> Self {
        Self::PatchStatus { key, preconditions: Preconditions::default(), status }
    }

    /// The object of the request.
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

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer<S, T> {
    /// The present object; after a delete, its last state or the one in which it waits for its finalizers.
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
    /// The object in the answer.
    #[must_use]
    pub fn object(&self) -> Option<&Stored<S, T>> {
        match self {
            Self::Done(object) => Some(object),
            _ => None,
        }
    }
}

//! The garbage collector as a client of the server: the requests that it would send now.
//!
//! The rules are those of kube-controller-manager (`pkg/controller/garbagecollector/garbagecollector.go`,
//! `attemptToDeleteItem`); it looks owners up live before it deletes, and names the uid of what it deletes.

use super::{
    Server,
    object::{FOREGROUND, Meta, ORPHAN, Object, Owner},
    operation::{Change, Operation, Preconditions, Propagation},
};

/// The requests that the garbage collector would send, each by itself.
#[must_use]
pub fn work<S, T>(server: &Server<S, T>) -> Vec<Operation<S, T>> {
    server
        .objects()
        .filter_map(|object| of_owner(server, object).or_else(|| of_dependent(server, object)))
        .collect()
}

/// The request for a deletion under way.
fn of_owner<S, T>(server: &Server<S, T>, owner: &Object<S, T>) -> Option<Operation<S, T>> {
    if !owner.meta.is_deleting {
        return None;
    }
    let uid = &owner.meta.uid;
    let is_dependent = |object: &Object<S, T>| object.meta.owners.iter().any(|other| other.uid == *uid);
    if owner.meta.is_held_by(ORPHAN) {
        let dependent = server.objects().find(|object| is_dependent(object));
        return Some(match dependent {
            Some(dependent) => patch(dependent, Change::RemoveOwner(uid.clone())),
            None => patch(owner, Change::RemoveFinalizer(ORPHAN.into())),
        });
    }
    let blocks = |object: &Object<S, T>| {
        object.meta.owners.iter().any(|other| other.uid == *uid && other.blocks_deletion)
    };
    let is_done = owner.meta.is_held_by(FOREGROUND) && !server.objects().any(|object| blocks(object));
    is_done.then(|| patch(owner, Change::RemoveFinalizer(FOREGROUND.into())))
}

/// The request for a dependent, by the fate of its owners.
fn of_dependent<S, T>(server: &Server<S, T>, object: &Object<S, T>) -> Option<Operation<S, T>> {
    if object.meta.is_deleting {
        return None;
    }
    let owner_of = |owner: &Owner| server.get(&owner.key).filter(|found| found.meta.uid == owner.uid);
    let waits = |owner: &Owner| {
        owner_of(owner).is_some_and(|owner| owner.meta.is_deleting && owner.meta.is_held_by(FOREGROUND))
    };
    let is_useless = |owner: &&Owner| owner_of(owner).is_none() || waits(owner);
    let (useless, solid): (Vec<_>, Vec<_>) = object.meta.owners.iter().partition(is_useless);
    let first = useless.first()?;
    if !solid.is_empty() {
        return Some(patch(object, Change::RemoveOwner(first.uid.clone())));
    }
    let has_dependents =
        || server.objects().any(|other| other.meta.owners.iter().any(|owner| owner.uid == object.meta.uid));
    let propagation = if useless.iter().any(|owner| waits(owner)) && has_dependents() {
        Propagation::Foreground
    } else if object.meta.is_held_by(ORPHAN) {
        Propagation::Orphan
    } else if object.meta.is_held_by(FOREGROUND) {
        Propagation::Foreground
    } else {
        Propagation::Background
    };
    let Meta { key, uid, .. } = &object.meta;
    Some(Operation::delete(key.clone(), Preconditions::uid(uid), Some(propagation)))
}

fn patch<S, T>(object: &Object<S, T>, change: Change<S>) -> Operation<S, T> {
    Operation::merge(object.meta.key.clone(), Preconditions::uid(&object.meta.uid), vec![change])
}

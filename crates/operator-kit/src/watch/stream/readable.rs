use kube::runtime::watcher::Event;

use crate::watch::lenient::{Lenient, Place, Unreadable};

/// The readable part of an event. An unreadable object keeps its last `known` state, because it must not look deleted.
pub(crate) fn readable<K, R>(
    event: Event<Lenient<K>>,
    trim: impl FnOnce(K) -> R,
    known: impl FnOnce(&Place) -> Option<R>,
) -> Option<Event<R>> {
    let known = |unreadable: Unreadable| known(&unreadable.identity.metadata);
    Some(match event {
        Event::Apply(Lenient(object)) => Event::Apply(trim(object.ok()?)),
        Event::InitApply(Lenient(Ok(object))) => Event::InitApply(trim(object)),
        Event::InitApply(Lenient(Err(unreadable))) => Event::InitApply(known(unreadable)?),
        Event::Delete(Lenient(Ok(object))) => Event::Delete(trim(object)),
        Event::Delete(Lenient(Err(unreadable))) => Event::Delete(known(unreadable)?),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    })
}

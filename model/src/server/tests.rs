use super::{
    object::{Kind, Owner},
    *,
};

type World = Server<u8, u8>;

fn key(kind: Kind, name: &str) -> Key {
    Key { kind, name: name.into() }
}

fn object(kind: Kind, name: &str) -> Object<u8, u8> {
    Object { meta: Meta::new(kind, name), spec: 0, status: 0 }
}

fn created(server: &mut World, object: Object<u8, u8>) -> Stored<u8, u8> {
    match server.apply(Operation::Create(object)) {
        Answer::Done(object) => object,
        answer => panic!("{answer:?}"),
    }
}

fn owned(server: &mut World, name: &str, owner: &Meta) -> Stored<u8, u8> {
    let mut pod = object(Kind::Pod, name);
    pod.meta.owners = vec![Owner::controller(owner)];
    created(server, pod)
}

fn patch(of: &Meta, preconditions: Preconditions, change: Change<u8>) -> Operation<u8, u8> {
    Operation::merge(of.key.clone(), preconditions, vec![change])
}

fn delete(of: &Meta, propagation: Propagation) -> Operation<u8, u8> {
    Operation::delete(of.key.clone(), Preconditions::uid(&of.uid), Some(propagation))
}

fn collect(server: &mut World) {
    while let Some(operation) = garbage::work(server).into_iter().next() {
        server.apply(operation);
    }
}

#[test]
fn a_name_is_taken_until_its_object_is_gone_and_then_it_is_another_one() {
    let mut server = World::default();
    let first = created(&mut server, object(Kind::ReplicaSet, "web"));
    assert_eq!(server.apply(Operation::Create(object(Kind::ReplicaSet, "web"))), Answer::AlreadyExists);
    server.apply(delete(&first.meta, Propagation::Background));
    let second = created(&mut server, object(Kind::ReplicaSet, "web"));
    assert_ne!(first.meta.uid, second.meta.uid);
    assert_eq!(server.apply(delete(&first.meta, Propagation::Background)), Answer::Conflict);
}

#[test]
fn only_the_spec_counts_for_the_generation_and_what_changes_nothing_is_no_write() {
    let mut server = World::default();
    let set = created(&mut server, object(Kind::ReplicaSet, "web"));
    let any = Preconditions::default;
    let generation = |answer: Answer<u8, u8>| answer.object().map(|object| object.meta.generation);
    assert_eq!(generation(server.apply(patch(&set.meta, any(), Change::Spec(1)))), Some(2));
    let before = server.version();
    assert_eq!(generation(server.apply(patch(&set.meta, any(), Change::Spec(1)))), Some(2));
    assert_eq!(server.version(), before);
    assert_eq!(generation(server.apply(Operation::report(set.meta.key.clone(), 1))), Some(2));
    assert!(server.version() > before);
}

#[test]
fn a_precondition_that_does_not_hold_is_a_conflict() {
    let mut server = World::default();
    let set = created(&mut server, object(Kind::ReplicaSet, "web"));
    let uid = Preconditions::uid(&"another".into());
    assert_eq!(server.apply(patch(&set.meta, uid, Change::Spec(1))), Answer::Conflict);
    let version = Preconditions { uid: None, version: Some(set.meta.version) };
    assert!(server.apply(patch(&set.meta, version.clone(), Change::Spec(1))).object().is_some());
    assert_eq!(server.apply(patch(&set.meta, version, Change::Spec(2))), Answer::Conflict);
    let gone = key(Kind::ReplicaSet, "gone");
    let apply = |verb| Operation::Patch {
        key: gone.clone(),
        verb,
        preconditions: Preconditions::uid(&set.meta.uid),
        changes: vec![Change::Spec(1)],
    };
    assert_eq!(server.apply(apply(Verb::Merge)), Answer::NotFound);
    assert_eq!(server.apply(apply(Verb::Apply)), Answer::Conflict);
}

#[test]
fn an_object_with_a_finalizer_waits_for_it_and_takes_no_other() {
    let mut server = World::default();
    let mut set = object(Kind::ReplicaSet, "web");
    set.meta.finalizers = vec!["hold".into()];
    let set = created(&mut server, set);
    let deleted = server.apply(delete(&set.meta, Propagation::Background));
    let deleted = deleted.object().cloned().unwrap();
    assert!(deleted.meta.is_deleting);
    assert_eq!(deleted.meta.generation, 2);
    let any = Preconditions::default;
    let add = patch(&set.meta, any(), Change::AddFinalizer("other".into()));
    assert_eq!(server.apply(add), Answer::Invalid);
    server.apply(patch(&set.meta, any(), Change::RemoveFinalizer("hold".into())));
    assert_eq!(server.get(&set.meta.key), None);
}

#[test]
fn a_pod_is_going_until_its_kubelet_says_that_it_is_gone() {
    let mut server = World::default();
    let pod = created(&mut server, object(Kind::Pod, "a"));
    for _ in 0..2 {
        server.apply(delete(&pod.meta, Propagation::Background));
        assert!(server.get(&pod.meta.key).is_some_and(|pod| pod.meta.is_deleting));
    }
    server.apply(Operation::end(pod.meta.key.clone()));
    assert_eq!(server.get(&pod.meta.key), None);
}

#[test]
fn dependents_follow_their_owner_in_the_background() {
    let mut server = World::default();
    let set = created(&mut server, object(Kind::ReplicaSet, "web"));
    let pod = owned(&mut server, "a", &set.meta);
    collect(&mut server);
    assert!(server.get(&pod.meta.key).is_some_and(|pod| !pod.meta.is_deleting));
    server.apply(delete(&set.meta, Propagation::Background));
    // A new object with the owner's name is not the owner.
    created(&mut server, object(Kind::ReplicaSet, "web"));
    collect(&mut server);
    assert!(server.get(&pod.meta.key).is_some_and(|pod| pod.meta.is_deleting));
}

#[test]
fn a_foreground_deletion_waits_for_dependents_and_an_orphaning_one_lets_them_be() {
    let mut server = World::default();
    let set = created(&mut server, object(Kind::ReplicaSet, "web"));
    let pod = owned(&mut server, "a", &set.meta);
    server.apply(delete(&set.meta, Propagation::Foreground));
    collect(&mut server);
    assert!(server.get(&set.meta.key).is_some(), "its pod is still going");
    server.apply(Operation::end(pod.meta.key.clone()));
    collect(&mut server);
    assert_eq!(server.get(&set.meta.key), None);

    let set = created(&mut server, object(Kind::ReplicaSet, "web"));
    let pod = owned(&mut server, "b", &set.meta);
    server.apply(delete(&set.meta, Propagation::Orphan));
    collect(&mut server);
    assert_eq!(server.get(&set.meta.key), None);
    let left = server.get(&pod.meta.key).unwrap();
    assert!(left.meta.owners.is_empty() && !left.meta.is_deleting);
}

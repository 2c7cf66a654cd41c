//! The controller's own `Action` → requests.

use std::{collections::VecDeque, sync::Arc};

use basic_replicaset_controller::{adoption::Origin, decide::Action, observed::Observed, pod::PodRow, step};
use catena_api::{BasicReplicaSetStatus, keys};
use operator_kit::report::Conditions;

use super::{
    content::{Object, Server, Spec, Status, Stored, Told, set_spec},
    observe::pod_name,
    process::{Process, Write},
    sabotage::Sabotage,
    scope::Scope,
};
use crate::{
    metadata::real_meta,
    server::{
        object::{Key, Kind, Meta, Owner, Text},
        operation::{Change, Operation, Preconditions, Verb},
    },
};

/// The immediate effects of an action, and its planned writes.
pub fn plan(
    process: &mut Process,
    server: &Server,
    scope: &Scope,
    set: &Stored,
    observed: &Observed,
    action: Action,
) {
    let step = action.step();
    let write = |item: Option<Text>, meant: Option<Text>, operation| Write {
        set: set.clone(),
        step,
        item,
        meant,
        has_served: false,
        operation,
    };
    let patch = |verb, uid: &Text, name: Text, changes| Operation::Patch {
        key: Key { kind: Kind::Pod, name },
        verb,
        preconditions: Preconditions::uid(uid),
        changes,
    };
    let label = || Change::Label(keys::REPLICA_SET_UID.into(), Some(set.meta.uid.clone()));
    process.plan = match action {
        Action::Create { revision, slots } | Action::Recreate { revision, slots } => {
            let create = |(number, slot)| {
                let suffix = scope.has(Sabotage::NamesAtRandom).then(|| server.version().0 + number);
                write(Some(Process::place(slot)), None, Operation::Create(pod(set, &revision, slot, suffix)))
            };
            (0..).zip(slots).map(create).collect()
        }
        Action::Delete(pods) => {
            let delete = |pod: Arc<PodRow>| {
                let uid: Text = (&*pod.uid).into();
                let preconditions = if scope.has(Sabotage::DeletesByName) {
                    Preconditions::default()
                } else {
                    Preconditions::uid(&uid)
                };
                let key = Key { kind: Kind::Pod, name: (&*pod.name).into() };
                let operation = Operation::delete(key, preconditions, None);
                let has_served = pod.is_ready();
                Write { has_served, ..write(Some(uid.clone()), Some(uid), operation) }
            };
            doomed(scope, observed, pods).into_iter().map(delete).collect()
        }
        Action::Adopt(pods) => {
            let adopt = |pod: Arc<PodRow>| {
                let uid: Text = (&*pod.uid).into();
                let changes = vec![label(), Change::AddOwner(Owner::controller(&set.meta))];
                let operation = patch(Verb::Apply, &uid, (&*pod.name).into(), changes);
                write(Some(uid.clone()), Some(uid), operation)
            };
            pods.into_iter().map(adopt).collect()
        }
        Action::Mark { name, uid, slot } => {
            let uid: Text = uid.into();
            let place = Change::Annotation(keys::SLOT.into(), Some(Process::place(slot)));
            let operation = patch(Verb::Merge, &uid, name.into(), vec![label(), place]);
            VecDeque::from([write(Some(Process::place(slot)), Some(uid), operation)])
        }
        Action::PassOver(names) => {
            for taken in &names {
                process.passes_over(set, taken.slot);
            }
            VecDeque::new()
        }
        Action::WriteStatus(status) => {
            VecDeque::from([write(None, Some(set.meta.uid.clone()), report(scope, set, *status))])
        }
        Action::Settle | Action::Wait(_) if scope.has(Sabotage::WritesStatusAlways) => {
            let mut status = basic_replicaset_controller::status::status(observed);
            status.replicas += i32::try_from(server.version().0 % 2).unwrap_or_default();
            let write = write(None, Some(set.meta.uid.clone()), report(scope, set, status));
            VecDeque::from([Write { step: step::STATUS, ..write }])
        }
        // The model renders without errors, every look-up is answered, and each kind has one version.
        Action::RefreshOwner(_)
        | Action::GiveUp(_)
        | Action::Refuse(_)
        | Action::Wait(_)
        | Action::Settle => VecDeque::new(),
    };
}

fn doomed(scope: &Scope, observed: &Observed, pods: Vec<Arc<PodRow>>) -> Vec<Arc<PodRow>> {
    if !scope.has(Sabotage::ReplacesAllAtOnce) {
        return pods;
    }
    let is_old = |pod: &&Arc<PodRow>| observed.revision.as_ref().is_ok_and(|new| **new != *pod.revision);
    observed.pods.iter().filter(|pod| pod.counts()).filter(is_old).cloned().collect()
}

fn pod(set: &Object, revision: &str, slot: u32, random: Option<u64>) -> Object {
    let uid = &set.meta.uid;
    let name = match random {
        Some(random) => format!("web-{random}"),
        None => pod_name(uid, revision, slot),
    };
    let mut meta = Meta::new(Kind::Pod, name);
    meta.labels = [(keys::REPLICA_SET_UID.into(), uid.clone())].into();
    meta.annotations =
        [(keys::HASH.into(), revision.into()), (keys::SLOT.into(), slot.to_string().into())].into();
    meta.owners = vec![Owner::controller(&set.meta)];
    Object { meta, spec: Spec::Pod, status: Status::None }
}

fn report(scope: &Scope, set: &Object, mut status: BasicReplicaSetStatus) -> Operation<Spec, Status> {
    let wanted = set_spec(set).map_or(0, |spec| i32::from(spec.replicas));
    if scope.has(Sabotage::ReadyByNumber) && status.active >= wanted {
        status.conditions.retain(|condition| condition.type_ == Conditions::READY);
        status.conditions.iter_mut().for_each(|condition| condition.status = "True".into());
    }
    if let Some(served) = &mut status.last_served {
        // What a pod runs makes no difference here.
        served.pod = "{}".into();
    }
    Operation::PatchStatus {
        key: set.meta.key.clone(),
        preconditions: Preconditions { uid: Some(set.meta.uid.clone()), version: Some(set.meta.version) },
        status: Status::Set(Told(Arc::new(status))),
    }
}

/// Whether a write reports that the set is ready.
pub fn says_ready(write: &Write) -> bool {
    match &write.operation {
        Operation::PatchStatus { status, .. } => is_ready(status),
        _ => false,
    }
}

/// Whether a status reports that the set is ready.
pub fn is_ready(status: &Status) -> bool {
    matches!(status, Status::Set(Told(told)) if Conditions::is_true(&told.conditions, Conditions::READY))
}

/// Whether a pod may be written for a set: it belongs to the set, or it has no owner and was created for one. A delete
/// under way may also meet a pod whose owner a user removes at this moment.
pub fn may_write(pod: &Object, write: &Write) -> bool {
    if let Some(controller) = pod.meta.controller() {
        return *controller == write.set.meta.uid;
    }
    let meta = real_meta(&pod.meta);
    let is_as_named = |origin: Origin| format!("web-{}", origin.suffix()) == *pod.meta.key.name;
    [step::ADOPT, step::DELETE].contains(&write.step) && Origin::of(&meta).is_some_and(is_as_named)
}

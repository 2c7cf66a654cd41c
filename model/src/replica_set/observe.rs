//! Caches and live reads → the controller's own `Observed`.

use std::sync::Arc;

use basic_replicaset_controller::{
    adoption::Origin,
    observed::{Holder, Observed, TakenName, succession_ends_in, wanted},
    pod::{Owner, PodRow},
    revision,
};
use catena_api::{BasicReplicaSet, PodReplacementPolicy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use operator_templates::Rendered;
use pod_state::PodState;
use serde_json::Value;

use super::{
    content::{Object, Server, Stored, pod_row, real_set, set_spec},
    process::Process,
    sabotage::Sabotage,
    scope::Scope,
};
use crate::{
    clock::time,
    metadata::real_meta,
    server::object::{Key, Kind, Text},
};

/// The name of a pod by the template.
pub fn pod_name(set: &str, revision: &str, slot: u32) -> String {
    format!("web-{}", Origin { set, revision, slot: &slot.to_string() }.suffix())
}

/// The revision of a set.
pub fn revision_of(set: &Object, real: &BasicReplicaSet) -> String {
    let text = set_spec(set).map_or("", |spec| &spec.text);
    revision::of(&Rendered { object: Value::Null, hash: text.into() }, real)
}

/// The observation of a set in the cache of a process.
pub fn observe(process: &mut Process, server: &Server, scope: &Scope, set: &Object) -> Observed {
    let mut real = real_set(set);
    if scope.has(Sabotage::OverlooksDeletion) {
        real.metadata.deletion_timestamp = None;
    }
    let backoffs = process.backoffs(set);
    let mut revision = revision_of(set, &real);
    if scope.has(Sabotage::RendersOnce) {
        revision = process.rendered.get_or_insert_with(|| revision.into()).to_string();
    }
    if scope.has(Sabotage::IgnoresMinReadySeconds) {
        real.spec.min_ready_seconds = 0;
    }
    if scope.has(Sabotage::AwaitsNoEnd) {
        real.spec.pod_replacement_policy = PodReplacementPolicy::TerminationStarted;
    }
    let former = revision::former(&real, Some(&revision)).filter(|_| !scope.has(Sabotage::ForgetsWhatServed));
    let pods = own_pods(process, scope, set);
    let made: Vec<_> = [&revision].into_iter().chain(&former).collect();
    let taken = look_up_names(process, server, scope, set, &made, &pods);
    let is_short = pods.iter().filter(|pod| pod.counts()).count() < wanted(&real);
    let orphans = if is_short { look_up_orphans(process, server, scope, set, &revision) } else { Vec::new() };
    let now = time(server.clock);
    let is_former =
        |pod: &PodRow| pod.owner.as_ref().is_some_and(|owner| owner.is_former(&real)) && pod.counts();
    let succession =
        succession_ends_in(&real, now).filter(|_| process.pods.rows().any(|pod| is_former(&pod_row(pod))));
    let unclear = taken.iter().filter(|taken| taken.holder == Holder::Unclear).count();
    Observed {
        set: Arc::new(real),
        backoffs,
        is_blind: false,
        now,
        revision: Ok(revision),
        former,
        unread: Vec::new(),
        pods,
        ended: None,
        orphans,
        taken,
        unclear,
        unanswered: None,
        succession,
        status_age: process.status_age(server.clock),
    }
}

fn own_pods(process: &Process, scope: &Scope, set: &Object) -> Vec<Arc<PodRow>> {
    let is_own = |owner: &Owner| {
        if scope.has(Sabotage::KnowsOwnersByName) {
            *owner.name == *set.meta.key.name
        } else {
            *owner.uid == *set.meta.uid
        }
    };
    let rows = process.pods.rows().map(|pod| pod_row(pod));
    let mut own: Vec<_> = rows.filter(|row| row.owner.as_ref().is_some_and(is_own)).collect();
    if scope.has(Sabotage::CountsTerminatingPods) {
        own.iter_mut()
            .filter(|row| matches!(row.state, PodState::Terminating(_)))
            .for_each(|row| row.state = PodState::Ready);
    }
    own.into_iter().map(Arc::new).collect()
}

/// The holders of the names that were taken when pods were to be created.
fn look_up_names(
    process: &mut Process,
    server: &Server,
    scope: &Scope,
    set: &Object,
    made: &[&String],
    pods: &[Arc<PodRow>],
) -> Vec<TakenName> {
    let is_shown = |slot| pods.iter().any(|pod| pod.slot == Some(slot));
    let is_made = |of: &str| made.iter().any(|revision| **revision == *of);
    process.taken.retain(|slot, (_, of)| is_made(of) && !is_shown(*slot));
    let mut found = Vec::new();
    process.taken.retain(|slot, (name, revision)| {
        let Some(holder) = live(server, name) else { return false };
        let holder = if scope.has(Sabotage::TakesNamesForPods) {
            Holder::Own
        } else {
            Holder::of(real_meta(&holder.meta), &set.meta.uid, revision, *slot)
        };
        found.push(TakenName { slot: *slot, name: name.to_string(), holder });
        true
    });
    found
}

/// The pods without a controller that may belong to the set.
fn look_up_orphans(
    process: &mut Process,
    server: &Server,
    scope: &Scope,
    set: &Object,
    revision: &str,
) -> Vec<Arc<PodRow>> {
    let is_there = server
        .get(&set.meta.key)
        .is_some_and(|found| found.meta.uid == set.meta.uid && !found.meta.is_deleting);
    let is_blind = scope.has(Sabotage::AdoptsWithoutLook);
    let mut orphans = Vec::new();
    for pod in process.pods.rows() {
        let row = pod_row(pod);
        let known: (Text, Text) = (pod.meta.uid.clone(), (&*row.revision).into());
        let is_candidate = row.owner.is_none() && row.counts() && *row.revision == *revision;
        if !is_candidate || process.others.contains(&known) {
            continue;
        }
        let live = live(server, &pod.meta.key.name).filter(|live| live.meta.uid == pod.meta.uid);
        if is_blind || live.is_some_and(|live| is_own(live, revision)) {
            orphans.push(Arc::new(row));
        } else {
            process.others.insert(known);
        }
    }
    // The pass ends with an error if the set is gone.
    if is_there || is_blind { orphans } else { Vec::new() }
}

/// Whether a live pod was created for this set or a former one.
fn is_own(live: &Object, revision: &str) -> bool {
    let meta: ObjectMeta = real_meta(&live.meta);
    let Some(origin) = Origin::of(&meta) else { return false };
    origin.revision == revision && format!("web-{}", origin.suffix()) == *live.meta.key.name
}

fn live<'s>(server: &'s Server, name: &Text) -> Option<&'s Stored> {
    server.get(&Key { kind: Kind::Pod, name: name.clone() })
}

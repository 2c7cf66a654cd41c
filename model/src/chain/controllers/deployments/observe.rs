//! Caches and live reads → Observed.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

use basic_deployment_controller::{
    child::Child,
    child_kind::ChildKind,
    desired::{Desired, render},
    observed::{Found, ListedKind, Observed},
    revision::{self, Revision},
};
use catena_api::{BasicDeployment, Pin};
use operator_kit::{report::StatusAge, write::Ownership};
use operator_templates::Rendered;
use operator_watch::{Failure, SeenVersion, WriteTarget};
use parking_lot::Mutex;

use super::super::super::{
    content::{CHILDREN, Object, Server, Stored, kind_of, pruned, real_deployment, settings_of},
    process::Process,
    sabotage::Sabotage,
    scope::Scope,
    settings::DEPLOYMENTS,
};
use crate::{
    clock,
    harness::digest,
    server::object::{Key, Kind},
};

/// The observation; `None` if a read shows that the `BasicDeployment` is gone.
pub fn observe(process: &Process, server: &Server, scope: &Scope, deployment: &Stored) -> Option<Observed> {
    let (settings, uid) = (&*DEPLOYMENTS, &deployment.meta.uid);
    let backoffs = process.backoffs(deployment);
    let is_allowed = backoffs.everything().is_none();
    let rendered = rendered(deployment);
    let mut real = real_deployment(deployment);
    if scope.has(Sabotage::HandsNoToken) {
        real.spec.restarted_at = None;
    }
    let own = |kind| {
        let rows = process.cache(kind).rows();
        rows.filter(|row| row.meta.controller() == Some(uid))
    };
    let mut revisions: Vec<_> = own(Kind::Revision).map(|row| Arc::new(Revision::of(pruned(row)))).collect();
    revisions.retain(|revision| revision.is_genuine(&deployment.meta.key.name, uid));
    revisions.sort_by(|a, b| (a.number, &a.uid).cmp(&(b.number, &b.uid)));
    let mut others: Vec<_> =
        CHILDREN.into_iter().flat_map(own).map(|row| Arc::new(child_of(row, scope))).collect();
    let holds = |pin: &Pin| rendered.as_ref().map_or(true, |rendered| rendered.hash == pin.rejects);
    let pin = Pin::on(&real).filter(holds);
    let is_other = |pin: &&Pin| rendered.as_ref().map_or(true, |rendered| rendered.hash != pin.hash);
    let wanted = match pin.as_ref().filter(is_other) {
        Some(pin) => stored(server, &revisions, &pin.hash),
        None => rendered.clone(),
    };
    let desired = wanted.and_then(|rendered| {
        let kind = settings.kind_of(&rendered.object)?;
        Ok(Desired::new(&real, rendered, kind))
    });
    let is_stored = |desired: &Desired| revision::find(&revisions, &desired.hash).is_some();
    let child = match &desired {
        Ok(desired) if is_allowed && !deployment.meta.is_deleting && is_stored(desired) => {
            find(server, scope, deployment, &real, &others, desired)?
        }
        Ok(desired) => {
            let is_it = |child: &&Arc<Child>| child.kind == desired.kind && child.name == desired.name();
            others.iter().find(is_it).cloned().map_or(Found::Nothing, Found::Ours)
        }
        Err(_) => others.first().cloned().map_or(Found::Nothing, Found::Ours),
    };
    let memory = &process.memory;
    others.retain(|other| child.ours().is_none_or(|child| child.uid != other.uid));
    let wanted = desired.as_ref().ok().map(|desired| desired.hash.as_str());
    let settled_as = memory.applied.as_ref().filter(|(hash, _)| wanted == Some(&**hash));
    let since = |then: u8| clock::duration(server.clock - then);
    Some(Observed {
        backoffs,
        is_blind: false,
        now: clock::time(server.clock),
        kinds: settings.children.iter().map(listed).collect(),
        since_progress: Duration::ZERO,
        behind_for: Duration::ZERO,
        status_age: match memory.written {
            Some(then) => StatusAge::Written(since(then)),
            None => StatusAge::Unwritten(since(deployment.meta.created)),
        },
        settled_as: settled_as.map(|(_, state)| state.value().clone()),
        given_replicas: memory.replicas.iter().map(|(uid, given)| (uid.to_string(), *given)).collect(),
        rendered,
        unread: Vec::new(),
        pin,
        unlisted: None,
        desired,
        child,
        look: None,
        others,
        revisions,
        orphans: Vec::new(),
        deployment: Arc::new(real),
    })
}

/// The rendering of a revision.
fn stored(server: &Server, revisions: &[Arc<Revision>], hash: &str) -> Result<Rendered, Failure> {
    let found = revision::find(revisions, hash).and_then(|revision| {
        let live = server.get(&Key { kind: Kind::Revision, name: (&*revision.name).into() });
        live.filter(|live| *live.meta.uid == *revision.uid)
    });
    let object = found.and_then(|found| Revision::rendering(pruned(found)));
    let hash = hash.to_owned();
    match object {
        Some(object) => Ok(Rendered { object, hash }),
        None => Err(revision::gone(&hash)),
    }
}

/// The rendering of a `BasicDeployment`. It is the same in many states, and the slowest part of a pass.
pub fn rendered(deployment: &Stored) -> Result<Rendered, Failure> {
    static KNOWN: LazyLock<Mutex<HashMap<u64, Result<Rendered, Failure>>>> = LazyLock::new(Mutex::default);
    let input = digest(&(&deployment.meta, &deployment.spec));
    let known = KNOWN.lock().get(&input).cloned();
    known.unwrap_or_else(|| {
        let rendered = render(&real_deployment(deployment), &DEPLOYMENTS);
        KNOWN.lock().insert(input, rendered.clone());
        rendered
    })
}

fn child_of(row: &Object, scope: &Scope) -> Child {
    let mut child = Child::of(pruned(row), settings_of(row.meta.key.kind));
    if scope.has(Sabotage::BelievesOldReports) {
        child.outputs.observed_generation = Some(child.generation);
        (child.outputs.ready, child.outputs.updated) = (true, None);
    }
    child
}

fn listed(kind: &Arc<ChildKind>) -> ListedKind {
    let watched = WriteTarget::new(kind.api_resource(), &SeenVersion::default());
    ListedKind { kind: kind.clone(), watched }
}

/// The object that has the child's name.
fn find(
    server: &Server,
    scope: &Scope,
    deployment: &Stored,
    real: &BasicDeployment,
    own: &[Arc<Child>],
    desired: &Desired,
) -> Option<Found> {
    let is_it = |child: &&Arc<Child>| child.kind == desired.kind && child.name == desired.name();
    if let Some(child) = own.iter().find(is_it) {
        return Some(Found::Ours(child.clone()));
    }
    let key = Key { kind: kind_of(&desired.object), name: desired.name().into() };
    let Some(found) = server.get(&key) else { return Some(Found::Nothing) };
    let child = Arc::new(child_of(found, scope));
    let is_there = || {
        server
            .get(&deployment.meta.key)
            .is_some_and(|live| live.meta.uid == deployment.meta.uid && !live.meta.is_deleting)
    };
    Some(match &child.owner {
        None if !scope.has(Sabotage::AdoptsForTheDead) && !is_there() => return None,
        None => Found::Orphan(child),
        Some(owner) if *owner.uid == *deployment.meta.uid => Found::Ours(child),
        Some(owner) if Ownership::is_former(owner, real) => Found::Leaving(child),
        Some(_) => Found::Foreign(child),
    })
}

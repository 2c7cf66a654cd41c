//! Reads the present state: from the caches, and live where a cache is not enough. The only reader.

mod children;
mod history;
mod pods;

use std::{sync::Arc, time::Duration};

use basic_deployment_controller::{
    Settings, blocking_pod,
    child::Child,
    child_kind::{ChildKind, api_resource},
    desired::{Desired, render, subject, unread, with_source},
    drift::means_the_same,
    observed::{Found, Look, Observed},
    progress::Progress,
    revision::{self, Revision},
    stall, step,
};
use catena_api::{BasicDeployment, Pin, reason};
use jiff::Timestamp;
use kube::{Client, discovery::Scope};
use operator_kit::{
    report::{StatusAge, StepError},
    run::{Backoffs, Queue, RenderCache, SettingsHandle},
    write::Ownership,
};
use operator_templates::Rendered;
use operator_watch::{ApiError, Cause, Discovery, Failure, Live, ObjectId, Watches, WriteTarget};
use serde_json::Value;

use crate::memory::Memory;

use {
    children::{Children, Known, Seen},
    history::History,
};

/// Reads the input of a decision; it owns the caches.
pub struct Observer {
    client: Client,
    settings: SettingsHandle<Settings>,
    discovery: Discovery,
    children: Children,
    history: History,
    memory: Memory,
    /// The parameters that the template of each `BasicDeployment` does not read. The rendering itself is as large as the child,
    /// and is not kept.
    unread: RenderCache<Vec<String>>,
}

impl Observer {
    pub fn new(
        client: Client,
        settings: SettingsHandle<Settings>,
        discovery: Discovery,
        watches: Watches,
        queue: &Queue,
        memory: Memory,
    ) -> Self {
        let history = History::new(client.clone(), &watches, queue.clone());
        let children = Children::new(client.clone(), discovery.clone(), watches, queue.clone());
        children.of(&settings.current().children);
        let unread = RenderCache::default();
        Self { client, settings, discovery, children, history, memory, unread }
    }

    /// The kind and watch of revisions.
    pub fn revisions(&self) -> WriteTarget {
        self.history.place()
    }

    /// Adds the responsible parameters to an error, if the server rejects the child and names fields.
    pub fn with_source(&self, error: StepError, observed: &Observed) -> StepError {
        match error {
            // The rendering of a rollback comes from another template or other parameters.
            StepError::Api(error) if observed.pin.is_none() => {
                with_source(error, &observed.deployment, &self.settings.current()).into()
            }
            error => error,
        }
    }

    /// Forgets a `BasicDeployment` that is gone.
    pub fn forget(&self, uid: &str) {
        self.history.forget(uid);
        self.memory.forget(uid);
        self.unread.forget(uid);
    }

    /// Reads the present state.
    pub async fn observe(
        &self,
        deployment: Arc<BasicDeployment>,
        backoffs: Backoffs,
        status_age: StatusAge,
    ) -> Result<Observed, StepError> {
        let version = self.settings.version();
        let settings = self.settings.current();
        let kinds = self.children.of(&settings.children);
        let is_allowed = backoffs.everything().is_none();
        let ObjectId { namespace, name, uid } = ObjectId::of(&*deployment);
        let rendered = render(&deployment, &settings);
        let revisions = self.history.of(namespace, name, uid);
        // A child is recorded before it is created.
        let may_have = |kind: &ChildKind| {
            let is_rendered = rendered.as_ref().is_ok_and(|rendered| kind.renders(&rendered.object));
            is_rendered || revisions.iter().any(|revision| kind.is((&revision.kind.0, &revision.kind.1)))
        };
        let seen = self.children.seen(&kinds, namespace, uid, may_have).await;
        let problem = self.history.problem().or_else(|| seen.problem.clone());
        let is_blind = problem.is_some();
        if let Some(problem) = problem.filter(|_| is_allowed) {
            let message = format!("the children cannot be observed: {problem}");
            return Err(Failure::transient(reason::CHILDREN_NOT_OBSERVED, message).into());
        }
        let is_observed = is_allowed && deployment.metadata.deletion_timestamp.is_none();
        let may_adopt = is_observed && !backoffs.is_backing_off(step::ADOPT);
        let orphans = if may_adopt { self.history.left(namespace, name, &revisions) } else { Vec::new() };
        let mut own = seen.children.clone();
        let unlisted = self.unlisted(&deployment, &kinds, &revisions, is_allowed).await?;
        let holds = |pin: &Pin| rendered.as_ref().map_or(true, |rendered| rendered.hash == pin.rejects);
        let pin = Pin::on(&deployment).filter(holds);
        let desired = self.desired(&deployment, &settings, &rendered, pin.as_ref(), &revisions).await?;
        let is_stored = |desired: &Desired| revision::find(&revisions, &desired.hash).is_some();
        // A rendering is recorded before it is used, so until then no look-up is needed.
        let is_looked_for = |desired: &Desired| is_observed && (deployment.spec.paused || is_stored(desired));
        let found = match &desired {
            Ok(desired) => match known(&own, desired) {
                Some(child) => Ok(Found::Ours(child)),
                None if is_looked_for(desired) => self.find(desired, &seen, &deployment).await,
                None => Ok(Found::Nothing),
            },
            Err(refusal) => Err(refusal.clone().into()),
        };
        let (desired, child) = match found {
            Ok(found) => (desired, found),
            // An existing child is still restarted and scaled.
            Err(StepError::Failed(refusal)) => {
                (Err(refusal), last_wanted(&own, &revisions).map_or(Found::Nothing, Found::Ours))
            }
            Err(error) => return Err(error),
        };
        let is_remade = child == Found::Nothing && desired.is_ok() && self.memory.had_child(uid);
        // Nothing is made or adopted for one that is gone.
        if is_observed && (is_remade || matches!(child, Found::Orphan(_)) || !orphans.is_empty()) {
            Ownership::ensure_exists(&self.client, &*deployment).await?;
        }
        own.retain(|other| !matches!(&child, Found::Ours(child) if child.uid == other.uid));
        let settled_as =
            desired.as_ref().ok().and_then(|desired| self.settled_as(uid, desired, child.ours()));
        let reported = stall::reported(&deployment, child.ours().map(AsRef::as_ref), &own);
        let template_inputs = (version, &deployment.spec.template, subject(&deployment));
        let mut observed = Observed {
            backoffs,
            is_blind,
            now: Timestamp::now(),
            kinds: kinds.iter().map(Known::listed).collect(),
            since_progress: Duration::ZERO,
            behind_for: self.memory.behind_for(uid, child.ours().map(AsRef::as_ref)),
            status_age,
            settled_as,
            given_replicas: self.memory.given_replicas(uid),
            unread: self.unread.of(uid, template_inputs, || unread(&deployment, &settings)),
            rendered,
            pin,
            unlisted,
            desired,
            look: child.ours().and_then(|child| self.memory.look(uid, child)),
            child,
            others: own,
            revisions,
            orphans,
            deployment,
        };
        let progress = if is_allowed { Progress::of(&observed) } else { Progress::Unknown };
        let uid = ObjectId::of(&*observed.deployment).uid;
        observed.since_progress = self.memory.since_progress(uid, progress, reported);
        if let (Some(Duration::ZERO), Some(child)) =
            (blocking_pod::look_in(&observed), observed.child.ours().cloned())
        {
            self.look(&mut observed, &child).await;
        }
        Ok(observed)
    }

    /// The form in which the server stores a rendering. The answer to an apply shows it; a process that has applied nothing,
    /// such as a new leader, learns it from a child that is as rendered.
    fn settled_as(&self, uid: &str, desired: &Desired, child: Option<&Arc<Child>>) -> Option<Value> {
        self.memory.settled_as(uid, desired).or_else(|| {
            let child = child.filter(|child| child.hash() == desired.hash)?;
            let seen = desired.seen_in(&child.object);
            means_the_same(&desired.comparable(), &seen).then(|| {
                self.memory.settled(uid, desired, seen.clone());
                seen
            })
        })
    }

    /// Looks for the pod that keeps the child from serving. A failure is reported, and holds up nothing.
    async fn look(&self, observed: &mut Observed, child: &Child) {
        let Some(pods) = &child.kind.fields().pods else { return };
        let found = pods::blocker(&self.client, child, pods).await;
        let found = found.map_err(|error| error.to_string());
        let uid = ObjectId::of(&*observed.deployment).uid;
        self.memory.looked(uid, child, found.clone());
        observed.look = Some(Look { age: Duration::ZERO, found });
    }

    /// The refusal to make another child while that of the last revision may still run: its kind is no longer listed, so that no
    /// watch shows it.
    async fn unlisted(
        &self,
        deployment: &BasicDeployment,
        kinds: &[Known],
        revisions: &[Arc<Revision>],
        is_looked_for: bool,
    ) -> Result<Option<Failure>, StepError> {
        let ObjectId { namespace, uid, .. } = ObjectId::of(deployment);
        let Some(last) = revisions.last() else { return Ok(None) };
        let ((api_version, kind), name) = (&last.kind, &last.child);
        let is_listed = kinds.iter().any(|known| known.kind.is((api_version, kind)));
        // Whoever may write revisions may put any text there.
        if is_listed || !api_version.split('/').chain([&**name]).all(ObjectId::is_name) {
            return Ok(None);
        }
        let message = format!(
            "the last child, {kind} {name:?}, is of a kind that children in the controller's settings no longer lists, so that it is not seen and may still run; list the kind until no child of it is left"
        );
        let refusal = Failure::stalled(reason::KIND_NOT_LISTED, message);
        if !is_looked_for {
            return Ok(Some(refusal));
        }
        let Some((served, _)) = self.discovery.find(&api_resource(api_version, kind, Some(""))).await? else {
            return Ok(None);
        };
        let may_run = match Live::metadata(&self.client, &served, namespace, name).await {
            Ok(found) => found.is_some_and(|found| Ownership::is_controlled_by(&found, uid)),
            // The right to read it went with its entry in the settings. It may have been recorded, but never made.
            Err(error) if error.cause == Cause::Forbidden => {
                let reported = deployment.status.as_ref().and_then(|status| status.child.as_ref());
                reported.is_some() || self.memory.had_child(uid)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(may_run.then_some(refusal))
    }

    /// The object that has the kind and name of the desired child, live, because a child that is missing in the cache would
    /// be created.
    async fn find(
        &self,
        desired: &Desired,
        seen: &Seen,
        deployment: &BasicDeployment,
    ) -> Result<Found, StepError> {
        let ObjectId { namespace, uid, .. } = ObjectId::of(deployment);
        let kind = &desired.kind;
        seen.serves(kind)?;
        let found = Live::object(&self.client, &kind.api_resource(), namespace, desired.name()).await;
        let child = match found {
            Ok(Some(object)) => Arc::new(Child::of(object, kind)),
            Ok(None) => return Ok(Found::Nothing),
            Err(error) => return Err(self.unfound(error, kind).await),
        };
        Ok(match &child.owner {
            None => Found::Orphan(child),
            Some(owner) if owner.uid == uid => Found::Ours(child),
            // Its end comes through the watch, under the name that it shares with the new one.
            Some(owner) if Ownership::is_former(owner, deployment) => Found::Leaving(child),
            Some(_) => Found::Foreign(child),
        })
    }

    /// The error of a failed look-up. The API server does not know the path of a cluster-scoped kind in a namespace.
    async fn unfound(&self, error: ApiError, kind: &ChildKind) -> StepError {
        if error.cause == Cause::KindNotServed
            && let Ok(Some((_, Scope::Cluster))) = self.discovery.find(&kind.api_resource()).await
        {
            let message = format!(
                "the kind {} of {} is cluster-scoped, but a child lives in the namespace of its BasicDeployment, so that its kind must be namespaced; change the template, or define the kind with scope: Namespaced",
                kind.kind, kind.api_version
            );
            return Failure::stalled(reason::KIND_NOT_NAMESPACED, message).into();
        }
        error.into()
    }

    /// The desired child: on the revision that a rollback holds, or on the current rendering.
    async fn desired(
        &self,
        deployment: &BasicDeployment,
        settings: &Settings,
        rendered: &Result<Rendered, Failure>,
        pin: Option<&Pin>,
        revisions: &[Arc<Revision>],
    ) -> Result<Result<Desired, Failure>, StepError> {
        let desired = |rendered: Rendered| {
            let kind = settings.kind_of(&rendered.object)?;
            Ok(Desired::new(deployment, rendered, kind))
        };
        let is_other = |pin: &&Pin| rendered.as_ref().map_or(true, |rendered| rendered.hash != pin.hash);
        let Some(pin) = pin.filter(is_other) else { return Ok(rendered.clone().and_then(desired)) };
        let hash = pin.hash.clone();
        let stored = match revision::find(revisions, &hash) {
            Some(revision) => self.history.rendering(ObjectId::of(deployment).uid, revision).await?,
            None => None,
        };
        Ok(match stored {
            Some(object) => desired(Rendered { object, hash }),
            None => Err(revision::gone(&hash)),
        })
    }
}

/// The known child of the desired kind and name.
fn known(own: &[Arc<Child>], desired: &Desired) -> Option<Arc<Child>> {
    let is_it = |child: &&Arc<Child>| child.kind == desired.kind && child.name == desired.name();
    own.iter().find(is_it).cloned()
}

/// The child that was wanted last: the one of the newest revision.
fn last_wanted(own: &[Arc<Child>], revisions: &[Arc<Revision>]) -> Option<Arc<Child>> {
    let number = |child: &&Arc<Child>| revisions.iter().position(|revision| revision.hash == child.hash());
    own.iter().max_by_key(number).cloned()
}

#[cfg(test)]
mod tests;

//! Action → the milestone that a person looks for in `kubectl describe`. Pure.
//!
//! A change has at most two: its beginning with the reason, and its end. Undone changes of others, statuses and history
//! have none, so that nothing is told in steady state.

use std::time::Duration;

use catena_api::{BasicDeploymentStatus, keys};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::discovery::ApiResource;
use operator_kit::{
    report::{Milestone, conditions},
    watch::Row,
};

use crate::{
    child::Child,
    decide::{Action, Cause},
    desired::Desired,
    drift::changed_field,
    observed::{Found, Observed},
    pause,
    revision::{self, Revision},
    stall::{PROGRESS_DEADLINE_EXCEEDED, silence},
    status::{status, told},
};

const SCALING: &str = "Scaling";
const RESTARTING: &str = "Restarting";

/// The news of a step that was taken.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A change begins, whose end is awaited.
    Begins(Milestone),
    /// The awaited change has ended.
    Ends(Milestone),
    /// A pause holds something back.
    Paused(Milestone),
    /// It has exceeded its deadline, and the child has never reported on its spec.
    Silent(String),
}

/// A change whose end has not been told.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Its beginning.
    pub began: Milestone,
    /// The time since then.
    pub since: Duration,
}

/// The milestone of an action, if it is one. `changing` is the change whose end is awaited.
#[must_use]
pub fn of(observed: &Observed, action: &Action, changing: Option<&Change>) -> Option<News> {
    let wanted = observed.deployment.spec.replicas;
    match action {
        Action::Create { desired, replicas, .. } => {
            let told = rollback(observed, desired).unwrap_or_else(|| creation(observed, desired, *replicas));
            Some(News::Begins(told))
        }
        Action::Apply { cause: Cause::Drift, .. } => None,
        Action::Apply { child, desired, .. } if matches!(observed.child, Found::Orphan(_)) => {
            let note = format!("adopted {}, which had no controller", child.name);
            Some(News::Begins(milestone("ChildAdopted", "Adopt", note, related(observed, &desired.hash))))
        }
        Action::Apply { child, desired, .. } => {
            let told = rollback(observed, desired).unwrap_or_else(|| rollout(observed, child, desired));
            Some(News::Begins(told))
        }
        Action::Restart { command, token: Some(_), .. } => {
            let note = format!("replaces all replicas once, as {} asks", command.name);
            let resource = command.kind.resource();
            let command = reference(&resource, &command.namespace, &command.name, &command.uid);
            Some(News::Begins(milestone(RESTARTING, "Restart", note, Some(command))))
        }
        // The steps of an exchange are a part of it.
        Action::Scale { child, heals: false, .. }
            if observed.former_children().next().is_none() && is_newly_wished(child, observed) =>
        {
            let before = child.replicas().unwrap_or_default();
            let note = format!("scales {} from {before} to {wanted} replicas", child.name);
            let child = reference(&child.kind.api_resource(), &child.namespace, &child.name, &child.uid);
            // Repeats of an Event keep its first note, so that the number is a part of the action.
            let action = format!("ScaleFrom{before}To{wanted}");
            Some(News::Begins(Milestone { reason: SCALING, action, note, related: Some(child) }))
        }
        Action::WriteStatus(status) => reported(observed, status, changing),
        // Nearly every pass without a change under way ends here.
        Action::Settle | Action::Wait(_) if changing.is_some() => {
            let status = status(observed);
            let is_told = status == told(&observed.deployment);
            end(observed, &status, changing.filter(|_| is_told))
        }
        _ => None,
    }
}

/// Whether a beginning is a part of the change that is already under way, to whose time it belongs: scaling and restarts are
/// parts of a change to another rendering.
#[must_use]
pub fn is_part_of(milestone: &Milestone, under_way: &Milestone) -> bool {
    !is_of_rendering(milestone) && is_of_rendering(under_way)
}

fn is_of_rendering(milestone: &Milestone) -> bool {
    ![SCALING, RESTARTING].contains(&milestone.reason)
}

/// Whether the replicas that a child is to have were changed in the `BasicDeployment`. A new leader does not know what the
/// child was given, and a generation that was reported before was followed before, unless its report was a failure.
fn is_newly_wished(child: &Child, observed: &Observed) -> bool {
    let reported = observed.deployment.status.as_ref().and_then(|status| status.observed_generation);
    let is_reported = reported == observed.deployment.metadata.generation;
    observed.given_replicas.contains_key(&child.uid) || !is_reported || held_itself_up(observed)
}

/// The rollback that asks for a rendering, if one is about to be carried out.
fn rollback(observed: &Observed, desired: &Desired) -> Option<Milestone> {
    let prepared = observed.prepared.as_ref()?;
    let (target, _) = prepared.target.as_ref().filter(|(target, _)| target.hash == desired.hash)?;
    let command = observed.commands.iter().flatten().find(|command| command.uid == prepared.command);
    let name = command.map_or_else(String::new, |command| format!(" {}", command.name));
    let note = format!(
        "rolls back to {}, as the rollback{name} asks, and stays there until the spec or the template gives another rendering",
        number_of(observed, &target.hash)
    );
    Some(milestone("RollingBack", "RollBack", note, related(observed, &target.hash)))
}

fn creation(observed: &Observed, desired: &Desired, replicas: i32) -> Milestone {
    let wanted = observed.deployment.spec.replicas;
    let (kind, name) = (&desired.kind.kind, desired.name());
    let instead = observed
        .former_children()
        .next()
        .map_or_else(String::new, |former| format!(", in exchange for {} {}", former.kind.kind, former.name));
    // Beside former children, there may only be room for some.
    let of = if replicas == wanted { String::new() } else { format!(" of {wanted}") };
    let noun = if wanted == 1 { "replica" } else { "replicas" };
    let note = format!(
        "created {kind} {name} with {replicas}{of} {noun}, {}{instead}",
        number_of(observed, &desired.hash)
    );
    milestone("ChildCreated", "Create", note, related(observed, &desired.hash))
}

/// The child goes to another rendering. Whether the spec or the template gave it is not known: no status tells which
/// template was rendered.
fn rollout(observed: &Observed, child: &Child, desired: &Desired) -> Milestone {
    let field =
        first_change(child, desired).map_or_else(String::new, |field| format!(", which changes {field}"));
    let released = child.marks().rejected.map_or("", |_| "; the rollback no longer holds it");
    let note = format!("{} rolls out{field}{released}", number_of(observed, &desired.hash));
    milestone("RollingOut", "RollOut", note, related(observed, &desired.hash))
}

/// The first field of the template with another value; the hash of the rendering differs in any case.
fn first_change(child: &Child, desired: &Desired) -> Option<String> {
    let mut of_template = desired.clone();
    of_template.object["metadata"]["annotations"][keys::HASH] = child.hash().into();
    changed_field(child, &of_template, None)
}

/// A reported status may say that the last change has ended, that the rollout is paused, or that its child says nothing.
fn reported(observed: &Observed, status: &BasicDeploymentStatus, changing: Option<&Change>) -> Option<News> {
    let reason = |status: Option<&BasicDeploymentStatus>| {
        let conditions = status.map(|status| &*status.conditions).unwrap_or_default();
        conditions::find(conditions, conditions::PROGRESSING).map(|condition| condition.reason.clone())
    };
    let (before, after) = (reason(observed.deployment.status.as_ref()), reason(Some(status)));
    if after.as_deref() == Some(pause::PAUSED) && before != after {
        let note = pause::note(observed.child.ours().is_some()).to_owned();
        return Some(News::Paused(milestone("Paused", "Pause", note, None)));
    }
    if after.as_deref() == Some(PROGRESS_DEADLINE_EXCEEDED) && before != after {
        return observed.child.ours().and_then(|child| silence(child)).map(News::Silent);
    }
    end(observed, status, changing)
}

/// Whether the last status names the `BasicDeployment` itself as its blocker.
fn held_itself_up(observed: &Observed) -> bool {
    let blocker = observed.deployment.status.as_ref().and_then(|status| status.blocked_by.as_ref());
    blocker.is_some_and(|blocker| blocker.kind == "BasicDeployment")
}

/// The end of a change, once all replicas serve.
fn end(observed: &Observed, status: &BasicDeploymentStatus, changing: Option<&Change>) -> Option<News> {
    let Change { began, since } = changing.filter(|_| status.ready)?;
    let child = observed.child.ours()?;
    // A change that was turned back had no end. What serves now was there before it, and needed no time.
    let is_of_child = began.related == related(observed, child.hash());
    let after = if is_of_rendering(began) && !is_of_child {
        " again".to_owned()
    } else {
        format!(" after {} s", since.as_secs())
    };
    let note = format!(
        "{} of {} replicas serve {}{after}",
        status.active,
        observed.deployment.spec.replicas,
        number_of(observed, child.hash()),
    );
    // Repeats of an Event keep its first note: the end of another change is another Event.
    let action = format!("ServeAfter{}", began.action);
    let related = began.related.clone();
    Some(News::Ends(Milestone { reason: "RolledOut", action, note, related }))
}

fn milestone(
    reason: &'static str,
    action: &str,
    note: String,
    related: Option<ObjectReference>,
) -> Milestone {
    Milestone { reason, action: action.to_owned(), note, related }
}

fn number_of(observed: &Observed, hash: &str) -> String {
    revision::find(&observed.revisions, hash)
        .map_or_else(|| "a new revision".to_owned(), |revision| format!("revision {}", revision.number))
}

/// The revision with a hash, by which Events about different revisions are told apart.
fn related(observed: &Observed, hash: &str) -> Option<ObjectReference> {
    let revision: &Revision = revision::find(&observed.revisions, hash)?;
    let id = revision.id();
    let kind = ApiResource {
        group: "apps".into(),
        version: "v1".into(),
        api_version: "apps/v1".into(),
        kind: "ControllerRevision".into(),
        plural: "controllerrevisions".into(),
    };
    Some(reference(&kind, id.namespace, id.name, id.uid))
}

fn reference(resource: &ApiResource, namespace: &str, name: &str, uid: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(resource.api_version.clone()),
        kind: Some(resource.kind.clone()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        uid: Some(uid.to_owned()),
        ..ObjectReference::default()
    }
}

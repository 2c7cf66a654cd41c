//! Action → the Event that a person looks for in `kubectl describe`. Pure.

use catena_api::BasicDeploymentStatus;
use operator_kit::report::conditions;

use crate::{
    decide::{Action, Cause},
    observed::{Found, Observed},
    revision,
    stall::{PROGRESS_DEADLINE_EXCEEDED, silence},
};

/// An Event about a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A child was written as somebody asked: the reason and the note.
    Written(&'static str, String),
    /// The child has exceeded its deadline, and does not report on its spec.
    Silent(String),
}

/// The Event about a step, if it has one. Undone changes of others and the steps of an exchange have none, so that nothing is
/// told in steady state. Of a child whose replicas this process has not written yet, a scale by others cannot be told from a wish.
#[must_use]
pub fn of(observed: &Observed, action: &Action) -> Option<Event> {
    match action {
        Action::Create { desired, replicas, .. } => {
            let (kind, name, wanted) =
                (&desired.kind.kind, desired.name(), observed.deployment.spec.replicas);
            let revision = number_of(observed, &desired.hash);
            let note = format!("created {kind} {name} with {replicas} of {wanted} replicas, on {revision}");
            Some(Event::Written("ChildCreated", note))
        }
        Action::Apply { child, desired, cause, .. } => {
            let (reason, verb) = match observed.child {
                Found::Orphan(_) => ("ChildAdopted", "adopted"),
                _ if *cause == Cause::Drift => return None,
                _ => ("ChildUpdated", "updated"),
            };
            let revision = number_of(observed, &desired.hash);
            let note = format!("{verb} {} {}, which is on {revision} now", child.kind.kind, child.name);
            Some(Event::Written(reason, note))
        }
        Action::Restart { child, command, token: Some(_) } => {
            let note = format!("restarted {} {}, as {} asks", child.kind.kind, child.name, command.name);
            Some(Event::Written("ChildRestarted", note))
        }
        Action::Scale { child, replicas, heals: false, .. }
            if observed.former_children().next().is_none() && child.replicas() != Some(*replicas) =>
        {
            let (kind, name, before) = (&child.kind.kind, &child.name, child.replicas().unwrap_or_default());
            let note = format!("scaled {kind} {name} from {before} to {replicas} replicas");
            Some(Event::Written("ChildScaled", note))
        }
        Action::WriteStatus(status) => {
            let is_late = |status: &BasicDeploymentStatus| {
                let progressing = conditions::find(&status.conditions, conditions::PROGRESSING);
                progressing.is_some_and(|condition| condition.reason == PROGRESS_DEADLINE_EXCEEDED)
            };
            let is_news = is_late(status) && !observed.deployment.status.as_ref().is_some_and(is_late);
            let child = observed.child.ours().filter(|_| is_news)?;
            let (kind, name) = (&child.kind.kind, &child.name);
            silence(observed, child).map(|silence| Event::Silent(format!("{kind} {name:?} {silence}")))
        }
        _ => None,
    }
}

fn number_of(observed: &Observed, hash: &str) -> String {
    revision::find(&observed.revisions, hash)
        .map_or_else(|| "a new revision".to_owned(), |revision| format!("revision {}", revision.number))
}

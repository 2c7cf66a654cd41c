//! Action → the Event that a person looks for in `kubectl describe`. Pure.

use catena_api::{
    BasicDeploymentStatus,
    reason::{self, NOT_REPORTED, PROGRESS_DEADLINE_EXCEEDED},
};
use operator_kit::report::{Conditions, Event, Events};

use crate::{
    decide::Action,
    observed::{Found, Observed},
    revision,
    stall::silence,
};

/// The Event about a step, if it has one: that a child was written as somebody asked, or, a warning, that it has exceeded its
/// deadline and does not report on its spec. Undone changes of others and the steps of an exchange have none, so that nothing is
/// told in steady state. Of a child whose replicas this process has not written yet, a scale by others cannot be told from a wish.
#[must_use]
pub fn of(observed: &Observed, action: &Action) -> Option<Event> {
    match action {
        Action::Create { desired, replicas } => {
            let (kind, name, wanted) =
                (&desired.kind.kind, desired.name(), observed.deployment.spec.replicas);
            let revision = number_of(observed, &desired.hash);
            let note = format!("created {kind} {name} with {replicas} of {wanted} replicas, on {revision}");
            Some(Events::normal("ChildCreated", &note))
        }
        Action::Apply { child, desired, heals, .. } => {
            let (reason, verb) = match observed.child {
                Found::Orphan(_) => ("ChildAdopted", "adopted"),
                _ if *heals => return None,
                _ => ("ChildUpdated", "updated"),
            };
            let revision = number_of(observed, &desired.hash);
            let note = format!("{verb} {} {}, which is on {revision} now", child.kind.kind, child.name);
            Some(Events::normal(reason, &note))
        }
        Action::Restart { child, token } => {
            let note = format!("restarted {} {}: spec.restartedAt is {token}", child.kind.kind, child.name);
            Some(Events::normal("ChildRestarted", &note))
        }
        Action::Scale { child, replicas, heals: false, .. }
            if observed.former_children().next().is_none() && child.replicas() != Some(*replicas) =>
        {
            let (kind, name, before) = (&child.kind.kind, &child.name, child.replicas().unwrap_or_default());
            let note = format!("scaled {kind} {name} from {before} to {replicas} replicas");
            Some(Events::normal("ChildScaled", &note))
        }
        Action::WriteStatus(status) => {
            let tells = |status: &BasicDeploymentStatus| {
                let progressing = Conditions::find(&status.conditions, Conditions::PROGRESSING);
                progressing.is_some_and(|condition| condition.reason == PROGRESS_DEADLINE_EXCEEDED)
                    && status.blocked_by.as_ref().is_some_and(|blocker| blocker.reason == NOT_REPORTED)
            };
            let is_news = tells(status) && !observed.deployment.status.as_ref().is_some_and(tells);
            let child = observed.child.ours().filter(|_| is_news)?;
            let note = format!("{} {}", child.named(), silence(observed, child)?);
            Some(Events::warning(reason::CONTRACT_BROKEN, &note))
        }
        _ => None,
    }
}

fn number_of(observed: &Observed, hash: &str) -> String {
    revision::find(&observed.revisions, hash)
        .map_or_else(|| "a new revision".to_owned(), |revision| format!("revision {}", revision.number))
}

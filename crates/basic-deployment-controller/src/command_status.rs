//! Observed → the status of a command. Pure.

use catena_api::{
    CommandStatus,
    command::{ACCEPTED, SUCCEEDED},
    deletion::TERMINATING,
    reason::{self, DEADLINE_EXCEEDED},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use operator_kit::report::conditions::{Conditions, RECONCILING, STALLED, is_true};
use operator_watch::ObjectId;

use crate::{
    child::Child,
    command::{Command, Impossible, Order},
    command_queue::Standing,
    observed::{Found, Observed},
    restarts, revision,
};

/// The message of an accepted command.
const IN_TURN: &str = "it is carried out when its turn comes";

/// The outcome of a command.
struct Report {
    /// `None` while it has not ended.
    succeeded: Option<bool>,
    reason: String,
    message: String,
}

/// The new status of a command of the queue, if it differs from the present one.
#[must_use]
pub fn news(command: &Command, standing: &Standing, observed: &Observed) -> Option<CommandStatus> {
    // An immediate effect is reported afterwards, in one write.
    if *standing == Standing::Next && observed.failure_of_command().is_none() {
        return None;
    }
    if command.deletion().is_some_and(|deletion| deletion.due_in(observed.now).is_some()) {
        return None;
    }
    let new = status(command, standing, observed);
    (new != command.status).then_some(new)
}

/// Whether only numbers of a running command differ.
#[must_use]
pub fn is_progress(before: &CommandStatus, after: &CommandStatus) -> bool {
    before.start_time.is_some() && after.completion_time.is_none() && before.conditions == after.conditions
}

/// The status of a command whose deadline has passed and that no `BasicDeployment` has ended.
#[must_use]
pub fn unclaimed(command: &Command, now: Timestamp) -> CommandStatus {
    let before = &command.status;
    let what = unreported(command, before.start_time.is_some());
    let message = format!("spec.activeDeadlineSeconds has passed: {what}");
    CommandStatus {
        observed_generation: Some(command.generation),
        completion_time: Some(Time(now)),
        conditions: accepted_before(command, now, DEADLINE_EXCEEDED, &message)
            .with(SUCCEEDED, false, DEADLINE_EXCEEDED, message.clone())
            .with(RECONCILING, false, DEADLINE_EXCEEDED, message.clone())
            .with(STALLED, true, DEADLINE_EXCEEDED, message)
            .since(&before.conditions),
        ..before.clone()
    }
}

/// The part of a message about a command whose deadline has passed, and whose outcome nobody has seen.
fn unreported(command: &Command, has_begun: bool) -> String {
    match &command.owner {
        _ if has_begun => {
            "it was carried out, but its outcome was not reported; its effect remains".to_owned()
        }
        Some(OwnerReference { name, .. }) => {
            format!(
                "the BasicDeployment {name:?}, to which it is bound, has not reported that it was carried out"
            )
        }
        None => "no BasicDeployment has carried it out: see the condition Bound".to_owned(),
    }
}

/// The status of a command that was deleted, that a finalizer keeps, and that is not bound.
#[must_use]
pub fn unclaimed_leaving(command: &Command, now: Timestamp) -> CommandStatus {
    let before = &command.status;
    let message = leaving_message(command, before.start_time.is_some());
    CommandStatus {
        observed_generation: Some(command.generation),
        conditions: accepted_before(command, now, TERMINATING, &message)
            .unknown(SUCCEEDED, TERMINATING, message.clone())
            .with(RECONCILING, true, TERMINATING, message)
            .since(&before.conditions),
        ..before.clone()
    }
}

/// The condition `Accepted` of a command that no `BasicDeployment` reports on: as it was reported before.
fn accepted_before(command: &Command, now: Timestamp, reason: &str, message: &str) -> Conditions {
    let before = &command.status;
    let conditions = Conditions::new(command.generation, now);
    if before.start_time.is_some() || is_true(&before.conditions, ACCEPTED) {
        conditions.with(ACCEPTED, true, "Accepted", IN_TURN)
    } else {
        conditions.with(ACCEPTED, false, reason, message)
    }
}

/// The message about a command that is being deleted.
fn leaving_message(command: &Command, has_begun: bool) -> String {
    let deletion = command.deletion().map(|deletion| deletion.message()).unwrap_or_default();
    let what = if has_begun { "it was carried out, and its effect remains" } else { "it is not carried out" };
    format!("{deletion}; {what}")
}

fn status(command: &Command, standing: &Standing, observed: &Observed) -> CommandStatus {
    let Report { succeeded, reason, message } = report(command, standing, observed);
    let before = &command.status;
    let now = Time(observed.now);
    let has_begun = observed.is_carried_out(command);
    let (is_running, is_leaving) = (*standing == Standing::Running, *standing == Standing::Leaving);
    let is_effective = is_running || is_leaving && has_begun;
    let is_accepted = match standing {
        Standing::Malformed(_) | Standing::Misdirected => false,
        Standing::Hindered(TERMINATING, _) | Standing::Leaving => {
            has_begun || is_true(&before.conditions, ACCEPTED)
        }
        Standing::Expired => command.is_directed_at(&observed.deployment),
        _ => true,
    };
    let accepted = Conditions::new(command.generation, observed.now);
    let accepted = if is_accepted {
        accepted.with(ACCEPTED, true, "Accepted", IN_TURN)
    } else {
        accepted.with(ACCEPTED, false, &reason, message.clone())
    };
    let conditions = match succeeded {
        // The default of the definition says that it is reconciling. Only a condition replaces it in the same write: if it
        // were removed by another one, a crash between the two would leave an ended command in progress for ever.
        Some(succeeded) => accepted
            .with(SUCCEEDED, succeeded, &reason, message.clone())
            .with(RECONCILING, false, &reason, message.clone())
            .while_true(STALLED, !succeeded, &reason, message),
        None => {
            accepted.unknown(SUCCEEDED, &reason, message.clone()).with(RECONCILING, true, &reason, message)
        }
    };
    CommandStatus {
        observed_generation: Some(command.generation),
        start_time: before.start_time.clone().or_else(|| is_effective.then(|| now.clone())),
        completion_time: succeeded.map(|_| now),
        progress: is_running.then(|| progress(observed)).flatten().or_else(|| before.progress.clone()),
        conditions: conditions.since(&before.conditions),
    }
}

fn report(command: &Command, standing: &Standing, observed: &Observed) -> Report {
    let name = ObjectId::of(&*observed.deployment).name;
    let say = |succeeded, reason: &str, message: String| Report { succeeded, reason: reason.into(), message };
    match standing {
        Standing::Leaving => {
            say(None, TERMINATING, leaving_message(command, observed.is_carried_out(command)))
        }
        Standing::Malformed(why) => say(
            Some(false),
            reason::MALFORMED,
            format!("the command cannot be read: {why}; delete it and create a corrected one"),
        ),
        Standing::Misdirected => say(
            None,
            reason::NOT_THE_TARGET,
            format!(
                "the command is owned by the BasicDeployment {name:?}, but spec.targetRef names another object, so that it is not carried out; delete it and create it again"
            ),
        ),
        Standing::Expired => {
            let has_begun = observed.is_carried_out(command);
            let what = if observed.is_blind {
                unreported(command, has_begun)
            } else if has_begun {
                let why =
                    beside_served(observed).unwrap_or_else(|| "the replicas were not ready in time".into());
                format!("it was carried out, but {why}; its effect remains")
            } else {
                "it was not carried out in time".to_owned()
            };
            say(Some(false), DEADLINE_EXCEEDED, format!("spec.activeDeadlineSeconds has passed: {what}"))
        }
        Standing::Impossible(Impossible { reason, message }) => say(Some(false), reason, message.clone()),
        Standing::Hindered(reason, message) => say(None, reason, message.clone()),
        Standing::Queued => say(None, reason::QUEUED, "older commands are carried out first".into()),
        Standing::Next => match observed.failure_of_command() {
            Some(failure) => say(None, failure.reason, failure.message.clone()),
            None => say(None, reason::QUEUED, "it is about to be carried out".into()),
        },
        Standing::Running => {
            let order = command.asks.as_ref().map_or(Order::Restart, |asks| asks.order);
            let (succeeded, reason, message) = outcome(order, observed);
            say(succeeded, reason, message)
        }
    }
}

/// The outcome of a command that was carried out.
fn outcome(order: Order, observed: &Observed) -> (Option<bool>, &'static str, String) {
    let running = |what: &str| (None, reason::RUNNING, what.to_owned());
    if let Some(failure) = observed.held_up().filter(|_| observed.is_blind) {
        return (None, failure.reason, failure.message.clone());
    }
    if let Some(Impossible { reason, message }) = failed(order, observed) {
        return (Some(false), reason, message);
    }
    let child = observed.child.ours();
    let is_there = |child: &Child| order == Order::Restart || observed.wanted_hash() == Some(child.hash());
    if let Some(child) = child.filter(|child| is_there(child) && observed.serves_alone(child)) {
        let number = || revision::find(&observed.revisions, child.hash()).map(|revision| revision.number);
        let message = match (order, number()) {
            (Order::Restart, _) => "all replicas are new and serving".to_owned(),
            (Order::Rollback(_), Some(number)) => format!("all replicas serve revision {number}"),
            (Order::Rollback(_), None) => "all replicas serve the revision".to_owned(),
        };
        return (Some(true), "Complete", message);
    }
    if let Some(failure) = observed.failure_about_child() {
        return (None, failure.reason, failure.message.clone());
    }
    let what = match (child, order) {
        (None, _) => "the child is being re-created",
        (_, Order::Restart) => "replicas are being replaced",
        (_, Order::Rollback(_)) => "replicas are being replaced by those of the older revision",
    };
    beside_served(observed).map_or_else(|| running(what), |beside| running(&beside))
}

/// Why a command that was carried out can never succeed.
fn failed(order: Order, observed: &Observed) -> Option<Impossible> {
    match (order, &observed.child, &observed.desired) {
        (Order::Restart, Found::Ours(child), _) if child.kind.fields().restarted_at.is_none() => {
            Some(restarts::unsupported(&child.kind))
        }
        (Order::Rollback(_), found, Ok(desired)) => {
            let refusal = match found {
                Found::Orphan(child) if child.is_adoptable_as(&desired.hash) => None,
                Found::Orphan(child) | Found::Foreign(child) => Some(child.refused()),
                // Nothing is written to it.
                Found::Ours(child) if child.hash() != desired.hash => observed.breach_of(child),
                Found::Ours(_) | Found::Nothing | Found::Leaving(_) => None,
            }?;
            Some(Impossible { reason: refusal.reason(), message: refusal.to_string() })
        }
        (Order::Restart | Order::Rollback(_), ..) => None,
    }
}

/// The message about replicas of a former child that serve, or may serve, beside the new ones, if these do.
fn beside_served(observed: &Observed) -> Option<String> {
    let (child, former) = (observed.child.ours()?, observed.serving_former()?);
    let serve = if former.is_readable() { "still serve" } else { "may still serve" };
    let message = || format!("replicas of the former {} {:?} {serve}", former.kind.kind, former.name);
    observed.serves(child).then(message)
}

fn progress(observed: &Observed) -> Option<String> {
    let child = observed.child.ours()?;
    let wanted = observed.deployment.spec.replicas;
    Some(format!("{}/{wanted}", done(child, observed).min(wanted)))
}

/// The number of new serving replicas, as far as the child reports it.
fn done(child: &Child, observed: &Observed) -> i32 {
    if !observed.is_about_wanted(child) {
        return 0;
    }
    let available = child.outputs.available;
    child.outputs.updated.map_or(available, |updated| updated.min(available))
}

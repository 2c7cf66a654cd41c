//! Observed → the status of a command. Pure.

use catena_api::{
    CommandStatus,
    command::{ACCEPTED, SUCCEEDED},
    deletion::TERMINATING,
    reason::{self, DEADLINE_EXCEEDED},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use operator_kit::{
    object::ObjectId,
    report::conditions::{self, Conditions, RECONCILING, STALLED, is_true},
};

use crate::{
    child::Child,
    command::{Command, Order},
    command_queue::Standing,
    observed::Observed,
    restarts::{self, TOKEN_REPLACED, covers, others_of_the_same_second},
    revision,
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
    if *standing == Standing::Next && observed.failure_of_command().is_none() && !observed.is_next_blocked() {
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
    let message = leaving_message(command, Some(before.start_time.is_some()));
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

/// Whether a command that is being deleted was told that it is not carried out, which is final.
fn was_refused(command: &Command) -> bool {
    let accepted = conditions::find(&command.status.conditions, ACCEPTED);
    accepted.is_some_and(|accepted| accepted.status == "False" && accepted.reason == TERMINATING)
}

/// The message about a command that is being deleted; it is not always known whether it has begun.
fn leaving_message(command: &Command, has_begun: Option<bool>) -> String {
    let deletion = command.deletion().map(|deletion| deletion.message()).unwrap_or_default();
    let what = match has_begun {
        Some(true) => "it was carried out, and its effect remains",
        Some(false) => "it is not carried out",
        None => "whether it was carried out is not known, because the children are not observed",
    };
    format!("{deletion}; {what}")
}

fn status(command: &Command, standing: &Standing, observed: &Observed) -> CommandStatus {
    let Report { succeeded, reason, message } = report(command, standing, observed);
    let before = &command.status;
    let now = Time(observed.now);
    let has_begun = has_begun(command, observed);
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
    } else if is_leaving && observed.is_blind && !was_refused(command) {
        accepted.unknown(ACCEPTED, &reason, message.clone())
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

/// Whether the command was carried out, also if a later one has replaced its mark on the child.
fn has_begun(command: &Command, observed: &Observed) -> bool {
    command.status.start_time.is_some() || observed.is_carried_out(command)
}

fn report(command: &Command, standing: &Standing, observed: &Observed) -> Report {
    let name = ObjectId::of(&*observed.deployment).name;
    let say = |succeeded, reason: &str, message: String| Report { succeeded, reason: reason.into(), message };
    match standing {
        Standing::Leaving => {
            let has_begun = has_begun(command, observed);
            let is_known = has_begun || !observed.is_blind || was_refused(command);
            say(None, TERMINATING, leaving_message(command, is_known.then_some(has_begun)))
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
            let has_begun = has_begun(command, observed);
            let what = if observed.is_blind {
                unreported(command, has_begun)
            } else if has_begun && restarts::lost(command, observed).is_some() {
                "it was carried out, but the child does not show it any more".to_owned()
            } else if has_begun {
                let why =
                    beside_served(observed).unwrap_or_else(|| "the replicas were not ready in time".into());
                format!("it was carried out, but {why}; its effect remains")
            } else {
                "it was not carried out in time".to_owned()
            };
            say(Some(false), DEADLINE_EXCEEDED, format!("spec.activeDeadlineSeconds has passed: {what}"))
        }
        Standing::Overtaken(rollback) => say(
            Some(false),
            reason::SUPERSEDED,
            format!("it had not ended, and the rollback {rollback:?} replaces its replicas"),
        ),
        Standing::Impossible(reason, message) => say(Some(false), reason, message.clone()),
        Standing::Hindered(reason, message) => say(None, reason, message.clone()),
        Standing::Queued => say(None, reason::QUEUED, "older commands are carried out first".into()),
        Standing::Next => waiting(observed),
        Standing::Running => {
            let order = command.asks.as_ref().map_or(Order::Restart, |asks| asks.order);
            let (succeeded, reason, message) = outcome(command, order, observed);
            say(succeeded, reason, message)
        }
    }
}

/// The obstacle of the command whose turn it is.
fn waiting(observed: &Observed) -> Report {
    let say = |succeeded, reason: &str, message: String| Report { succeeded, reason: reason.into(), message };
    if observed.is_taken_back() {
        return say(Some(false), reason::SUPERSEDED, TOKEN_REPLACED.to_owned());
    }
    if let Some(refusal) = observed.refused_target() {
        return say(Some(false), refusal.reason(), refusal.to_string());
    }
    if let Some(failure) = observed.failure_of_command() {
        return say(None, failure.reason, failure.message.clone());
    }
    if let Some(child) = observed.leaving_target() {
        let (kind, name) = (&child.kind.kind, &child.name);
        let message = format!("{kind} {name:?} is being deleted; it is created again once it is gone");
        return say(None, reason::CHILD_LEAVING, message);
    }
    if let Some(child) = observed.kept_child() {
        let (kind, name) = (&child.kind.kind, &child.name);
        let message = format!(
            "{kind} {name:?} is exchanged for another child only once the template can be rendered: fix the template or the parameters first"
        );
        return say(None, reason::NO_EXCHANGE, message);
    }
    say(None, reason::QUEUED, "it is about to be carried out".into())
}

/// The progress of a command that was carried out.
fn outcome(command: &Command, order: Order, observed: &Observed) -> (Option<bool>, &'static str, String) {
    let superseded = |why: &str| (Some(false), reason::SUPERSEDED, why.to_owned());
    let running = |what: &str| (None, reason::RUNNING, what.to_owned());
    let Some(child) = observed.child.ours() else { return running("the child is being re-created") };
    let is_carrier = child.bears(&command.uid);
    let is_done = observed.serves_alone(child);
    let pending =
        |what: &str| beside_served(observed).map_or_else(|| running(what), |beside| running(&beside));
    match order {
        Order::Restart => match child.restarted_at() {
            token if !is_carrier && !token.is_some_and(|token| covers(token, command, observed)) => {
                superseded("another child replaced the one that was restarted")
            }
            None => (
                Some(false),
                reason::CHILD_HAS_NO_RESTART,
                "the child has no restart token, although it was set: either its kind does not have the field, or somebody removed it"
                    .into(),
            ),
            Some(token) if !covers(token, command, observed) => {
                superseded(TOKEN_REPLACED)
            }
            Some(token) if is_done => (Some(true), "Complete", served(token, command, observed)),
            Some(_) => pending("replicas are being replaced"),
        },
        Order::Rollback(_) => {
            let revision = revision::find(&observed.revisions, child.hash());
            let by = child.marks().rolled_back_by;
            let by = by.as_ref().or(revision.and_then(|revision| revision.rejects.command.as_ref()));
            let is_kept = observed.desired.as_ref().map_or(true, |desired| desired.hash == child.hash())
                && by == Some(&command.uid);
            let comes = observed.pin.as_ref().and_then(|pin| pin.rejects.command.as_ref()) == Some(&command.uid);
            if !is_kept && !comes {
                return superseded("the spec or the template has changed to another rendering");
            }
            let number = revision.map_or_else(
                || "the revision".into(),
                |revision| format!("revision {}", revision.number),
            );
            if is_kept && is_done {
                (Some(true), "Complete", format!("all replicas serve {number}"))
            } else {
                pending("replicas are being replaced by those of the older revision")
            }
        }
    }
}

/// The message about replicas of a former child that serve, or may serve, beside the new ones, if these do.
fn beside_served(observed: &Observed) -> Option<String> {
    let (child, former) = (observed.child.ours()?, observed.serving_former()?);
    let serve = if former.is_readable() { "still serve" } else { "may still serve" };
    let message = || format!("replicas of the former {} {:?} {serve}", former.kind.kind, former.name);
    observed.serves(child).then(message)
}

/// The message when all replicas are new. Restarts that share a token replace the replicas only once.
fn served(token: &str, command: &Command, observed: &Observed) -> String {
    let all = "all replicas are new and serving";
    if token != command.token() {
        return format!("{all}; it was carried out together with a later restart, that of {token}");
    }
    match others_of_the_same_second(command, observed) {
        0 => all.to_owned(),
        1 => format!("{all}; it was carried out together with another restart of the same second"),
        others => {
            format!("{all}; it was carried out together with {others} other restarts of the same second")
        }
    }
}

fn progress(observed: &Observed) -> Option<String> {
    let child = observed.child.ours()?;
    let wanted = observed.deployment.spec.replicas;
    Some(format!("{}/{wanted}", done(child).min(wanted)))
}

/// The number of new serving replicas, as far as the child reports it.
fn done(child: &Child) -> i32 {
    if !child.is_current() {
        return 0;
    }
    let available = child.outputs.available;
    child.outputs.updated.map_or(available, |updated| updated.min(available))
}

//! The state of a command. Pure.

use std::sync::Arc;

use catena_api::reason;
use command_kinds::run::{Inputs, Rule, Told};
use jiff::Timestamp;
use operator_templates::Expression;
use operator_watch::ObjectId;
use serde_json::{Value, json};

use crate::{
    command::{Command, Owner, order, recent},
    line::{is_open, is_same, superseding},
    observed::{Look, Observed, Target},
};

/// The state of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// It waits.
    Waiting(Told),
    /// It runs now, by this patch of its target.
    Due(Value),
    /// It ran, and its outcome is awaited.
    Running(Account),
    /// It ran, and has succeeded.
    Succeeded(Account),
    /// It has failed.
    Failed(Told),
}

/// What is told of a command that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// For people.
    pub message: String,
    /// How far it is, as `2/5`.
    pub progress: Option<String>,
}

/// A chain of checks; the first that applies decides.
#[must_use]
pub fn judge(observed: &Observed) -> State {
    let (command, now) = (&observed.command, observed.now);
    let (row, target) = (&command.row, observed.found());
    if let (Some(Err(problem)), Owner::Other(_)) = (&row.target, &row.owner) {
        let message = format!("the command cannot be read: {problem}; delete it and create a corrected one");
        return State::Failed(told(reason::MALFORMED, message));
    }
    let has_run = observed.has_run();
    if let Some(target) = target {
        if let Some(superseded) = superseded(observed, target, has_run) {
            return State::Failed(superseded);
        }
        if has_run && let Some(outcome) = outcome(command, target, now) {
            return outcome;
        }
    }
    if row.is_expired(now) {
        return State::Failed(overdue(&row.owner, has_run));
    }
    match (&row.broken_deadline, target) {
        (Some(problem), _) if !has_run => State::Waiting(told(reason::RULE_FAILED, problem.as_str())),
        (_, None) => State::Waiting(without_target(observed)),
        (_, Some(target)) if has_run => running(command, target, now),
        (_, Some(target)) => turn(observed, target),
    }
}

/// A reason and a message.
#[must_use]
pub fn told(reason: &str, message: impl Into<String>) -> Told {
    Told { reason: reason.into(), message: message.into() }
}

/// Why a command whose target was not looked at, or is not there, waits.
fn without_target(observed: &Observed) -> Told {
    let row = &observed.command.row;
    let to = match &row.target {
        Some(Ok(to)) => to,
        Some(Err(problem)) => return told(reason::INVALID_REFERENCE, problem.as_str()),
        None => return told(reason::NOT_BOUND, "it is no command"),
    };
    match (&row.owner, &observed.target) {
        (Owner::None, _) => told(
            reason::NOT_BOUND,
            format!(
                "it is carried out once command-binder has bound it to the {to}: see the condition Bound, or its Events"
            ),
        ),
        (Owner::Other(other), _) => told(
            reason::NOT_THE_TARGET,
            format!(
                "it is owned by the {other}, but names the {to}, so that it is not carried out; delete it and create it again"
            ),
        ),
        (_, Look::NotServed) => told(
            reason::KIND_NOT_SERVED,
            format!("the cluster does not serve the kind of the {to}; install its definition"),
        ),
        (_, Look::OtherScope) => told(
            reason::SCOPE_MISMATCH,
            format!(
                "the scope of the {to} is another one than the description of its commands says; correct scope in target.kinds"
            ),
        ),
        (_, Look::Gone) => told(
            reason::TARGET_REPLACED,
            format!("the {to} to which it is bound is gone; delete this command, and create another one"),
        ),
        (Owner::Target(_), _) => told(reason::QUEUED, "older commands are carried out first"),
    }
}

/// The end of a command whose deadline has passed.
fn overdue(owner: &Owner, has_run: bool) -> Told {
    let what = match owner {
        _ if has_run => "it was carried out, but had not succeeded by then; its effect remains",
        Owner::Target(_) => "it was not carried out in time",
        Owner::None | Owner::Other(_) => "it was not bound to its target by then: see the condition Bound",
    };
    told(reason::DEADLINE_EXCEEDED, format!("its deadline has passed: {what}"))
}

/// Why a newer command, or too many of them, have taken the place of this one, by the record on the target or the end of that one.
fn superseded(observed: &Observed, target: &Target, has_run: bool) -> Option<Told> {
    let own = recent(&observed.command);
    // The status of one that has ended is enough where the record is lost; what its annotation tells, anybody may have written.
    let ended = superseding(&observed.line, &observed.command)
        .filter(|newer| newer.row.has_ended() && newer.row.has_status && !newer.row.is_annotated)
        .map(|newer| recent(newer));
    if let Some(newer) = target.ran.superseding(&own).or(ended.as_ref()) {
        let known = observed.line.iter().find(|other| other.metadata.uid.as_deref() == Some(&newer.uid));
        let newer = match known.and_then(|known| Some((known.resource(), known.metadata.name.as_ref()?))) {
            Some((resource, name)) => format!("the {} {name:?}", resource.kind),
            None => format!("the command with the uid {}", newer.uid),
        };
        let message =
            format!("it had not ended, and {newer} has taken its place; check whether it is still wanted");
        return Some(told(reason::SUPERSEDED, message));
    }
    (!has_run && target.ran.may_have_forgotten(&own)).then(|| {
        told(
            reason::SUPERSEDED,
            "so many newer commands have been carried out that nobody knows whether it was one of those before them",
        )
    })
}

/// What is read by the rules and expressions of a command. Unless it has ended, all of it is known.
fn inputs<'o>(command: &'o Command, target: &'o Target, now: Timestamp) -> Inputs<'o> {
    let object = command.row.object.as_deref().unwrap_or(&Value::Null);
    Inputs { command: object, target: &target.object, ran: json!(target.ran), now: json!(now.to_string()) }
}

/// The outcome of a command that ran. What cannot be determined is still running.
fn outcome(command: &Command, target: &Target, now: Timestamp) -> Option<State> {
    let (run, inputs) = (&command.row.run, inputs(command, target, now));
    if let Ok(Some(failed)) = Rule::first(&run.failed, &inputs) {
        return Some(State::Failed(failed));
    }
    let has_succeeded = run.succeeded.bool(&inputs.variables()).unwrap_or(false);
    has_succeeded.then(|| State::Succeeded(account(command, &inputs, "its target is as it asked")))
}

/// The state of a command that ran and has no outcome yet.
fn running(command: &Command, target: &Target, now: Timestamp) -> State {
    let inputs = inputs(command, target, now);
    State::Running(account(command, &inputs, "it was carried out, and its outcome is awaited"))
}

/// The message is the given one where the kind has none.
fn account(command: &Command, inputs: &Inputs<'_>, message: &str) -> Account {
    let run = &command.row.run;
    Account {
        message: text(run.message.as_ref(), inputs).unwrap_or_else(|| message.to_owned()),
        progress: text(run.progress.as_ref(), inputs),
    }
}

fn text(expression: Option<&Expression>, inputs: &Inputs<'_>) -> Option<String> {
    expression?.optional_text(&inputs.variables()).ok().flatten()
}

/// The state of a command that has not run, whose target is there.
fn turn(observed: &Observed, target: &Target) -> State {
    let kind = &target.resource.kind;
    if target.is_terminating {
        let message = format!("the {kind} is being deleted: it is not carried out");
        return State::Waiting(told(reason::TARGET_TERMINATING, message));
    }
    if let Some(why) = &observed.unknown {
        let message = format!("other commands of the {kind} may be unknown: {why}");
        return State::Waiting(told(reason::COMMANDS_NOT_OBSERVED, message));
    }
    let can_run = |rival: &&Arc<Command>| {
        let is_refused = observed.refused.contains(ObjectId::of(&***rival).uid);
        !is_refused && matches!(by_rules(rival, target, observed.now), State::Due(_))
    };
    let is_its_turn = observed.rivals().is_some_and(|rivals| !rivals.iter().any(can_run));
    if !is_its_turn || is_another_running(observed, target) {
        return State::Waiting(told(reason::QUEUED, "older commands are carried out first"));
    }
    by_rules(&observed.command, target, observed.now)
}

/// Whether a command can run on its target, by the rules of its kind, and how.
fn by_rules(command: &Command, target: &Target, now: Timestamp) -> State {
    let (run, inputs) = (&command.row.run, inputs(command, target, now));
    let state = || {
        if let Some(obstacle) = Rule::first(&run.wait, &inputs)? {
            return Ok(State::Waiting(obstacle));
        }
        if let Some(refusal) = Rule::first(&run.refuse, &inputs)? {
            return Ok(State::Failed(refusal));
        }
        run.patch.render(&inputs).map(State::Due)
    };
    state().unwrap_or_else(|problem| State::Waiting(told(reason::RULE_FAILED, problem)))
}

/// Whether another command has run on the target and not ended, although its status may not say so yet.
fn is_another_running(observed: &Observed, target: &Target) -> bool {
    let own = &observed.command;
    let others = observed.line.iter().filter(|other| is_open(other) && !is_same(other, own));
    let mut running = others.filter(|other| other.row.has_started() || target.proves(other));
    running.any(|other| !(own.row.run.supersedes && order(other, own).is_lt()))
}

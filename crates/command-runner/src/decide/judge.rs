//! The judgement on a command: a patch by which it runs, or what is told of it. Pure.

use std::sync::Arc;

use catena_api::{keys, reason};
use command_kinds::run::{Inputs, Rule, Told};
use jiff::Timestamp;
use operator_templates::Expression;
use operator_watch::ObjectId;
use serde_json::{Value, json};

use crate::{
    command::{Command, Owner, order, recent},
    line::{candidates, is_open, is_same, takes_place},
    observed::{Look, Observed, Target},
};

/// What is told of a command that does not run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Its outcome; `None` before its end.
    pub succeeded: Option<bool>,
    /// The reason.
    pub reason: String,
    /// The message, for people.
    pub message: String,
    /// How far it is, as `2/5`.
    pub progress: Option<String>,
}

impl Verdict {
    fn of(succeeded: Option<bool>, Told { reason, message }: Told) -> Self {
        Self { succeeded, reason, message, progress: None }
    }

    /// The command waits.
    #[must_use]
    pub fn waits(reason: &str, message: impl Into<String>) -> Self {
        Self::of(None, Told { reason: reason.to_owned(), message: message.into() })
    }

    /// The command has failed.
    fn fails(reason: &str, message: impl Into<String>) -> Self {
        Self { succeeded: Some(false), ..Self::waits(reason, message) }
    }
}

/// A chain of checks; the first that applies decides. A command whose turn it is runs by a patch of its target.
///
/// # Errors
/// What is told of one that does not run now.
pub fn judge(observed: &Observed) -> Result<Value, Verdict> {
    let (command, now) = (&observed.command, observed.now);
    let (row, target, has_run) = (&command.row, observed.found(), observed.has_run());
    if let (Some(Err(problem)), Owner::Other(_), false) = (&row.target, &row.owner, has_run) {
        let message = format!("the command cannot be read: {problem}; delete it and create a corrected one");
        return Err(Verdict::fails(reason::MALFORMED, message));
    }
    if let Some(superseded) = target.and_then(|target| superseded(observed, target, has_run)) {
        return Err(superseded);
    }
    let ran = target.filter(|_| has_run).map(|target| outcome(command, target, now));
    match (ran, &row.broken_deadline, target) {
        (Some(ended), ..) if ended.succeeded.is_some() => Err(ended),
        _ if row.is_expired(now) => Err(overdue(&row.owner, has_run)),
        (Some(running), ..) => Err(running),
        (None, Some(problem), _) if !has_run => Err(Verdict::waits(reason::RULE_FAILED, problem.as_str())),
        (None, _, None) => Err(without_target(observed)),
        (None, _, Some(target)) => turn(observed, target),
    }
}

/// Why a command whose target was not looked at, or is not there, waits.
fn without_target(observed: &Observed) -> Verdict {
    let row = &observed.command.row;
    let to = match &row.target {
        Some(Ok(to)) => to,
        Some(Err(problem)) => return Verdict::waits(reason::INVALID_REFERENCE, problem.as_str()),
        None => return Verdict::waits(reason::NOT_BOUND, "it is no command"),
    };
    match (&row.owner, &observed.target) {
        (Owner::None, _) if observed.has_run() => Verdict::waits(
            reason::NOT_BOUND,
            format!(
                "it was carried out, and has lost its owner since: its outcome is told once command-binder has bound it to the {to} again"
            ),
        ),
        (Owner::None, _) => Verdict::waits(
            reason::NOT_BOUND,
            format!(
                "it is carried out once command-binder has bound it to the {to}: see the condition Bound, or its Events"
            ),
        ),
        (Owner::Other(other), _) => Verdict::waits(
            reason::NOT_THE_TARGET,
            format!(
                "it is owned by the {other}, but names the {to}, so that it is not carried out; delete it and create it again"
            ),
        ),
        (_, Look::NotServed) => Verdict::waits(
            reason::KIND_NOT_SERVED,
            format!("the cluster does not serve the kind of the {to}; install its definition"),
        ),
        (_, Look::OtherScope) => Verdict::waits(
            reason::SCOPE_MISMATCH,
            format!(
                "the scope of the {to} is another one than the description of its commands says; correct scope in target.kinds"
            ),
        ),
        (_, Look::Gone) => Verdict::waits(
            reason::TARGET_REPLACED,
            format!("the {to} to which it is bound is gone; delete this command, and create another one"),
        ),
        (Owner::Target(_), _) => queued(),
    }
}

fn queued() -> Verdict {
    Verdict::waits(reason::QUEUED, "other commands of its target are carried out first")
}

/// The end of a command whose deadline has passed.
fn overdue(owner: &Owner, has_run: bool) -> Verdict {
    let what = match owner {
        _ if has_run => "it was carried out, but had not succeeded by then; its effect remains",
        Owner::Target(_) => "it was not carried out in time",
        Owner::None | Owner::Other(_) => "it was not bound to its target by then: see the condition Bound",
    };
    Verdict::fails(reason::DEADLINE_EXCEEDED, format!("its deadline has passed: {what}"))
}

/// Why a newer command, or too many of them, have taken the place of this one, by the record on the target or the end of that one.
fn superseded(observed: &Observed, target: &Target, has_run: bool) -> Option<Verdict> {
    let own = recent(&observed.command);
    // The status of one that has ended is enough where the record is lost, unless the author of a command can write it.
    let has_superseded = |newer: &&Arc<Command>| {
        let is_known = newer.row.ran_to_its_end() && observed.with_status.contains(&newer.kind_id);
        is_known && takes_place(newer, &observed.command)
    };
    let ended = observed.line.iter().rfind(has_superseded).map(|newer| recent(newer));
    let record = || format!("as the annotation {} of its {} says", keys::COMMANDS, target.resource.kind);
    let by_target = target.ran.superseding(&own);
    if let Some(newer) = by_target.or(ended.as_ref()) {
        let known = observed.line.iter().find(|other| other.metadata.uid.as_deref() == Some(&newer.uid));
        let newer = match known.and_then(|known| Some((known.resource(), known.metadata.name.as_ref()?))) {
            Some((resource, name)) => format!("the {} {name:?}", resource.kind),
            None => format!("the command with the uid {}", newer.uid),
        };
        let by_record = by_target.map_or_else(String::new, |_| format!(", {}", record()));
        let message = format!(
            "it had not ended, and {newer} has taken its place{by_record}; check whether it is still wanted"
        );
        return Some(Verdict::fails(reason::SUPERSEDED, message));
    }
    (!has_run && target.ran.may_have_forgotten(&own)).then(|| {
        let message = format!(
            "so many newer commands have been carried out, {}, that nobody knows whether it was one of those before them",
            record()
        );
        Verdict::fails(reason::SUPERSEDED, message)
    })
}

/// What is read by the rules and expressions of a command. Unless it has ended, all of it is known.
fn inputs<'o>(command: &'o Command, target: &'o Target, now: Timestamp) -> Inputs<'o> {
    let object = command.row.object.as_deref().unwrap_or(&Value::Null);
    Inputs { command: object, target: &target.object, ran: json!(target.ran), now: json!(now.to_string()) }
}

/// What is told of a command that ran. What cannot be determined is still running.
fn outcome(command: &Command, target: &Target, now: Timestamp) -> Verdict {
    let (run, inputs) = (&command.row.run, inputs(command, target, now));
    if let Some(failed) = run.failed.iter().find_map(|rule| rule.told(&inputs).ok()?) {
        return Verdict::of(Some(false), failed);
    }
    let (succeeded, reason, message) = if run.succeeded.bool(&inputs.variables()).unwrap_or(false) {
        (Some(true), "Complete", "its target is as it asked")
    } else {
        (None, reason::RUNNING, "it was carried out, and its outcome is awaited")
    };
    let text = |expression: Option<&Expression>| expression?.optional_text(&inputs.variables()).ok()?;
    let message = text(run.message.as_ref()).unwrap_or_else(|| message.to_owned());
    Verdict { succeeded, reason: reason.to_owned(), message, progress: text(run.progress.as_ref()) }
}

/// How a command that has not run, and whose target is there, runs, if it is its turn.
fn turn(observed: &Observed, target: &Target) -> Result<Value, Verdict> {
    let kind = &target.resource.kind;
    if !target.object["metadata"]["deletionTimestamp"].is_null() {
        let message = format!("the {kind} is being deleted: it is not carried out");
        return Err(Verdict::waits(reason::TARGET_TERMINATING, message));
    }
    if let Some(why) = &observed.unknown {
        let message = format!("other commands of the {kind} may be unknown: {why}");
        return Err(Verdict::waits(reason::COMMANDS_NOT_OBSERVED, message));
    }
    let can_run = |rival: &Command| {
        let is_refused = observed.refused.contains(ObjectId::of(rival).uid);
        !is_refused && by_rules(rival, target, observed.now).is_ok()
    };
    let is_own = |candidate: &Command| is_same(candidate, &observed.command);
    let mut candidates = candidates(&observed.line, observed.now).into_iter();
    let next = candidates.find(|candidate| is_own(candidate) || can_run(candidate));
    if !next.is_some_and(|next| is_own(next)) || is_another_running(observed) {
        return Err(queued());
    }
    let patch = by_rules(&observed.command, target, observed.now)?;
    Ok(with_proof(patch, target, &observed.command))
}

/// The patch by which a command can run on its target, by the rules of its kind.
fn by_rules(command: &Command, target: &Target, now: Timestamp) -> Result<Value, Verdict> {
    let (run, inputs) = (&command.row.run, inputs(command, target, now));
    let unclear = |problem: String| Verdict::waits(reason::RULE_FAILED, problem);
    if let Some(obstacle) = Rule::first(&run.wait, &inputs).map_err(unclear)? {
        return Err(Verdict::of(None, obstacle));
    }
    if let Some(refusal) = Rule::first(&run.refuse, &inputs).map_err(unclear)? {
        return Err(Verdict::of(Some(false), refusal));
    }
    run.patch.render(&inputs).map_err(unclear)
}

/// The patch of exactly this state of the target, with the proof: on another state, nothing was decided.
fn with_proof(mut patch: Value, target: &Target, command: &Command) -> Value {
    let metadata = &target.object["metadata"];
    patch["metadata"]["annotations"][keys::COMMANDS] = json!(target.ran.with(recent(command)).to_json());
    for field in ["name", "namespace", "uid", "resourceVersion"] {
        if !metadata[field].is_null() {
            patch["metadata"][field] = metadata[field].clone();
        }
    }
    patch
}

/// Whether another command has run on the target and not ended, although its status may not say so yet.
fn is_another_running(observed: &Observed) -> bool {
    let own = &observed.command;
    let others = observed.line.iter().filter(|other| is_open(other) && !is_same(other, own));
    let mut running = others.filter(|other| other.row.has_started() || observed.proves(other));
    running.any(|other| !(own.row.run.supersedes && order(other, own).is_lt()))
}

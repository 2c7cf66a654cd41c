//! Observed → Action. Pure.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use operator_kit::Watched;

use crate::{
    command::{CommandRow, Finding, Reference},
    kind::{Mode, Scope},
    observe::{Observed, Target},
    status,
};

/// How often a target that is missing is looked up again at the most, should its arrival not be noticed.
const SOONEST: Duration = Duration::from_secs(5);
/// How often at the least.
const LATEST: Duration = Duration::from_secs(300);
/// Events are kept for an hour; what was told of an older command is not told again by every new process.
const TOLD: Duration = Duration::from_secs(3600);

/// One step.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Tie the command to its target, in one write.
    Bind {
        /// The target's uid.
        uid: Box<str>,
    },
    /// Write the condition `Bound`.
    Report(Box<Condition>),
    /// Tell people by an Event.
    Tell(Verdict),
    /// Look again after this time.
    Wait(Duration),
    /// Nothing, until something changes.
    Settle,
}

/// What is to be said of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is bound.
    pub is_bound: bool,
    /// One `PascalCase` word.
    pub reason: &'static str,
    /// What is so, why, and what to do.
    pub message: String,
    /// Whether it may pass by itself.
    pub may_pass: bool,
}

impl Verdict {
    fn refused(reason: &'static str, message: String) -> Self {
        Self { is_bound: false, reason, message, may_pass: false }
    }

    fn waiting(reason: &'static str, message: String) -> Self {
        Self { is_bound: false, reason, message, may_pass: true }
    }
}

enum Judgement {
    Ignore,
    Bind(Box<str>),
    Say(Verdict),
}

pub fn decide(observed: &Observed) -> Action {
    match judge(observed) {
        Judgement::Ignore => Action::Settle,
        Judgement::Bind(uid) => Action::Bind { uid },
        Judgement::Say(verdict) => say(observed, verdict),
    }
}

/// As checks in order; the first that applies decides.
fn judge(observed: &Observed) -> Judgement {
    let command = &observed.command;
    let is_done = matches!(command.row.finding, Finding::NoCommand | Finding::Settled);
    if is_done || command.metadata.deletion_timestamp.is_some() {
        return Judgement::Ignore;
    }
    if let Some(failure) = observed.attempt.failure() {
        return Judgement::Say(Verdict::refused(failure.reason, failure.message.clone()));
    }
    match &command.row.finding {
        Finding::NoCommand | Finding::Settled => Judgement::Ignore,
        Finding::NotYet => Judgement::Say(Verdict::refused(
            "WaitingForOthers",
            "it is bound once what `after` of its kind asks for holds".into(),
        )),
        Finding::Refused(why) => Judgement::Say(Verdict::refused(
            "OwnershipRefused",
            format!(
                "{why}; bind commands of this kind with mode Label, or take the refusal out of its settings"
            ),
        )),
        Finding::Invalid(why) => Judgement::Say(Verdict::refused("InvalidReference", why.to_string())),
        Finding::Target(to) => judge_target(observed, to),
    }
}

fn judge_target(observed: &Observed, to: &Reference) -> Judgement {
    let (command, named) = (&observed.command, named(to));
    if let Err(verdict) = place(command, to) {
        return Judgement::Say(verdict);
    }
    if command.row.settled_owner(to).is_some() {
        return Judgement::Say(bound(command, to));
    }
    let (uid, is_terminating) = match &observed.target {
        None => return Judgement::Ignore,
        Some(Target::Missing) => {
            return Judgement::Say(Verdict::waiting(
                "TargetNotFound",
                format!(
                    "there is no {named}; create it, or delete this command; it is bound as soon as the target is there"
                ),
            ));
        }
        Some(Target::NotServed) => {
            return Judgement::Say(Verdict::waiting(
                "KindNotServed",
                format!(
                    "the cluster does not serve {} {}; install its CustomResourceDefinition, or correct target.kinds in the settings",
                    to.kind.resource.api_version, to.kind.resource.plural
                ),
            ));
        }
        Some(Target::Found { uid, is_terminating }) => (uid, *is_terminating),
    };
    if let Some(other) = other_target(command, to, uid) {
        return Judgement::Say(Verdict::refused(
            "TargetReplaced",
            format!(
                "it is for the {named} with the uid {other}, and now there is another one with the uid {uid}; create a new command for that"
            ),
        ));
    }
    let row = &command.row;
    if row.kind.mode == Mode::Owner && row.owners.iter().any(|owner| *owner.uid == **uid) {
        return Judgement::Say(bound(command, to));
    }
    if is_terminating {
        return Judgement::Say(Verdict::waiting(
            "TargetTerminating",
            format!(
                "the {named} is being deleted; delete this command too, or wait for another target of that name"
            ),
        ));
    }
    let controller = row.owners.iter().find(|owner| owner.controller == Some(true));
    if let Some(controller) = controller.filter(|_| row.kind.controller) {
        return Judgement::Say(Verdict::refused(
            "OwnershipRefused",
            format!(
                "it already has a controller, {} {}, and can have only one; set controller: false for commands of this kind",
                controller.kind, controller.name
            ),
        ));
    }
    if row.kind.mode == Mode::Observe {
        return Judgement::Say(Verdict::refused(
            "WouldBind",
            format!(
                "the {named} would become an owner of it; set mode: Owner for commands of this kind to have it so"
            ),
        ));
    }
    Judgement::Bind(uid.clone())
}

/// The uid of the target that it is for, if that is another one.
fn other_target<'c>(command: &'c Watched<CommandRow>, to: &'c Reference, uid: &str) -> Option<&'c str> {
    let given = to.uid.as_deref();
    let before = command.row.bound_to.as_deref();
    let owner = command.row.owners.iter().find(|owner| to.is_named_by(owner)).map(|owner| owner.uid.as_str());
    [given, before, owner].into_iter().flatten().find(|&other| other != uid)
}

/// Where the target lives: a dependent whose owner is elsewhere is deleted by garbage collection.
pub fn place<'c>(command: &'c Watched<CommandRow>, to: &Reference) -> Result<Option<&'c str>, Verdict> {
    if to.kind.scope == Scope::Cluster {
        return Ok(None);
    }
    let named = named(to);
    match (command.metadata.namespace.as_deref(), to.namespace.as_deref()) {
        (None, _) => Err(Verdict::refused(
            "CrossNamespace",
            format!("it lives outside of namespaces, and the {named} in one: such a target cannot own it"),
        )),
        (Some(own), Some(other)) if own != other => Err(Verdict::refused(
            "CrossNamespace",
            format!(
                "the {named} is in the namespace {other}, and only a target in its own namespace {own} can own it; create the command there"
            ),
        )),
        (own, _) => Ok(own),
    }
}

fn named(to: &Reference) -> String {
    format!("{} {}", to.kind.resource.kind, to.name)
}

fn bound(command: &Watched<CommandRow>, to: &Reference) -> Verdict {
    let message = match command.row.kind.mode {
        Mode::Label => format!("it carries the uid of the {}", named(to)),
        Mode::Owner | Mode::Observe => format!("it is owned by the {}", named(to)),
    };
    Verdict { is_bound: true, reason: "Bound", message, may_pass: false }
}

fn say(observed: &Observed, verdict: Verdict) -> Action {
    let command = &observed.command;
    let age = command.metadata.creation_timestamp.as_ref().map_or(Duration::ZERO, |created| {
        Duration::try_from(observed.now.duration_since(created.0)).unwrap_or_default()
    });
    if observed.can_report {
        if let Some(condition) = status::changed(observed, &verdict) {
            return Action::Report(Box::new(condition));
        }
    } else if !verdict.is_bound
        && observed.attempt.failure().is_none()
        && observed.told != Some(verdict.reason)
        && (verdict.reason != "WouldBind" || age < TOLD)
    {
        return Action::Tell(verdict);
    }
    rest(&verdict, age)
}

/// As long again as it has waited.
pub fn rest(verdict: &Verdict, age: Duration) -> Action {
    if verdict.may_pass { Action::Wait(age.clamp(SOONEST, LATEST)) } else { Action::Settle }
}

#[cfg(test)]
mod tests;

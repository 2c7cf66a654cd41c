//! What is to be said of a command, or done about it. Pure.

use catena_api::keys;
use kube::api::ObjectMeta;
use operator_kit::watch::{ServedKind, Watched};

use crate::{
    command::{CommandRow, Finding, Reference},
    kind::{Mode, Scope},
    observed::{Observed, Target, TargetObject},
};

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

/// What is to be done about a command.
pub(super) enum Judgement {
    /// Nothing.
    Ignore,
    /// Bind it to the target of this kind and uid.
    Bind(ServedKind, Box<str>),
    /// Say this.
    Say(Verdict),
}

/// What is to be said of a command, if there is something: for those who only want to know.
#[must_use]
pub fn verdict(observed: &Observed) -> Option<Verdict> {
    match judge(observed) {
        Judgement::Say(verdict) => Some(verdict),
        Judgement::Ignore | Judgement::Bind(..) => None,
    }
}

/// As checks in order; the first that applies decides.
pub(super) fn judge(observed: &Observed) -> Judgement {
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
        Finding::Unclear(why) => Judgement::Say(Verdict::refused(
            "FilterFailed",
            format!("whether it is a command is not known, so that it is not bound: {why}"),
        )),
        Finding::NotYet(why) => Judgement::Say(Verdict::refused("WaitingForOthers", why.to_string())),
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
    if command.row.proven_target(to, observed.is_label_checked).is_some() {
        return Judgement::Say(bound(&command.row, to));
    }
    let (kind, object) = match &observed.target {
        None => return Judgement::Ignore,
        // What stands for data outlives also the kind of its target.
        Some(Target::NotServed) if command.row.label().is_some() => return Judgement::Ignore,
        Some(Target::NotServed) => {
            return Judgement::Say(Verdict::waiting(
                "KindNotServed",
                format!(
                    "the cluster serves {} in no version; install its CustomResourceDefinition, or correct target.kinds in the settings",
                    format!("{}.{}", to.kind.resource.plural, to.kind.resource.group).trim_end_matches('.')
                ),
            ));
        }
        Some(Target::Served { kind, object }) => (kind, object.as_ref()),
    };
    if let Err(verdict) = place(&command.metadata, to, kind) {
        return Judgement::Say(verdict);
    }
    let Some(TargetObject { uid, is_terminating }) = object else {
        // What stands for data outlives its target, and its label tells of which it was.
        return if command.row.label().is_some() {
            Judgement::Ignore
        } else {
            Judgement::Say(Verdict::waiting(
                "TargetNotFound",
                format!(
                    "there is no {named}; create it, or delete this command; it is bound as soon as the target is there"
                ),
            ))
        };
    };
    if let Some(label) = command.row.label().filter(|label| *label != &**uid) {
        return Judgement::Say(Verdict::refused(
            "TargetReplaced",
            format!(
                "its label {} names the uid {label}, and the {named} has the uid {uid}: it was for one of that name that is gone, or somebody else wrote the label; remove the label to have it bound to the {named} that is there",
                keys::TARGET_UID
            ),
        ));
    }
    if let Some(other) = other_target(command, to, uid) {
        return Judgement::Say(Verdict::refused(
            "TargetReplaced",
            format!(
                "it is for the {named} with the uid {other}, and now there is another one with the uid {uid}; create a new command for that"
            ),
        ));
    }
    let row = &command.row;
    let is_owned = row.kind.mode == Mode::Owner && row.owners.iter().any(|owner| *owner.uid == **uid);
    if is_owned || row.label().is_some() {
        return Judgement::Say(bound(row, to));
    }
    if *is_terminating {
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
    Judgement::Bind(kind.clone(), uid.clone())
}

/// The uid of the target that it is for, if that is another one.
fn other_target<'c>(command: &'c Watched<CommandRow>, to: &'c Reference, uid: &str) -> Option<&'c str> {
    let given = to.uid.as_deref();
    let before = command.row.bound_to.as_deref();
    let owner = command.row.owners.iter().find(|owner| to.is_named_by(owner)).map(|owner| owner.uid.as_str());
    [given, before, owner].into_iter().flatten().find(|&other| other != uid)
}

/// Where the target lives, if it can own a command with this metadata: a dependent whose owner is elsewhere is deleted by
/// garbage collection.
pub fn place<'c>(
    metadata: &'c ObjectMeta,
    to: &Reference,
    kind: &ServedKind,
) -> Result<Option<&'c str>, Verdict> {
    let named = named(to);
    if to.kind.scope.is_some_and(|said| (said == Scope::Namespaced) != kind.is_namespaced) {
        let (lives, said) = if kind.is_namespaced { ("in", "outside of") } else { ("outside of", "in") };
        return Err(Verdict::refused(
            "ScopeMismatch",
            format!(
                "the {named} lives {lives} namespaces, and the settings say {said} them, as which an admission policy asks for rights on it; correct scope in target.kinds"
            ),
        ));
    }
    if !kind.is_namespaced {
        return Ok(None);
    }
    match (metadata.namespace.as_deref(), to.namespace.as_deref()) {
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

fn bound(row: &CommandRow, to: &Reference) -> Verdict {
    let message = match row.kind.mode {
        Mode::Label => format!("it carries the uid of the {}", named(to)),
        Mode::Owner | Mode::Observe => format!("it is owned by the {}", named(to)),
    };
    Verdict { is_bound: true, reason: "Bound", message, may_pass: false }
}

//! The judgement on a command that names a target: a step, or a verdict that is told. Pure.

use catena_api::{keys, reason};
use command_kinds::{CommandKind, Mode, Reference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::discovery::{ApiResource, Scope};
use operator_watch::DynamicRow;

use super::Action;
use crate::{
    command::CommandRow,
    observed::{Observed, Target, TargetObject},
    place::place,
    verdict::Verdict,
};

/// A chain of checks of a command and its target; the first that applies decides. Where nothing is to be done, a verdict is told.
pub(super) fn judge(observed: &Observed, to: &Reference) -> Result<Action, Verdict> {
    let command = &observed.command;
    if let Some(owner) = &observed.refreshed {
        return Ok(Action::Refresh(owner.clone()));
    }
    if command.row.proven_target(to, observed.is_label_checked).is_some() {
        return Err(bound(&command.row, to));
    }
    let (kind, scope, object) = match &observed.target {
        None => return Ok(Action::Settle),
        // A command that represents data outlives even the kind of its target.
        Some(Target::NotServed) if command.row.label().is_some() => return Ok(Action::Settle),
        Some(Target::NotServed) => {
            return Err(Verdict::waiting(
                reason::KIND_NOT_SERVED,
                format!(
                    "the cluster does not serve {} in any version; install its CustomResourceDefinition, or correct target.kinds in the settings",
                    format!("{}.{}", to.kind.resource.plural, to.kind.resource.group).trim_end_matches('.')
                ),
            ));
        }
        Some(Target::Served { kind: (kind, scope), object }) => (kind, scope, object.as_ref()),
    };
    place(&command.metadata, to, *scope == Scope::Namespaced)?;
    let Some(TargetObject { uid, is_terminating, created }) = object else {
        // A command that represents data outlives its target, and its label still names it.
        return if command.row.label().is_some() { Ok(Action::Settle) } else { Err(missing(command, to)) };
    };
    if let Some(label) = command.row.label().filter(|label| *label != &**uid) {
        let made = command.metadata.creation_timestamp.as_ref().map(|time| time.0);
        // It was bound to a former target of that name, and outlives it like a missing one.
        if made.zip(*created).is_some_and(|(command, target)| command < target) {
            return Ok(Action::Settle);
        }
        return Err(Verdict::refused(
            reason::TARGET_REPLACED,
            format!(
                "its label {} has the uid {label}, but the {to} has the uid {uid}, and was there when this command was created: somebody else set the label, or the command is a copy; if it is for the current {to}, remove the label to have it bound",
                keys::TARGET_UID
            ),
        ));
    }
    if let Some(other) = other_target(command, to, uid) {
        let is_recorded = command.row.bound_to.as_deref() == Some(other);
        let message = if is_recorded {
            format!(
                "its annotation {} has the uid {other}, but the {to} has the uid {uid}: either it was for a former object of that name, or it is a copy of another command; create a new command without that annotation",
                keys::BOUND_TO
            )
        } else {
            format!(
                "it is for the {to} with the uid {other}, but the current one has the uid {uid}; create a new command for that"
            )
        };
        return Err(Verdict::refused(reason::TARGET_REPLACED, message));
    }
    let row = &command.row;
    let is_owned = row.kind.mode != Mode::Label && row.owners.iter().any(|owner| *owner.uid == **uid);
    if is_owned || row.label().is_some() {
        return Err(bound(row, to));
    }
    if *is_terminating {
        return Err(Verdict::waiting(
            reason::TARGET_TERMINATING,
            format!(
                "the {to} is being deleted; delete this command too, or wait for another target of that name"
            ),
        ));
    }
    let refused = match (row.kind.mode, harm_of_ownership(row, to)) {
        (Mode::Label, _) | (Mode::Owner, None) => return Ok(Action::Bind(owner(&row.kind, kind, to, uid))),
        (Mode::Owner, Some(harm)) => {
            let message = format!("{harm}; bind commands of this kind with mode: Label");
            Verdict::refused(reason::OWNERSHIP_REFUSED, message)
        }
        (Mode::Observe, None) => Verdict::refused(
            reason::WOULD_BIND,
            format!("the {to} would become its owner; set mode: Owner for commands of this kind to bind it"),
        ),
        (Mode::Observe, Some(harm)) => Verdict::refused(
            reason::WOULD_BIND,
            format!("{harm}; set mode: Label for commands of this kind to bind it without that"),
        ),
    };
    Err(refused)
}

/// The harm if the target became an owner.
fn harm_of_ownership(row: &CommandRow, to: &Reference) -> Option<String> {
    if let Some(controller) = row.owners.iter().find(|owner| owner.controller == Some(true)) {
        return Some(format!(
            "the {} {} is its controller, and the garbage collector deletes an object only when all its owners are gone: owned by the {to} too, it would outlive the {to}",
            controller.kind, controller.name
        ));
    }
    let what = row.deletes_data.as_ref()?;
    Some(format!("it has {what}: owned by the {to}, it would be deleted with it, and that may delete data"))
}

fn missing(command: &DynamicRow<CommandRow>, to: &Reference) -> Verdict {
    let message = match other_target(command, to, "") {
        Some(uid) => format!(
            "there is no {to}, and it is only for the one with the uid {uid}; delete this command, and create a new one for another {}",
            to.kind.resource.kind
        ),
        None => format!(
            "there is no {to}; create it, or delete this command; it is bound as soon as the target exists"
        ),
    };
    Verdict::waiting(reason::TARGET_NOT_FOUND, message)
}

/// The uid of the target that it was created for, if that is another one.
fn other_target<'c>(command: &'c DynamicRow<CommandRow>, to: &'c Reference, uid: &str) -> Option<&'c str> {
    let given = to.uid.as_deref();
    let before = command.row.bound_to.as_deref();
    let owner = command.row.owners.iter().find(|owner| to.is_named_by(owner)).map(|owner| owner.uid.as_str());
    [given, before, owner].into_iter().flatten().find(|&other| other != uid)
}

/// The target as an owner. False values are omitted, as everywhere else.
fn owner(kind: &CommandKind, target: &ApiResource, to: &Reference, uid: &str) -> OwnerReference {
    OwnerReference {
        api_version: target.api_version.clone(),
        kind: target.kind.clone(),
        name: to.name.to_string(),
        uid: uid.to_owned(),
        controller: kind.controller.then_some(true),
        block_owner_deletion: kind.block_owner_deletion.then_some(true),
    }
}

fn bound(row: &CommandRow, to: &Reference) -> Verdict {
    let message = match row.kind.mode {
        Mode::Label => format!("it carries the uid of the {to}"),
        Mode::Owner | Mode::Observe => format!("it is owned by the {to}"),
    };
    // A version in which the target is not watched may cease to be served at any time.
    Verdict { is_bound: true, reason: "Bound", message, may_pass: !row.is_in_watched_version() }
}

//! A command, pruned to the input of a decision: its expressions are evaluated when it arrives.

use std::{collections::BTreeMap, sync::Arc};

use catena_api::{command::BOUND, keys, reason};
use command_kinds::{CommandKind, Mode, Object, Reference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};
use operator_templates::Expression;
use operator_watch::PrunedObject;
use serde_json::Value;

use crate::verdict::Verdict;

/// The row of a command.
#[derive(Clone, Debug)]
pub struct CommandRow {
    /// Its kind.
    pub kind: Arc<CommandKind>,
    /// The finding about its reference.
    pub finding: Finding,
    /// Its owners.
    pub owners: Box<[OwnerReference]>,
    /// The uid of the target to which it was bound.
    pub bound_to: Option<Box<str>>,
    /// Whether the map for the record of its target exists.
    pub has_map: bool,
    /// The part of it by which its deletion may delete data; looked for only while nothing is written.
    pub deletes_data: Option<Box<str>>,
    /// The condition `Bound`.
    pub condition: Option<Box<Condition>>,
}

/// The finding about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is no command, or it is bound and needs no report. Most commands are, so nothing else is kept of them.
    Settled,
    /// It is not to be bound, or not yet.
    Unfit(Verdict),
    /// Its target.
    Target(Reference),
}

impl CommandRow {
    /// Prunes an object of the kind.
    pub fn of(kind: &Arc<CommandKind>, object: PrunedObject) -> Self {
        let PrunedObject { metadata, data } = &object;
        let record = |map: &Option<BTreeMap<String, String>>, key: &str| {
            (map.as_ref().and_then(|map| map.get(key)).map(|uid| uid.as_str().into()), map.is_some())
        };
        let (bound_to, has_map): (Option<Box<str>>, _) = match kind.mode {
            Mode::Label => record(&metadata.labels, keys::TARGET_UID),
            Mode::Owner | Mode::Observe => record(&metadata.annotations, keys::BOUND_TO),
        };
        let owners: Box<[OwnerReference]> = metadata.owner_references.clone().unwrap_or_default().into();
        let finalizer =
            metadata.finalizers.iter().flatten().find(|&f| kind.refuse_finalizers.contains(f)).cloned();
        let deletes_data = if kind.mode == Mode::Observe { deletes_data(metadata, data) } else { None };
        let condition = data
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .and_then(|list| list.iter().find(|condition| condition["type"] == BOUND))
            .and_then(|condition| serde_json::from_value(condition.clone()).ok());
        let generation = metadata.generation;
        let data = kind.whole(object);
        let finding = Finding::Settled;
        let mut row =
            Self { kind: kind.clone(), finding, owners, bound_to, has_map, deletes_data, condition };
        row.finding = match find(kind, &data, finalizer, row.binding()) {
            Ok(None) => Finding::Settled,
            Ok(Some(to))
                if row.proven_target(&to, false).is_some()
                    && row.says_so(generation)
                    && row.is_in_watched_version() =>
            {
                return row.settled();
            }
            Ok(Some(to)) => Finding::Target(to),
            Err(verdict) => Finding::Unfit(verdict),
        };
        row
    }

    /// Whether it reports that it is bound, if commands of its kind do so.
    fn says_so(&self, generation: Option<i64>) -> bool {
        let says =
            |condition: &Condition| condition.status == "True" && condition.observed_generation == generation;
        !self.kind.reports_bound || self.condition.as_deref().is_some_and(says)
    }

    fn settled(self) -> Self {
        let Self { kind, has_map, .. } = self;
        let owners = Box::default();
        let finding = Finding::Settled;
        Self { kind, finding, owners, bound_to: None, has_map, deletes_data: None, condition: None }
    }

    /// The target's uid, if the command shows that it is bound already. A label proves nothing until it is compared
    /// with the target, because anybody can set one; a wrong owner would lead to the deletion of the command.
    #[must_use]
    pub fn proven_target(&self, to: &Reference, is_label_checked: bool) -> Option<&str> {
        let uid = self.bound_to.as_deref()?;
        let is_meant = to.uid.as_deref().is_none_or(|meant| meant == uid);
        let is_tied = match self.kind.mode {
            Mode::Label => is_label_checked,
            Mode::Owner => self.owners.iter().any(|owner| owner.uid == uid && to.is_named_by(owner)),
            Mode::Observe => false,
        };
        (is_meant && is_tied).then_some(uid)
    }

    /// The owner reference that bound it.
    #[must_use]
    pub fn binding(&self) -> Option<&OwnerReference> {
        let uid = self.bound_to.as_deref().filter(|_| self.kind.mode == Mode::Owner)?;
        self.owners.iter().find(|owner| owner.uid == uid)
    }

    /// Whether the reference that bound it names a version in which its target is watched. Only another one may not be served.
    #[must_use]
    pub fn is_in_watched_version(&self) -> bool {
        self.binding().is_none_or(|owner| {
            let mut watched = self.kind.watched_targets.iter();
            watched.any(|target| target.kind == owner.kind && target.api_version == owner.api_version)
        })
    }

    /// The uid in the label of a command that is bound by one.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.bound_to.as_deref().filter(|_| self.kind.mode == Mode::Label)
    }
}

/// The finalizer, or else the policy, by which the deletion of an object may delete data.
fn deletes_data(metadata: &ObjectMeta, data: &Value) -> Option<Box<str>> {
    if let Some(finalizer) = metadata.finalizers.iter().flatten().next() {
        return Some(format!("the finalizer {finalizer}").into());
    }
    let policy = data.pointer("/spec/deletionPolicy").and_then(Value::as_str)?;
    (!matches!(policy, "Retain" | "Orphan")).then(|| format!("spec.deletionPolicy {policy}").into())
}

/// A chain of checks; the first that applies decides. `None` is for what is no command. An expression without a value, because of
/// a missing field or another reason, decides against binding, and is reported; for a command that is bound already by this owner,
/// it is ignored.
fn find(
    kind: &CommandKind,
    object: &Value,
    finalizer: Option<String>,
    owner: Option<&OwnerReference>,
) -> Result<Option<Reference>, Verdict> {
    let object = Object(object);
    let holds = |expression: &Expression, if_ignored: bool| match object.holds(expression) {
        Err(_) if owner.is_some() => Ok(if_ignored),
        held => held.map_err(|error| error.to_string()),
    };
    let is_true =
        |expression: Option<&Expression>| expression.map_or(Ok(true), |expression| holds(expression, true));
    // Nobody binds commands of a kind without targets.
    let Some(target) = &kind.target else { return Ok(None) };
    let is_command = is_true(kind.filter.as_ref()).map_err(|error| {
        let message = "it is not bound, because it cannot be determined whether it is a command";
        Verdict::refused(reason::FILTER_FAILED, format!("{message}: {error}"))
    })?;
    if !is_command {
        return Ok(None);
    }
    if let Some(finalizer) = finalizer {
        let why = format!(
            "it has the finalizer {finalizer}, which refuseFinalizers lists: deleting it with its target would do harm"
        );
        return Err(refused(owner, &why));
    }
    for refusal in &kind.refuse {
        let applies = holds(&refusal.when, false).map_err(|error| {
            refused(owner, &format!("it cannot be determined whether it may be bound: {error}"))
        })?;
        if applies {
            return Err(refused(owner, &refusal.message));
        }
    }
    let not_yet = |why: &str| Verdict::refused(reason::WAITING_FOR_OTHERS, why.to_owned());
    let is_due = is_true(kind.after.as_ref())
        .map_err(|error| not_yet(&format!("it cannot be determined whether it may be bound yet: {error}")))?;
    if !is_due && owner.is_none() {
        return Err(not_yet("it is bound once the expression `after` of its kind is true"));
    }
    let read = target.read(&object).map(Some);
    read.map_err(|problem| Verdict::refused(reason::INVALID_REFERENCE, problem))
}

/// The refusal to bind a command, and what to do where an owner has bound it already.
fn refused(owner: Option<&OwnerReference>, why: &str) -> Verdict {
    let message = match owner {
        Some(owner) => format!(
            "{why}; it was bound before, and is still deleted with the {} {}: remove that owner reference to keep it",
            owner.kind, owner.name
        ),
        None => format!(
            "{why}; bind commands of this kind with mode: Label, or remove the refusal from its settings"
        ),
    };
    Verdict::refused(reason::OWNERSHIP_REFUSED, message)
}

//! A command, trimmed to the input of a decision: its expressions are evaluated when it arrives.

use std::{collections::BTreeMap, sync::Arc};

use catena_api::{command::BOUND, keys};
use command_kinds::{CommandKind, Mode, Object, Reference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};
use operator_watch::PrunedObject;
use serde_json::Value;

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
    /// It is not a command.
    NoCommand,
    /// It is unknown whether it is one.
    Unclear(Box<str>),
    /// It is bound, and needs no report. Most commands are, so nothing else is kept of them.
    Settled,
    /// It is not to be bound yet.
    NotYet(Box<str>),
    /// It must not be bound.
    Refused(Box<str>),
    /// Its reference is invalid.
    Invalid(Box<str>),
    /// Its target.
    Target(Reference),
}

impl CommandRow {
    /// Trims an object of the kind.
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
        let finalizer = metadata.finalizers.iter().flatten().find(|&f| kind.refuse_finalizers.contains(f));
        let refused = finalizer.map(|finalizer| {
            format!("it has the finalizer {finalizer}, which refuseFinalizers lists: deleting it with its target would do harm")
        });
        let deletes_data = if kind.mode == Mode::Observe { deletes_data(metadata, data) } else { None };
        let condition = data
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .and_then(|list| list.iter().find(|condition| condition["type"] == BOUND))
            .and_then(|condition| serde_json::from_value(condition.clone()).ok());
        let generation = metadata.generation;
        let data = kind.whole(object);
        let is_owned = bound_to.as_deref().is_some_and(|to| owners.iter().any(|owner| owner.uid == to));
        let finding = find(kind, &data, refused, kind.mode == Mode::Owner && is_owned);
        let row = Self { kind: kind.clone(), finding, owners, bound_to, has_map, deletes_data, condition };
        match &row.finding {
            Finding::Target(to)
                if row.proven_target(to, false).is_some()
                    && row.says_so(generation)
                    && row.is_in_watched_version() =>
            {
                row.settled()
            }
            _ => row,
        }
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

/// A chain of checks; the first that applies decides. An expression without a value, because of a missing field or
/// another reason, decides against binding, and is reported; for a command that is bound already, it is ignored.
fn find(kind: &CommandKind, object: &Value, refused: Option<String>, is_bound: bool) -> Finding {
    let object = Object(object);
    match kind.filter.as_ref().map(|filter| object.holds(filter)) {
        None | Some(Ok(true)) => {}
        Some(Ok(false)) => return Finding::NoCommand,
        Some(Err(_)) if is_bound => {}
        Some(Err(error)) => return Finding::Unclear(error.to_string().into()),
    }
    if let Some(refused) = refused {
        return Finding::Refused(refused.into());
    }
    for refusal in &kind.refuse {
        match object.holds(&refusal.when) {
            Ok(false) => {}
            Ok(true) => return Finding::Refused(refusal.message.as_str().into()),
            Err(_) if is_bound => {}
            Err(error) => {
                return Finding::Refused(
                    format!("it cannot be determined whether it may be bound: {error}").into(),
                );
            }
        }
    }
    match kind.after.as_ref().map(|after| object.holds(after)) {
        None | Some(Ok(true)) => {}
        Some(Ok(false)) => {
            return Finding::NotYet("it is bound once the expression `after` of its kind is true".into());
        }
        Some(Err(_)) if is_bound => {}
        Some(Err(error)) => {
            return Finding::NotYet(
                format!("it cannot be determined whether it may be bound yet: {error}").into(),
            );
        }
    }
    let target = kind.target.as_ref().map(|target| target.read(&object));
    match target {
        Some(Ok(target)) => Finding::Target(target),
        Some(Err(problem)) => Finding::Invalid(problem.into()),
        // Nobody binds commands of such a kind.
        None => Finding::NoCommand,
    }
}

//! A command, trimmed to the input of a decision: its expressions are evaluated when it arrives.

use std::{
    collections::BTreeMap,
    fmt::{self, Display},
    sync::Arc,
};

use catena_api::{command::BOUND, keys};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, OwnerReference};
use operator_templates::{Expression, ExpressionError, is_object_name};
use operator_watch::TrimmedObject;
use serde_json::{Value, json};

use crate::kind::{CommandKind, Mode, TargetKind, TargetReference};

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

/// The target that a command refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The target's kind.
    pub kind: Arc<TargetKind>,
    /// Its name, fit for a path.
    pub name: Box<str>,
    /// Its namespace, if it is set.
    pub namespace: Option<Box<str>>,
    /// Its uid, if it is set.
    pub uid: Option<Box<str>>,
}

impl CommandRow {
    /// Trims an object of the kind.
    pub fn of(kind: &Arc<CommandKind>, object: TrimmedObject) -> Self {
        let TrimmedObject { mut metadata, mut data } = object;
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
        let deletes_data = if kind.mode == Mode::Observe { deletes_data(&metadata, &data) } else { None };
        let condition = data
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .and_then(|list| list.iter().find(|condition| condition["type"] == BOUND))
            .and_then(|condition| serde_json::from_value(condition.clone()).ok());
        let generation = metadata.generation;
        let namespace = metadata.namespace.take();
        // The items of a list of a built-in kind have no version of their own.
        if data["apiVersion"].is_null() {
            data["apiVersion"] = json!(kind.resource.api_version);
        }
        data["kind"] = json!(kind.resource.kind);
        data["metadata"] = json!(metadata);
        if let Some(namespace) = namespace {
            data["metadata"]["namespace"] = namespace.into();
        }
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

impl Reference {
    /// Whether an owner has the target's kind and name.
    #[must_use]
    pub fn is_named_by(&self, owner: &OwnerReference) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let resource = &self.kind.resource;
        (group, &*owner.kind, &*owner.name) == (&resource.group, &resource.kind, &self.name)
    }
}

/// Kind and name, for messages.
impl Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.resource.kind, self.name)
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
    reference(kind, &object).unwrap_or_else(|error| Finding::Invalid(error.to_string().into()))
}

fn reference(kind: &CommandKind, object: &Object) -> Result<Finding, ExpressionError> {
    let fields = &kind.target;
    let invalid = |text: String| Ok(Finding::Invalid(text.into()));
    let Some(name) = object.text(Some(&fields.name))? else {
        return invalid(format!("it names no target: `{}` is empty; set that field", fields.name.source()));
    };
    if !is_object_name(&name) {
        return invalid(format!(
            "it names the target {name:?}, which is not a valid object name; correct that field"
        ));
    }
    let namespace = object.text(fields.namespace.as_ref())?;
    if let Some(namespace) = namespace.as_ref().filter(|namespace| !is_object_name(namespace)) {
        return invalid(format!(
            "it names the namespace {namespace:?}, which is not a valid name; correct that field"
        ));
    }
    let target = match target_kind(fields, object)? {
        Ok(target) => target,
        Err(problem) => return invalid(problem),
    };
    Ok(Finding::Target(Reference {
        kind: target,
        name: name.into(),
        namespace: namespace.map(Into::into),
        uid: object.text(fields.uid.as_ref())?.map(Into::into),
    }))
}

/// The kind of the target. If the kind is not set, the first one applies; if the group is not set, there must be no
/// choice.
fn target_kind(
    fields: &TargetReference,
    object: &Object,
) -> Result<Result<Arc<TargetKind>, String>, ExpressionError> {
    let kind = object.text(fields.kind.as_ref())?;
    // An empty string is the core group, as everywhere in Kubernetes.
    let group = object.given(fields.group.as_ref())?;
    let fits = |found: &&Arc<TargetKind>| {
        kind.as_ref().is_none_or(|wanted| *wanted == found.resource.kind)
            && group.as_ref().is_none_or(|wanted| *wanted == found.resource.group)
    };
    let mut fitting = fields.kinds.iter().filter(fits);
    let Some(target) = fitting.next() else {
        let known: Vec<_> = fields.kinds.iter().map(|kind| display(kind)).collect();
        let kind = kind.map_or_else(String::new, |kind| format!(" of the kind {kind:?}"));
        let group = match group.as_deref() {
            None => String::new(),
            Some("") => " of the core group".into(),
            Some(group) => format!(" of the group {group:?}"),
        };
        return Ok(Err(format!(
            "it names a target{kind}{group}, but commands of this kind can only have: {}",
            known.join(", ")
        )));
    };
    let other = fitting.find(|other| other.resource.kind == target.resource.kind);
    Ok(match (other, &fields.group) {
        (Some(other), Some(group)) => Err(format!(
            "it names a target that can be {} or {}, because target.group, `{}`, is empty; set that field, to an empty string for the core group",
            display(target),
            display(other),
            group.source()
        )),
        _ => Ok(target.clone()),
    })
}

fn display(kind: &TargetKind) -> String {
    let resource = &kind.resource;
    if resource.group.is_empty() {
        format!("{} (core)", resource.kind)
    } else {
        format!("{}.{}", resource.kind, resource.group)
    }
}

/// The object that expressions read. If an expression only names a field, a missing field counts as not set; any other
/// expression that reads a missing field has no value.
struct Object<'o>(&'o Value);

impl Object<'_> {
    /// Text that is not empty.
    fn text(&self, expression: Option<&Expression>) -> Result<Option<String>, ExpressionError> {
        Ok(self.given(expression)?.filter(|text| !text.is_empty()))
    }

    fn given(&self, expression: Option<&Expression>) -> Result<Option<String>, ExpressionError> {
        let Some(expression) = expression else { return Ok(None) };
        match expression.optional_text(&[("object", self.0)]) {
            Err(error) if error.missing().is_some() && expression.is_path() => Ok(None),
            text => text,
        }
    }

    fn holds(&self, expression: &Expression) -> Result<bool, ExpressionError> {
        expression.bool(&[("object", self.0)])
    }
}

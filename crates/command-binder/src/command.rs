//! A command, cut down to what a decision needs: its expressions are evaluated when it comes in.

use std::{collections::BTreeMap, sync::Arc};

use catena_api::{command::BOUND, keys};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use operator_kit::{Expression, ExpressionError, TrimmedObject};
use serde_json::{Value, json};

use crate::kind::{CommandKind, Mode, TargetKind};

/// What is kept of a command.
#[derive(Clone, Debug)]
pub struct CommandRow {
    /// Its kind.
    pub kind: Arc<CommandKind>,
    /// What it refers to.
    pub finding: Finding,
    /// Who owns it.
    pub owners: Box<[OwnerReference]>,
    /// The uid of the target that it was bound to.
    pub bound_to: Option<Box<str>>,
    /// Whether there is a map that the record of its target goes into.
    pub has_map: bool,
    /// The condition `Bound`.
    pub condition: Option<Box<Condition>>,
}

/// What was found in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// It is none.
    NoCommand,
    /// It is bound, and nothing is to be said of it: most are, so that nothing else is kept of them.
    Settled,
    /// It is not to be bound yet.
    NotYet,
    /// It must not be bound.
    Refused(Box<str>),
    /// Its reference cannot be used.
    Invalid(Box<str>),
    /// Its target.
    Target(Reference),
}

/// What a command refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The target's kind.
    pub kind: Arc<TargetKind>,
    /// Its name, fit for a path.
    pub name: Box<str>,
    /// Its namespace where it is given.
    pub namespace: Option<Box<str>>,
    /// Its uid where it is given.
    pub uid: Option<Box<str>>,
}

impl CommandRow {
    /// What is kept of an object of the kind.
    pub fn of(kind: &Arc<CommandKind>, object: TrimmedObject) -> Self {
        let TrimmedObject { mut metadata, mut data } = object;
        let record = |map: &Option<BTreeMap<String, String>>, key: &str| {
            (map.as_ref().and_then(|map| map.get(key)).map(|uid| uid.as_str().into()), map.is_some())
        };
        let (bound_to, has_map) = match kind.mode {
            Mode::Label => record(&metadata.labels, keys::TARGET_UID),
            Mode::Owner | Mode::Observe => record(&metadata.annotations, keys::BOUND_TO),
        };
        let owners = metadata.owner_references.clone().unwrap_or_default().into();
        let finalizer = metadata.finalizers.iter().flatten().find(|&f| kind.refuse_finalizers.contains(f));
        let refused = finalizer.map(|finalizer| {
            format!("it carries the finalizer {finalizer}, which refuseFinalizers names: deleting it with its target would do harm")
        });
        let condition = data
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .and_then(|list| list.iter().find(|condition| condition["type"] == BOUND))
            .and_then(|condition| serde_json::from_value(condition.clone()).ok());
        let generation = metadata.generation;
        let namespace = metadata.namespace.take();
        data["apiVersion"] = json!(kind.resource.api_version);
        data["kind"] = json!(kind.resource.kind);
        data["metadata"] = json!(metadata);
        if let Some(namespace) = namespace {
            data["metadata"]["namespace"] = namespace.into();
        }
        let finding = find(kind, &data, refused);
        let row = Self { kind: kind.clone(), finding, owners, bound_to, has_map, condition };
        match &row.finding {
            Finding::Target(to) if row.settled_owner(to).is_some() && row.says_so(generation) => {
                row.settled()
            }
            _ => row,
        }
    }

    /// Whether it says that it is bound, if commands of its kind say so.
    fn says_so(&self, generation: Option<i64>) -> bool {
        let says =
            |condition: &Condition| condition.status == "True" && condition.observed_generation == generation;
        !self.kind.reports_bound || self.condition.as_deref().is_some_and(says)
    }

    fn settled(self) -> Self {
        let Self { kind, has_map, .. } = self;
        let owners = Box::default();
        Self { kind, finding: Finding::Settled, owners, bound_to: None, has_map, condition: None }
    }

    /// The target's uid, where the command shows that it is bound already.
    pub fn settled_owner(&self, to: &Reference) -> Option<&str> {
        let uid = self.bound_to.as_deref()?;
        let is_meant = to.uid.as_deref().is_none_or(|meant| meant == uid);
        let is_tied = match self.kind.mode {
            Mode::Label => true,
            Mode::Owner => self.owners.iter().any(|owner| owner.uid == uid && to.is_named_by(owner)),
            Mode::Observe => false,
        };
        (is_meant && is_tied).then_some(uid)
    }
}

impl Reference {
    /// Whether an owner is of the target's kind and name.
    pub fn is_named_by(&self, owner: &OwnerReference) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        let resource = &self.kind.resource;
        (group, &*owner.kind, &*owner.name) == (&resource.group, &resource.kind, &self.name)
    }
}

/// As checks in order; the first that applies decides.
fn find(kind: &CommandKind, object: &Value, refused: Option<String>) -> Finding {
    let object = Object(object);
    let attempt = || {
        if !object.holds(kind.filter.as_ref(), true)? {
            return Ok(Finding::NoCommand);
        }
        if let Some(refused) = refused {
            return Ok(Finding::Refused(refused.into()));
        }
        for refusal in &kind.refuse {
            if object.holds(Some(&refusal.when), false)? {
                return Ok(Finding::Refused(refusal.message.as_str().into()));
            }
        }
        if !object.holds(kind.after.as_ref(), true)? {
            return Ok(Finding::NotYet);
        }
        reference(kind, &object)
    };
    attempt().unwrap_or_else(|error: ExpressionError| Finding::Invalid(error.to_string().into()))
}

fn reference(kind: &CommandKind, object: &Object) -> Result<Finding, ExpressionError> {
    let fields = &kind.target;
    let invalid = |text: String| Ok(Finding::Invalid(text.into()));
    let Some(name) = object.text(Some(&fields.name))? else {
        return invalid(format!(
            "it names no target: `{}` gives nothing; set that field",
            fields.name.source()
        ));
    };
    if !is_name(&name) {
        return invalid(format!(
            "it names the target {name:?}, which is no name of an object; correct that field"
        ));
    }
    let namespace = object.text(fields.namespace.as_ref())?;
    if let Some(namespace) = namespace.as_ref().filter(|namespace| !is_name(namespace)) {
        return invalid(format!(
            "it names the namespace {namespace:?}, which is no name; correct that field"
        ));
    }
    let (wanted_kind, wanted_group) =
        (object.text(fields.kind.as_ref())?, object.text(fields.group.as_ref())?);
    let fits = |found: &&Arc<TargetKind>| {
        wanted_kind.as_ref().is_none_or(|wanted| *wanted == found.resource.kind)
            && wanted_group.as_ref().is_none_or(|wanted| *wanted == found.resource.group)
    };
    let Some(target) = fields.kinds.iter().find(fits) else {
        let known: Vec<_> = fields.kinds.iter().map(|kind| display(kind)).collect();
        let wanted = [wanted_kind, wanted_group].into_iter().flatten().collect::<Vec<_>>().join(".");
        return invalid(format!(
            "it names a target of the kind {wanted:?}, and commands of this kind can have: {}",
            known.join(", ")
        ));
    };
    Ok(Finding::Target(Reference {
        kind: target.clone(),
        name: name.into(),
        namespace: namespace.map(Into::into),
        uid: object.text(fields.uid.as_ref())?.map(Into::into),
    }))
}

fn display(kind: &TargetKind) -> String {
    let resource = &kind.resource;
    if resource.group.is_empty() {
        resource.kind.clone()
    } else {
        format!("{}.{}", resource.kind, resource.group)
    }
}

/// Whether a text can stand in a URL's path as the name of an object: a GET of an empty name is a list.
fn is_name(name: &str) -> bool {
    let is_taken = |character: char| character.is_ascii_alphanumeric() || "-._:@~+=".contains(character);
    !matches!(name, "" | "." | "..") && name.len() <= 253 && name.chars().all(is_taken)
}

/// The object that expressions read. A field that is not there counts as null, and null as false.
struct Object<'o>(&'o Value);

impl Object<'_> {
    fn text(&self, expression: Option<&Expression>) -> Result<Option<String>, ExpressionError> {
        let Some(expression) = expression else { return Ok(None) };
        match expression.optional_text(&[("object", self.0)]) {
            Err(ExpressionError::Missing { .. }) => Ok(None),
            text => Ok(text?.filter(|text| !text.is_empty())),
        }
    }

    fn holds(&self, expression: Option<&Expression>, otherwise: bool) -> Result<bool, ExpressionError> {
        let Some(expression) = expression else { return Ok(otherwise) };
        match expression.bool(&[("object", self.0)]) {
            Err(ExpressionError::Missing { .. }) => Ok(false),
            holds => holds,
        }
    }
}

//! The reference from a command to its target.

use std::{
    fmt::{self, Display},
    sync::Arc,
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use operator_templates::{Expression, ExpressionError};
use operator_watch::ObjectId;
use serde_json::Value;

use crate::kind::{TargetKind, TargetReference};

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

impl Reference {
    /// Whether an owner has the target's kind and name.
    #[must_use]
    pub fn is_named_by(&self, owner: &OwnerReference) -> bool {
        *self.name == *owner.name && self.kind.is_kind_of(owner)
    }
}

/// Kind and name, for messages.
impl Display for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.kind.resource.kind, self.name)
    }
}

impl TargetKind {
    /// Whether an owner is of this kind, in any version.
    #[must_use]
    pub fn is_kind_of(&self, owner: &OwnerReference) -> bool {
        let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
        (group, &*owner.kind) == (&self.resource.group, &self.resource.kind)
    }
}

impl TargetReference {
    /// The target of a command.
    ///
    /// # Errors
    /// The mistake in the reference, and its remedy.
    pub fn read(&self, object: &Object<'_>) -> Result<Reference, String> {
        let Some(name) = object.text(Some(&self.name))? else {
            return Err(format!("it names no target: `{}` is empty; set that field", self.name.source()));
        };
        if !ObjectId::is_name(&name) {
            let problem = "which is not a valid object name; correct that field";
            return Err(format!("it names the target {name:?}, {problem}"));
        }
        let namespace = object.text(self.namespace.as_ref())?;
        if let Some(namespace) = namespace.as_ref().filter(|namespace| !ObjectId::is_name(namespace)) {
            let problem = "which is not a valid name; correct that field";
            return Err(format!("it names the namespace {namespace:?}, {problem}"));
        }
        Ok(Reference {
            kind: self.target_kind(object)?,
            name: name.into(),
            namespace: namespace.map(Into::into),
            uid: object.text(self.uid.as_ref())?.map(Into::into),
        })
    }

    /// The kind of the target. If the kind is not set, the first one applies; if the group is not set, there must be no
    /// choice.
    fn target_kind(&self, object: &Object<'_>) -> Result<Arc<TargetKind>, String> {
        let kind = object.text(self.kind.as_ref())?;
        // An empty string is the core group, as everywhere in Kubernetes.
        let group = object.given(self.group.as_ref())?;
        let fits = |found: &&Arc<TargetKind>| {
            kind.as_ref().is_none_or(|wanted| *wanted == found.resource.kind)
                && group.as_ref().is_none_or(|wanted| *wanted == found.resource.group)
        };
        let mut fitting = self.kinds.iter().filter(fits);
        let Some(target) = fitting.next() else {
            let known: Vec<_> = self.kinds.iter().map(|kind| display(kind)).collect();
            let kind = kind.map_or_else(String::new, |kind| format!(" of the kind {kind:?}"));
            let group = match group.as_deref() {
                None => String::new(),
                Some("") => " of the core group".into(),
                Some(group) => format!(" of the group {group:?}"),
            };
            return Err(format!(
                "it names a target{kind}{group}, but commands of this kind can only have: {}",
                known.join(", ")
            ));
        };
        let other = fitting.find(|other| other.resource.kind == target.resource.kind);
        match (other, &self.group) {
            (Some(other), Some(group)) => Err(format!(
                "it names a target that can be {} or {}, because target.group, `{}`, is empty; set that field, to an empty string for the core group",
                display(target),
                display(other),
                group.source()
            )),
            _ => Ok(target.clone()),
        }
    }
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
pub struct Object<'o>(pub &'o Value);

impl Object<'_> {
    /// Text that is not empty.
    fn text(&self, expression: Option<&Expression>) -> Result<Option<String>, String> {
        Ok(self.given(expression)?.filter(|text| !text.is_empty()))
    }

    fn given(&self, expression: Option<&Expression>) -> Result<Option<String>, String> {
        let Some(expression) = expression else { return Ok(None) };
        match expression.optional_text(&[("object", self.0)]) {
            Err(error) if error.missing().is_some() && expression.is_path() => Ok(None),
            text => text.map_err(|error| error.to_string()),
        }
    }

    /// Whether a condition is true.
    ///
    /// # Errors
    /// When it has no value for the object.
    pub fn holds(&self, expression: &Expression) -> Result<bool, ExpressionError> {
        expression.bool(&[("object", self.0)])
    }
}

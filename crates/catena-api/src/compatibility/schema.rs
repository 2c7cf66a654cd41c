//! The structure of a schema: its fields, and what happens to those that it does not name.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    Finding, Rule, path,
    validation::{self, is_open},
};

/// Two schemas of the same objects.
pub(super) struct Schemas<'s> {
    /// The version whose objects are meant.
    version: &'s str,
    old: &'s Value,
    new: &'s Value,
}

impl<'s> Schemas<'s> {
    /// The schemas of two versions of a definition.
    pub fn new(version: &'s str, old: &'s Value, new: &'s Value) -> Self {
        let [old, new] = [old, new].map(|version| &version["schema"]["openAPIV3Schema"]);
        Self { version, old, new }
    }
}

/// What objects of the old schema lose under the new one, and what refuses them.
pub(super) fn compare(schemas: &Schemas<'_>) -> Vec<Finding> {
    let mut comparison = Comparison { version: schemas.version, findings: Vec::new() };
    comparison.node("", schemas.old, schemas.new);
    comparison.findings
}

struct Comparison<'s> {
    version: &'s str,
    findings: Vec<Finding>,
}

impl Comparison<'_> {
    fn found(&mut self, path: &str, rule: Rule, message: impl Into<String>) {
        let path = if path.is_empty() { "the object" } else { path }.to_owned();
        self.findings.push(Finding { version: self.version.to_owned(), path, rule, message: message.into() });
    }

    fn node(&mut self, path: &str, old: &Value, new: &Value) {
        for (rule, message) in validation::narrowed(old, new) {
            // The default of a status stands only until the first report.
            if rule != Rule::DefaultChanged || !is_of_status(path) {
                self.found(path, rule, message);
            }
        }
        self.required(path, old, new);
        if is_open(old) && !is_open(new) {
            let message = "fields that the schema does not name were kept, and are dropped";
            self.found(path, Rule::UnknownFieldsDropped, message);
        }
        for (name, before) in properties(old) {
            let place = path::field(path, name);
            match (new["properties"].get(name), &new["additionalProperties"]) {
                (Some(after), _) | (None, after @ Value::Object(_)) => self.node(&place, before, after),
                (None, _) if is_open(new) => {}
                (None, _) => self.removed(&place, before, old, new),
            }
        }
        match (&old["additionalProperties"], &new["additionalProperties"]) {
            (before @ Value::Object(_), after @ Value::Object(_)) => {
                self.node(&path::values(path), before, after);
            }
            (Value::Object(_), _) if !is_open(new) => {
                let message = "the values of the map are dropped";
                self.found(&path::values(path), Rule::FieldRemoved, message);
            }
            _ => {}
        }
        if let (before @ Value::Object(_), after @ Value::Object(_)) = (&old["items"], &new["items"]) {
            self.node(&path::items(path), before, after);
        }
    }

    fn removed(&mut self, place: &str, before: &Value, old: &Value, new: &Value) {
        let added = properties(new).filter(|(name, _)| old["properties"].get(name.as_str()).is_none());
        let same = added.filter(|(_, after)| undescribed(after) == undescribed(before));
        let names: Vec<_> = same.map(|(name, _)| name.as_str()).collect();
        let message = if let [name] = names[..] {
            format!("the field is removed, or renamed to {name}: its values are dropped")
        } else {
            "the field is removed: its values are dropped".to_owned()
        };
        self.found(place, Rule::FieldRemoved, message);
    }

    fn required(&mut self, path: &str, old: &Value, new: &Value) {
        for name in names(&new["required"]).difference(&names(&old["required"])) {
            if new["properties"][*name]["default"].is_null() {
                let message = "the field becomes required, and has no default";
                self.found(&path::field(path, name), Rule::FieldRequired, message);
            }
        }
    }
}

/// The fields of an object in its schema.
pub(super) fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flat_map(Map::iter)
}

fn is_of_status(path: &str) -> bool {
    path.strip_prefix("status").is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

fn names(list: &Value) -> BTreeSet<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn undescribed(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("description");
    }
    schema
}

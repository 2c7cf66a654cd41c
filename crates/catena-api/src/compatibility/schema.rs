//! The structure of a schema: its fields, and what happens to those that it does not name.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    Finding, Rule, path,
    validation::{self, is_open},
};

/// What objects of one version of a definition lose under another one, and what refuses them. `version` is the one whose
/// objects are meant.
pub(super) fn compare(version: &str, old: &Value, new: &Value) -> Vec<Finding> {
    let [old, new] = [old, new].map(|version| &version["schema"]["openAPIV3Schema"]);
    let mut comparison = Comparison { version, findings: Vec::new() };
    comparison.node("", old, new);
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
        let parts = [
            ("items", path::items(path), "the items of the list are dropped"),
            ("additionalProperties", path::values(path), "the values of the map are dropped"),
        ];
        for (key, place, message) in parts {
            match (&old[key], &new[key]) {
                (before @ Value::Object(_), after @ Value::Object(_)) => self.node(&place, before, after),
                (Value::Object(_), _) if !is_open(new) => self.found(&place, Rule::FieldRemoved, message),
                _ => {}
            }
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
fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
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

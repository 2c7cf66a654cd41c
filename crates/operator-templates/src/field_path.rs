//! Finds the field of an object that the API server names. The server writes paths in three ways: like its validation
//! (`spec.containers[0].image`), like Go's JSON decoder, which omits list indices
//! (`ContainerPort.spec.containers.ports.containerPort`), and like an apply (`.spec.containers[name="main"].image`).
//! For a quantity, it names no field at all.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use crate::Templates;

/// The fields of Kubernetes whose entries are quantities.
const QUANTITIES: [&str; 3] = ["requests", "limits", "capacity"];
/// The server's own rule for a quantity.
static QUANTITY: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new("^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$").ok());
/// A step of a path: a name, or what is in brackets.
static STEP: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[[^\]]*\]|[^.\[]+").ok());
/// Maximum length of a value in a message, in bytes.
const SHOWN: usize = 60;

/// A path in an object, for people, and the value there.
type Place<'o> = (String, &'o Value);

impl Templates {
    /// The paths in a rendered object that an answer of the server names, in its causes or else in its message, each with the
    /// value there if that is a single one, as a part of a message.
    #[must_use]
    pub fn named_fields(message: &str, fields: &[String], object: &Value) -> Vec<(String, Option<String>)> {
        let places = named(message, fields, object).into_iter();
        places.map(|(path, value)| (path, text(value).map(|value| shown(&value)))).collect()
    }
}

fn named<'o>(message: &str, fields: &[String], object: &'o Value) -> Vec<Place<'o>> {
    if !fields.is_empty() {
        return fields.iter().flat_map(|field| places(field, object)).collect();
    }
    if message.contains("quantities must match") {
        let mut found = Vec::new();
        odd_quantities("", object, false, &mut found);
        return found;
    }
    let decoded = between(message, "Go struct field ", " of type").and_then(|field| field.split_once('.'));
    let applied = between(message, "): .", ": ");
    let Some(field) = decoded.map(|(_, field)| field).or(applied) else { return Vec::new() };
    let found_type = between(message, "cannot unmarshal ", " into");
    let is_it = |value: &Value| found_type.is_none_or(|found| (found == "string") == value.is_string());
    places(field, object).into_iter().filter(|(_, value)| is_it(value)).collect()
}

/// A scalar value as text.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

/// A value for a message.
pub(crate) fn shown(text: &str) -> String {
    if text.len() > SHOWN { "a longer string".to_owned() } else { format!("{text:?}") }
}

fn between<'m>(message: &'m str, before: &str, after: &str) -> Option<&'m str> {
    let (_, rest) = message.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

/// All places that a path can mean: a path without a list index means all items of the list.
fn places<'o>(field: &str, object: &'o Value) -> Vec<Place<'o>> {
    let mut found = vec![(String::new(), object)];
    for step in STEP.iter().flat_map(|step| step.find_iter(field)) {
        let step = step.as_str().trim_matches(['[', ']']);
        found = found.into_iter().flat_map(|(path, value)| take(step, &path, value)).collect();
    }
    found.retain(|(path, _)| !path.is_empty());
    found
}

/// The places behind a step: the name of a field, the index of an item, or the keys and values of one, as in
/// `containerPort=80,protocol="TCP"`.
fn take<'o>(step: &str, path: &str, value: &'o Value) -> Vec<Place<'o>> {
    let Some(items) = value.as_array() else {
        return value.get(step).map(|found| (with_key(path, step), found)).into_iter().collect();
    };
    let items = items.iter().enumerate().map(|(index, item)| (format!("{path}[{index}]"), item));
    match step.parse() {
        Ok(index) => items.skip(index).take(1).collect(),
        Err(_) if step.contains('=') => {
            items.filter(|(_, item)| step.split(',').all(|key| has(item, key))).collect()
        }
        Err(_) => items.flat_map(|(path, item)| take(step, &path, item)).collect(),
    }
}

/// Whether an item has a key with the given value, as in `name="main"`.
fn has(item: &Value, key: &str) -> bool {
    let wanted =
        key.split_once('=').and_then(|(key, value)| Some((key, serde_json::from_str::<Value>(value).ok()?)));
    wanted.is_some_and(|(key, value)| item.get(key) == Some(&value))
}

fn odd_quantities<'o>(path: &str, value: &'o Value, are_quantities: bool, found: &mut Vec<Place<'o>>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = with_key(path, key);
        odd_quantities(&path, value, QUANTITIES.contains(&key.as_str()), found);
        if are_quantities && value.as_str().is_some_and(|text| !is_quantity(text)) {
            found.push((path, value));
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        odd_quantities(&format!("{path}[{index}]"), item, false, found);
    }
}

fn is_quantity(text: &str) -> bool {
    QUANTITY.as_ref().is_none_or(|rule| rule.is_match(text))
}

/// The path of a field.
fn with_key(path: &str, key: &str) -> String {
    match (path, key.contains(['.', '/'])) {
        (path, true) => format!("{path}[{key}]"),
        ("", false) => key.to_owned(),
        (path, false) => format!("{path}.{key}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn paths(message: &str, fields: &[&str]) -> Vec<String> {
        let object = json!({
            "metadata": {"labels": {"example.com/a": "?"}},
            "spec": {"containers": [
                {"name": "main", "ports": [{"containerPort": 80}, {"containerPort": "abc"}],
                 "resources": {"limits": {"memory": "plenty", "cpu": "100m"}, "requests": {"memory": "64Mi"}}},
                {"name": "side", "image": ""},
            ]},
        });
        let fields: Vec<_> = fields.iter().map(|field| (*field).to_owned()).collect();
        named(message, &fields, &object).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn a_field_is_found_in_whichever_way_the_server_writes_its_path() {
        assert_eq!(paths("", &["spec.containers[1].image"]), ["spec.containers[1].image"]);
        assert_eq!(paths("", &["metadata.labels[example.com/a]"]), ["metadata.labels[example.com/a]"]);
        let decoded = "cannot be handled as a Pod: json: cannot unmarshal string into Go struct field \
                       ContainerPort.spec.containers.ports.containerPort of type int32";
        assert_eq!(paths(decoded, &[]), ["spec.containers[0].ports[1].containerPort"]);
        let applied = "failed to create typed patch object (a/b; v1, Kind=Pod): \
                       .spec.containers[name=\"side\"].image: expected string, got &value.valueUnstructured{Value:1}";
        assert_eq!(paths(applied, &[]), ["spec.containers[1].image"]);
        let applied = "failed to create typed patch object (a/b; v1, Kind=Pod): \
                       .spec.containers[name=\"main\"].ports[containerPort=80].containerPort: expected numeric";
        assert_eq!(paths(applied, &[]), ["spec.containers[0].ports[0].containerPort"]);
        let quantity = "quantities must match the regular expression '^([+-]?[0-9.]+)'";
        assert_eq!(paths(quantity, &[]), ["spec.containers[0].resources.limits.memory"]);
        assert!(paths("no field at all", &[]).is_empty());
        assert!(paths("", &["spec.lost[7]..x", "", "[", "spec.containers[99]"]).is_empty());
    }

    #[test]
    fn a_quantity_is_what_the_server_takes_for_one() {
        assert!(["1", "64Mi", "0.5", "-1", "1e3", "100m", "1E+3"].into_iter().all(is_quantity));
        assert!(!["", "plenty", "64 Mi", "64Mib", "Mi", "1e3x"].into_iter().any(is_quantity));
    }
}

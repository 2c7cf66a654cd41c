//! Bodies of server-side apply: written as JSON, read as YAML.

use operator_kit::testing;
use serde_json::{Value, json};

use crate::parts;

/// The longest name of a field that YAML accepts without an explicit mark. A template with a longer one is refused
/// before anything is sent.
const LONGEST_NAME: usize = 1024;
/// The most values of a body that is read back: the reader here refuses 250,000 and takes a second for them, other than the API server.
const MOST_VALUES: usize = 100_000;

pub fn read(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(value) = serde_json::from_str::<Value>(&text) {
        arrives(&value);
    }
    let (first, rest) = parts::first_and_rest(input);
    let fields: serde_json::Map<_, _> =
        parts::pairs(&rest).map(|(name, value)| (name, Value::from(value))).collect();
    arrives(&json!({"spec": {"parameters": fields, "template": first}}));
}

/// Sends a value, and reads it as the API server does.
pub fn arrives(value: &Value) {
    if !has_short_names(value) || number_of_values(value) > MOST_VALUES {
        return;
    }
    let body = testing::applied(value);
    let read = serde_saphyr::from_str::<Value>(&body);
    assert!(read.as_ref().is_ok_and(|read| read == value), "{body} is read as {read:?}");
}

fn number_of_values(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.values().map(|field| 1 + number_of_values(field)).sum::<usize>() + 1,
        Value::Array(items) => items.iter().map(number_of_values).sum::<usize>() + 1,
        _ => 1,
    }
}

fn has_short_names(value: &Value) -> bool {
    let is_short = |name: &str| testing::applied(&name.into()).len() < LONGEST_NAME;
    match value {
        Value::Object(fields) => fields.iter().all(|(name, value)| is_short(name) && has_short_names(value)),
        Value::Array(items) => items.iter().all(has_short_names),
        _ => true,
    }
}

//! Values of JSON as values of CEL, and back.

use std::{collections::HashMap, sync::Arc};

use cel::objects::{KeyRef, OptionalValue};
use serde_json::Value;

use super::error::{Problem, clip, unsuited};

/// Integers become `int`, as they are in the schema of every Kubernetes kind.
pub(super) fn of(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => number.as_i64().map_or_else(|| number.as_f64().into(), cel::Value::Int),
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(of).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.as_str(), of(value)));
            fields.collect::<HashMap<_, _>>().into()
        }
    }
}

/// An optional value.
pub(super) fn optional(value: Option<cel::Value>) -> cel::Value {
    cel::Value::Opaque(Arc::new(value.map_or_else(OptionalValue::none, OptionalValue::of)))
}

/// A value as the optional one that it is.
pub(super) fn as_optional(value: &cel::Value) -> Option<&OptionalValue> {
    value.try_into().ok()
}

/// The value itself; none for null and for an optional without a value.
pub(super) fn present(value: cel::Value) -> Option<cel::Value> {
    match as_optional(&value) {
        Some(optional) => optional.value().cloned().and_then(present),
        None => (value != cel::Value::Null).then_some(value),
    }
}

/// The entry of a list or map. It is optional if it is asked for with `?`, or in an optional value.
pub(super) fn entry(value: &cel::Value, key: &cel::Value, is_optional: bool) -> Result<cel::Value, Problem> {
    match as_optional(value).map(OptionalValue::value) {
        Some(None) => Ok(value.clone()),
        Some(Some(inner)) => Ok(optional(find(inner, key)?)),
        None if is_optional => Ok(optional(find(value, key)?)),
        None => find(value, key)?.ok_or_else(|| match (value, key) {
            (cel::Value::Map(_), cel::Value::String(key)) => Problem::Missing(key.clone()),
            _ => unsuited("an entry", &[value.clone(), key.clone()]),
        }),
    }
}

/// None if there is no such entry, as in a value that has no entries at all.
fn find(value: &cel::Value, key: &cel::Value) -> Result<Option<cel::Value>, Problem> {
    Ok(match (value, key) {
        (cel::Value::Map(fields), cel::Value::String(key)) => fields.get(&KeyRef::String(key)).cloned(),
        (cel::Value::List(items), cel::Value::Int(place)) => {
            usize::try_from(*place).ok().and_then(|place| items.get(place)).cloned()
        }
        (cel::Value::List(_), _)
        | (_, cel::Value::List(_) | cel::Value::Map(_) | cel::Value::Null | cel::Value::Opaque(_)) => {
            return Err(unsuited("an entry", &[value.clone(), key.clone()]));
        }
        _ => None,
    })
}

/// The value as JSON; none for one that has no such form, such as a duration.
pub(super) fn json(value: &cel::Value) -> Option<Value> {
    Some(match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(value) => (*value).into(),
        cel::Value::Int(number) => (*number).into(),
        cel::Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        cel::Value::String(text) => text.as_str().into(),
        cel::Value::List(items) => items.iter().map(json).collect::<Option<Vec<_>>>()?.into(),
        cel::Value::Map(map) => {
            let fields = map.map.iter().map(|(key, value)| Some((key.to_string(), json(value)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// The value in the words of an error message.
pub(super) fn described(value: &cel::Value) -> String {
    match value {
        cel::Value::List(_) | cel::Value::Map(_) => format!("a {}", value.type_of()),
        cel::Value::String(text) => clip(&format!("the string {text:?}")),
        other => clip(&format!("the {} {other:?}", other.type_of())),
    }
}

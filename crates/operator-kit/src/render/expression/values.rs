//! Values of JSON as values of CEL, and back.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{self, objects};
use serde_json::Value;

use super::error::clip;

/// Integers become `int`, as they are in the schema of every Kubernetes kind.
pub(super) fn of(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(value) => cel::Value::Bool(*value),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => cel::Value::Int(integer),
            (None, Some(float)) => cel::Value::Float(float),
            (None, None) => cel::Value::Null,
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(of).collect())),
        Value::Object(fields) => {
            let fields: HashMap<_, _> = fields
                .iter()
                .map(|(key, value)| (objects::Key::String(Arc::new(key.clone())), of(value)))
                .collect();
            cel::Value::Map(objects::Map { map: Arc::new(fields) })
        }
    }
}

/// The value itself; none for null and for an optional without a value.
pub(super) fn present(value: cel::Value) -> Option<cel::Value> {
    if value == cel::Value::Null {
        return None;
    }
    match <&objects::OptionalValue>::try_from(&value) {
        Ok(optional) => optional.value().cloned().and_then(present),
        Err(_) => Some(value),
    }
}

/// The value as JSON; none for one that has no such form, such as a duration.
pub(super) fn json(value: &cel::Value) -> Option<Value> {
    Some(match value {
        cel::Value::Null => Value::Null,
        cel::Value::Bool(value) => (*value).into(),
        cel::Value::Int(number) => (*number).into(),
        cel::Value::UInt(number) => (*number).into(),
        cel::Value::Float(number) => (*number).into(),
        cel::Value::String(text) => text.as_str().into(),
        cel::Value::List(items) => items.iter().map(json).collect::<Option<Vec<_>>>()?.into(),
        cel::Value::Map(map) => {
            let field = |(key, value): (&objects::Key, _)| match key {
                objects::Key::String(key) => Some((key.to_string(), json(value)?)),
                _ => None,
            };
            Value::Object(map.map.iter().map(field).collect::<Option<_>>()?)
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

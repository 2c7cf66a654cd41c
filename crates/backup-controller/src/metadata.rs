//! Reading the metadata of an object of any kind.

use jiff::Timestamp;
use serde_json::Value;

/// A text of an object's metadata; empty if there is none.
pub fn text<'o>(object: &'o Value, name: &str) -> &'o str {
    field(object, name).and_then(Value::as_str).unwrap_or_default()
}

/// A time of an object's metadata. The API server accepts later times than this type can represent; they become the
/// latest one.
#[must_use]
pub fn time(object: &Value, name: &str) -> Option<Timestamp> {
    Some(field(object, name)?.as_str()?.parse().unwrap_or(Timestamp::MAX))
}

/// Whether an object is being deleted.
#[must_use]
pub fn is_deleted(object: &Value) -> bool {
    field(object, "deletionTimestamp").is_some_and(|time| !time.is_null())
}

/// A label or an annotation.
#[must_use]
pub fn entry<'o>(object: &'o Value, map: &str, key: &str) -> Option<&'o str> {
    field(object, map)?.get(key)?.as_str()
}

/// The finalizers of an object.
#[must_use]
pub fn finalizers(object: &Value) -> Vec<String> {
    let list = list(object, "finalizers");
    list.filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

/// The items of a list of an object's metadata.
pub fn list<'o>(object: &'o Value, name: &str) -> impl Iterator<Item = &'o Value> {
    field(object, name).and_then(Value::as_array).into_iter().flatten()
}

fn field<'o>(object: &'o Value, name: &str) -> Option<&'o Value> {
    object.get("metadata")?.get(name)
}

//! What others have changed of a child. Pure.

use operator_kit::watch::Row;
use serde_json::{Map, Value, json};

use crate::{child::Child, desired::Desired};

/// The first field of a child that its apply changes back: its owner, or a field of the rendering. `settled_as` is the state
/// after its last apply, if it is known.
#[must_use]
pub fn changed_field(child: &Child, desired: &Desired, settled_as: Option<&Value>) -> Option<String> {
    if child.owner.is_none() {
        return Some("metadata.ownerReferences".to_owned());
    }
    let seen = desired.seen_in(&child.object);
    match settled_as {
        Some(settled) => first_difference(settled, &seen, String::new(), &Value::eq),
        None => first_difference(&desired.comparable(), &seen, String::new(), &contains),
    }
}

/// The keys that somebody has added to maps of the template: the first one, and the patch that removes all of them. An apply
/// leaves them.
#[must_use]
pub fn added_keys(child: &Child, desired: &Desired) -> Option<(String, Value)> {
    let contract = child.kind.fields();
    // The token may be one of the keys of such a map.
    let mut rendered = desired.object.clone();
    for (_, field) in contract.written() {
        field.set(&mut rendered, Value::Bool(true));
    }
    let (mut first, mut patch) = (None, json!({"metadata": child.id()}));
    for map in contract.maps.iter().filter(|map| map.get(&desired.object).is_some()) {
        let [own, live] = [&rendered, &child.object].map(|object| map.get(object).and_then(Value::as_object));
        let (Some(own), Some(live)) = (own, live) else { continue };
        let added = live.keys().filter(|key| !own.contains_key(*key));
        let removed: Map<_, _> = added.map(|key| (key.clone(), Value::Null)).collect();
        if let Some(key) = removed.keys().next() {
            first = first.or_else(|| Some(format!("{map}.{key}")));
            map.set(&mut patch, removed.into());
        }
    }
    Some((first?, patch))
}

fn first_difference(
    wanted: &Value,
    seen: &Value,
    path: String,
    is_same: &impl Fn(&Value, &Value) -> bool,
) -> Option<String> {
    match wanted {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            first_difference(value, &seen[name.as_str()], path, is_same)
        }),
        _ => (!is_same(wanted, seen)).then_some(path),
    }
}

/// Whether a value has all that is wanted: the server adds defaults to the objects in lists, too.
fn contains(wanted: &Value, seen: &Value) -> bool {
    match (wanted, seen) {
        (Value::Object(fields), _) => {
            fields.iter().all(|(name, value)| contains(value, &seen[name.as_str()]))
        }
        (Value::Array(wanted), Value::Array(seen)) => {
            wanted.len() == seen.len() && wanted.iter().zip(seen).all(|(wanted, seen)| contains(wanted, seen))
        }
        _ => wanted == seen,
    }
}

//! What others have changed of a child. Pure.
//!
//! Values are compared by their meaning: a controller that updates the whole object writes some of them in another form.

use operator_templates::Expression;
use operator_watch::Row;
use serde_json::{Map, Value, json};

use crate::{child::Child, desired::Desired};

/// The maps of Kubernetes whose values are quantities.
const QUANTITIES: [&str; 2] = ["limits", "requests"];

/// Whether the fields that a child has mean the same as wanted ones, all in the form of [`Desired::seen_in`]. In the objects of
/// a list, only empty maps and lists may have been added: any other key may change what runs.
#[must_use]
pub fn means_the_same(wanted: &Value, seen: &Value) -> bool {
    wanted == seen || first_difference(wanted, seen, String::new(), false, is_empty).is_none()
}

/// The first field of a child that its apply changes back: its owner, or a field of the rendering. `settled_as` is the state
/// after its last apply, if it is known.
#[must_use]
pub fn changed_field(child: &Child, desired: &Desired, settled_as: Option<&Value>) -> Option<String> {
    if child.owner.is_none() {
        return Some("metadata.ownerReferences".to_owned());
    }
    let seen = desired.seen_in(&child.object);
    match settled_as {
        Some(settled) => first_difference(settled, &seen, String::new(), false, is_empty),
        // The server adds defaults to the objects in lists, too.
        None => first_difference(&desired.comparable(), &seen, String::new(), false, |_| true),
    }
}

/// The keys that somebody has added to maps of the template: the first one, and the patch that removes all of them. An apply
/// leaves them.
#[must_use]
pub fn added_keys(child: &Child, desired: &Desired) -> Option<(String, Value)> {
    let contract = child.kind.fields();
    // The token and handed fields may be keys of such a map.
    let mut rendered = desired.object.clone();
    for (_, field) in contract.written() {
        field.set(&mut rendered, Value::Bool(true));
    }
    desired.handed.set_in(&mut rendered);
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

/// The lists that a child does not have as they were applied. To those whose items have keys, and to their items, an apply leaves
/// what others have added. What only the server adds, it adds again.
#[must_use]
pub fn replaced_lists(wanted: &Value, seen: &Value) -> Option<Value> {
    match (wanted, seen) {
        (Value::Object(fields), Value::Object(seen)) => {
            let differing = |(name, value): (&String, &Value)| {
                Some((name.clone(), replaced_lists(value, seen.get(name)?)?))
            };
            let lists: Map<_, _> = fields.iter().filter_map(differing).collect();
            (!lists.is_empty()).then(|| lists.into())
        }
        (Value::Array(_), Value::Array(_)) if !means_the_same(wanted, seen) => Some(wanted.clone()),
        _ => None,
    }
}

/// The first field that differs. `may_be_added`: the values that may have been added to the objects in lists.
fn first_difference(
    wanted: &Value,
    seen: &Value,
    path: String,
    is_quantity: bool,
    may_be_added: fn(&Value) -> bool,
) -> Option<String> {
    match wanted {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let is_quantity = is_quantity || QUANTITIES.contains(&name.as_str());
            first_difference(value, &seen[name.as_str()], path, is_quantity, may_be_added)
        }),
        _ => (!is_same(wanted, seen, is_quantity, may_be_added)).then_some(path),
    }
}

fn is_same(wanted: &Value, seen: &Value, is_quantity: bool, may_be_added: fn(&Value) -> bool) -> bool {
    match (wanted, seen) {
        (Value::Object(wanted), Value::Object(fields)) => {
            let is_there = |(name, value): (&String, &Value)| {
                let is_quantity = is_quantity || QUANTITIES.contains(&name.as_str());
                is_same(value, &seen[name.as_str()], is_quantity, may_be_added)
            };
            let may_be_there =
                |(name, value): (&String, &Value)| wanted.contains_key(name) || may_be_added(value);
            wanted.iter().all(is_there) && fields.iter().all(may_be_there)
        }
        (Value::Array(wanted), Value::Array(seen)) => {
            let is_there =
                |(wanted, seen): (&Value, &Value)| is_same(wanted, seen, is_quantity, may_be_added);
            wanted.len() == seen.len() && wanted.iter().zip(seen).all(is_there)
        }
        _ if is_empty(wanted) => is_empty(seen),
        _ => wanted == seen || (is_quantity && Expression::is_same_quantity(wanted, seen)),
    }
}

/// Whether a value says as little as a missing one.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

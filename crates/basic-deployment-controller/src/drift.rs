//! The first field of a child that is not as it is wanted. Pure.

use serde_json::Value;

use crate::{child::Child, desired::Desired};

/// The first field of a rendering with another value on the child. `settled_as` is the state after its apply, if it is
/// known.
#[must_use]
pub fn changed_field(child: &Child, desired: &Desired, settled_as: Option<&Value>) -> Option<String> {
    let seen = desired.seen_in(&child.object);
    match settled_as {
        Some(settled) => first_difference(settled, &seen, String::new(), &Value::eq),
        None => first_difference(&desired.comparable(), &seen, String::new(), &contains),
    }
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

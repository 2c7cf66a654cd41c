//! A missing value is an error wherever it is used, unless the template says otherwise by `default` or `is defined`: an object
//! that lacks a value would look complete.
//!
//! The engine refuses most uses by itself. Here are the others.

use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters,
    value::{Rest, ValueKind},
};

use super::captured;

/// Maximum number of items of a list that are looked at: a longer one is too long to be written.
const MOST: usize = super::LONGEST;

/// Makes the filters strict that take a missing value for an empty one, and removes those that only quote it.
pub(super) fn refuse_in(environment: &mut Environment<'_>) {
    let lenient = [
        ("join", Value::from_function(captured::join)),
        ("groupby", Value::from_function(filters::groupby)),
        ("chain", Value::from_function(filters::chain)),
        ("zip", Value::from_function(filters::zip)),
    ];
    for (name, filter) in lenient {
        environment.add_filter(name, move |state: &State, value: Value, more: Rest<Value>| {
            let values: Vec<Value> = std::iter::once(value).chain(more.0).collect();
            values.iter().try_for_each(refuse)?;
            filter.call(state, &values)
        });
    }
    for name in ["escape", "e", "pprint"] {
        environment.remove_filter(name);
    }
}

/// Refuses a value that is missing, or has a missing part.
pub(super) fn refuse(value: &Value) -> Result<(), Error> {
    if is_missing(value) { Err(Error::from(ErrorKind::UndefinedError)) } else { Ok(()) }
}

fn is_missing(value: &Value) -> bool {
    let mut parts = match value.kind() {
        ValueKind::Undefined => return true,
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            value.try_iter().into_iter().flatten().take(MOST)
        }
        _ => return false,
    };
    if value.kind() == ValueKind::Map {
        return parts.any(|key| value.get_item(&key).is_ok_and(|part| is_missing(&part)));
    }
    parts.any(|part| is_missing(&part))
}

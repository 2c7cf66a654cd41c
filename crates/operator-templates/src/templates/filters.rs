//! The filters, tests and functions of templates, each of which ends for every value: those of the engine that do, and ours
//! instead of those that do not, or that take a missing value for an empty one. Values have limits in number, depth and length,
//! and a missing one is an error wherever it is used, unless the template says otherwise by `default` or `is defined`: an object
//! that lacks a value would look complete.

use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters, functions,
    value::{Rest, ValueKind},
};

use super::{
    LONGEST,
    tree::{START, text},
};

/// Maximum distance of a number of a `range` from zero.
const MAX_BOUND: usize = 1_000_000_000;

macro_rules! of_the_engine {
    ($module:ident: $($name:ident)*) => {
        [$((stringify!($name), Value::from_function(minijinja::$module::$name))),*]
    };
}

/// All filters, by name.
pub(super) fn all_filters() -> Vec<(&'static str, Value)> {
    let of_the_engine = of_the_engine!(filters:
        abs attr bool capitalize default dictsort first float int items last length lines list lower map max min
        reject rejectattr reverse round select selectattr sort split sum title trim unique upper);
    let ours = [
        ("count", Value::from_function(filters::length)),
        ("d", Value::from_function(filters::default)),
        ("join", Value::from_function(join)),
        ("replace", Value::from_function(replace)),
        ("string", Value::from_function(string)),
        ("tojson", Value::from_function(tojson)),
    ];
    of_the_engine.into_iter().chain(ours).collect()
}

/// All tests, by name.
pub(super) fn all_tests() -> Vec<(&'static str, Value)> {
    let of_the_engine = of_the_engine!(tests:
        is_boolean is_defined is_endingwith is_eq is_even is_false is_float is_ge is_gt is_in is_integer is_iterable is_le
        is_lower is_lt is_mapping is_ne is_none is_number is_odd is_sequence is_startingwith is_string is_true is_undefined
        is_upper);
    let of_the_engine = of_the_engine.map(|(name, test)| (name.trim_start_matches("is_"), test));
    of_the_engine.into_iter().chain([("divisibleby", Value::from_function(is_divisible_by))]).collect()
}

/// Adds all filters, tests and functions.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    for (name, filter) in all_filters() {
        environment.add_filter(name, move |state: &State, values: Rest<Value>| call(&filter, state, &values));
    }
    for (name, test) in all_tests() {
        environment.add_test(name, move |state: &State, values: Rest<Value>| call(&test, state, &values));
    }
    environment.add_function("dict", functions::dict);
    environment.add_function("range", range);
}

fn call(function: &Value, state: &State, values: &[Value]) -> Result<Value, Error> {
    values.iter().try_for_each(check)?;
    function.call(state, values)
}

fn join(items: &Value, between: Option<&Value>) -> Result<String, Error> {
    refuse(items)?;
    let between = between.map(text).transpose()?.unwrap_or_default();
    let mut joined = String::new();
    for (number, item) in items.try_iter()?.enumerate() {
        if number > 0 {
            joined.push_str(&between);
        }
        joined.push_str(&text(&item)?);
        if joined.len() > MAX_WRITTEN {
            return Err(too_much());
        }
    }
    Ok(joined)
}

fn replace(value: &Value, from: &Value, to: &Value) -> Result<String, Error> {
    let (value, from, to) = (text(value)?, text(from)?, text(to)?);
    if to.len().saturating_mul(value.matches(&*from).count()) > MAX_WRITTEN {
        return Err(too_much());
    }
    Ok(value.replace(&*from, &to))
}

fn string(state: &State, value: &Value) -> Result<Value, Error> {
    // The engine tells a missing value from a condition without `else`.
    if value.is_undefined() { filters::string(state, value) } else { text(value).map(Value::from) }
}

/// A value is written as its type anyway.
fn tojson(value: Value) -> Result<Value, Error> {
    refuse(&value)?;
    Ok(value)
}

fn is_divisible_by(value: &Value, by: &Value) -> bool {
    let number = |value: &Value| i128::try_from(value.clone()).ok();
    number(value).zip(number(by)).is_some_and(|(value, by)| value.checked_rem(by) == Some(0))
}

fn range(lower: isize, upper: Option<isize>, step: Option<isize>) -> Result<Value, Error> {
    let is_far = |number: isize| number.unsigned_abs() > MAX_BOUND;
    if [Some(lower), upper, step].into_iter().flatten().any(is_far) {
        let detail = format!("range: a number is more than {MAX_BOUND} from zero");
        return Err(Error::new(ErrorKind::InvalidOperation, detail));
    }
    functions::range(lower, upper, step)
}

/// Maximum total length of the values of one rendering, in bytes.
pub(super) const MAX_WRITTEN: usize = 2 * LONGEST;
/// Maximum number of the parts of a value: no object that the API server stores has more. A list may be endless, because it is
/// generated.
const MAX_PARTS: usize = 1_000_000;
/// Maximum depth of a value.
const MAX_DEPTH: usize = 100;

/// A mark, which is the template's own output, and the start of the keys of maps that `serde_json` takes for something else.
const RESERVED: [&str; 2] = [START, "$serde_json::private::"];

/// Refuses a value that a filter could not finish with. The fields of a map are not looked at, because that counts as reading
/// them.
pub(super) fn check(value: &Value) -> Result<(), Error> {
    Walk { parts: MAX_PARTS, bytes: MAX_WRITTEN, is_strict: false }.value(value, 0)
}

/// Refuses a value that cannot be written: it is missing or has a missing part, is too large, or contains what stands for
/// something else.
pub(super) fn refuse(value: &Value) -> Result<(), Error> {
    Walk { parts: MAX_PARTS, bytes: MAX_WRITTEN, is_strict: true }.value(value, 0)
}

struct Walk {
    /// How many parts may still come.
    parts: usize,
    /// How long the texts that may still come are together.
    bytes: usize,
    is_strict: bool,
}

impl Walk {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let failure = |detail: String| Err(Error::new(ErrorKind::InvalidOperation, detail));
        let kind = value.kind();
        match kind {
            ValueKind::String => return self.text(value.as_str().unwrap_or_default()),
            ValueKind::Undefined if self.is_strict => return Err(Error::from(ErrorKind::UndefinedError)),
            ValueKind::Invalid => return failure(value.to_string()),
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {}
            _ => return Ok(()),
        }
        if depth == MAX_DEPTH {
            return failure(format!("a value is nested more than {MAX_DEPTH} deep"));
        }
        for part in value.try_iter()? {
            if self.parts == 0 {
                return failure(format!("a value has more than {MAX_PARTS} parts"));
            }
            self.parts -= 1;
            self.value(&part, depth + 1)?;
            if kind == ValueKind::Map && self.is_strict {
                self.value(&value.get_item(&part)?, depth + 1)?;
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.bytes = self.bytes.checked_sub(text.len()).ok_or_else(too_much)?;
        match RESERVED.iter().find(|reserved| self.is_strict && text.contains(**reserved)) {
            Some(found) => {
                let detail = format!("{found:?} cannot be a part of a value");
                Err(Error::new(ErrorKind::BadSerialization, detail))
            }
            None => Ok(()),
        }
    }
}

/// The failure of values that are too long.
pub(super) fn too_much() -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("its values together have more than {MAX_WRITTEN} bytes"))
}

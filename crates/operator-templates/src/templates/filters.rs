//! The filters, tests and functions of templates, each of which ends for every value: those of the engine that do, and ours
//! instead of those that do not, or that take a missing value for an empty one. Values have limits in number, depth and length,
//! and a missing one is an error wherever it is used, unless the template says otherwise by `default` or `is defined`: an object
//! that lacks a value would look complete.

use std::sync::Arc;

use minijinja::{
    Environment, Error, ErrorKind, State, Value, filters, functions,
    value::{Object, Rest, ValueKind},
};
use parking_lot::Mutex;

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

/// The filters that [prepared](super::source::prepare) operands go through: those of `+` and slices, and those on the left and on
/// the right of `*`.
pub(super) const COUNTED: &str = "_counted";
pub(super) const FACTOR: &str = "_factor";
pub(super) const TIMES: &str = "_times";

/// The filters that take a text apart: each of its characters could become a value.
const TAKING_APART: &str = "list lines map max min reject rejectattr select selectattr sort split sum unique";

/// Adds all filters, tests and functions.
pub(super) fn add_to(environment: &mut Environment<'_>) {
    for (name, filter) in all_filters() {
        let takes_apart = TAKING_APART.split(' ').any(|other| other == name);
        environment.add_filter(name, move |state: &State, values: Rest<Value>| {
            if takes_apart && values.first().and_then(Value::as_str).is_some_and(|text| text.len() > MAX_TEXT)
            {
                return Err(failure(format!("a text of more than {MAX_TEXT} bytes is not taken apart")));
            }
            let value = call(&filter, state, &values)?;
            made(state).left.lock().value(&value, 0)?;
            Ok(value)
        });
    }
    environment.add_filter(COUNTED, counted);
    environment.add_filter(FACTOR, factor);
    environment.add_filter(TIMES, times);
    for (name, test) in all_tests() {
        environment.add_test(name, move |state: &State, values: Rest<Value>| call(&test, state, &values));
    }
    environment.add_function("dict", functions::dict);
    environment.add_function("range", range);
}

/// Refuses values that a function could not finish with. The fields of a map are not looked at, because that counts as reading
/// them.
fn call(function: &Value, state: &State, values: &[Value]) -> Result<Value, Error> {
    let made = made(state);
    values.iter().try_for_each(|value| made.read.lock().value(value, 0))?;
    function.call(state, values)
}

/// What the filters and the operators of one rendering make.
#[derive(Debug)]
struct Made {
    /// How much may still come.
    left: Mutex<Walk>,
    /// How much may still be read: `map` gives all of its arguments to a filter again for each item.
    read: Mutex<Walk>,
    /// The left operands of `*` whose right ones are still to come.
    factors: Mutex<Vec<Operand>>,
}

impl Object for Made {}

fn made(state: &State) -> Arc<Made> {
    let new = || {
        let [left, read] = [&MADE, &READ].map(|limit| Mutex::new(Walk::new(limit, false)));
        Made { left, read, factors: Mutex::default() }
    };
    state.get_or_set_temp_object("@made", new)
}

/// An operand of `+` or `*`, and what it spends.
#[derive(Debug, Default)]
struct Operand {
    value: Value,
    parts: usize,
    bytes: usize,
}

/// A list becomes one that contains its items: the engine's sums and products ask their operands for them each time, and those ask
/// theirs.
fn operand(state: &State, value: Value) -> Result<Operand, Error> {
    let made = made(state);
    let mut left = made.left.lock();
    let (parts, bytes) = (left.parts, left.bytes);
    let value =
        if is_list(&value) { left.items(&value)?.into() } else { left.value(&value, 0).map(|()| value)? };
    let (parts, bytes) = (parts - left.parts, bytes - left.bytes);
    if bytes > MAX_WRITTEN { Err(too_much()) } else { Ok(Operand { value, parts, bytes }) }
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn counted(state: &State, value: Value) -> Result<Value, Error> {
    Ok(operand(state, value)?.value)
}

fn factor(state: &State, left: Value) -> Result<Value, Error> {
    let left = operand(state, left)?;
    let value = left.value.clone();
    made(state).factors.lock().push(left);
    Ok(value)
}

/// Refuses what the engine would only find too large when it has repeated it.
fn times(state: &State, right: Value) -> Result<Value, Error> {
    let made = made(state);
    let right = operand(state, right)?;
    let left = made.factors.lock().pop().unwrap_or_default();
    for (operand, times) in [(&left, &right), (&right, &left)] {
        let is_list = is_list(&operand.value);
        if !is_list && operand.value.kind() != ValueKind::String {
            continue;
        }
        let Some(times) = times.value.as_usize() else { continue };
        // Each time takes a step, also that of an empty list.
        let parts = operand.parts.max(usize::from(is_list)).saturating_mul(times);
        let bytes = operand.bytes.saturating_mul(times);
        if parts > MAX_PARTS || bytes > MAX_WRITTEN {
            let kind = if is_list { "list" } else { "text" };
            return Err(failure(format!(
                "{times} times this {kind} has more than {MAX_PARTS} parts or {MAX_WRITTEN} bytes"
            )));
        }
        made.left.lock().spend(parts, bytes)?;
    }
    Ok(right.value)
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
        return Err(failure(format!("range: a number is more than {MAX_BOUND} from zero")));
    }
    functions::range(lower, upper, step)
}

/// Maximum total length of the values of one rendering, in bytes.
pub(super) const MAX_WRITTEN: usize = 2 * LONGEST;
/// Maximum length of a text that is taken apart, in bytes: by default, no text that the API server stores is longer.
const MAX_TEXT: usize = 3 << 19;
/// Maximum number of the parts of the values of one rendering, and of those that its filters and operators make: no object that
/// the API server stores has more. A list may be endless, because it is generated.
pub(super) const MAX_PARTS: usize = 1_000_000;
/// How many parts a map counts as in addition to its own: in memory, even a small one takes as much as twenty numbers.
const MAP_PARTS: usize = 20;
/// Maximum depth of a value.
const MAX_DEPTH: usize = 100;

/// A mark, which is the template's own output, and the start of the keys of maps that `serde_json` takes for something else.
const RESERVED: [&str; 2] = [START, "$serde_json::private::"];

/// Refuses a value that cannot be written: it is missing or has a missing part, is too large, or contains what stands for
/// something else.
pub(super) fn refuse(value: &Value) -> Result<(), Error> {
    Walk::new(&WRITTEN, true).value(value, 0)
}

/// What values may have together in one rendering.
#[derive(Debug)]
pub(super) struct Limit {
    what: &'static str,
    parts: usize,
    /// The length of their texts.
    bytes: usize,
}

/// Of what is written.
pub(super) const WRITTEN: Limit =
    Limit { what: "its values together have", parts: MAX_PARTS, bytes: MAX_WRITTEN };
/// Of what filters and operators make, most of which is never written.
const MADE: Limit = Limit { bytes: 4 * MAX_WRITTEN, ..WRITTEN };
/// Of what filters and tests read.
const READ: Limit =
    Limit { what: "its filters together read", parts: 4 * MAX_PARTS, bytes: 16 * MAX_WRITTEN };

/// Looks at values one after another until they are too much together.
#[derive(Debug)]
pub(super) struct Walk {
    /// How many parts may still come.
    pub parts: usize,
    /// How long the texts that may still come are together.
    bytes: usize,
    limit: &'static Limit,
    is_strict: bool,
}

impl Walk {
    pub fn new(limit: &'static Limit, is_strict: bool) -> Self {
        Self { parts: limit.parts, bytes: limit.bytes, limit, is_strict }
    }

    pub fn value(&mut self, value: &Value, depth: usize) -> Result<(), Error> {
        let kind = value.kind();
        match kind {
            ValueKind::String => return self.text(value.as_str().unwrap_or_default()),
            ValueKind::Undefined if self.is_strict => return Err(Error::from(ErrorKind::UndefinedError)),
            ValueKind::Invalid => return Err(failure(value.to_string())),
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {}
            _ => return Ok(()),
        }
        if depth == MAX_DEPTH {
            return Err(failure(format!("a value is nested more than {MAX_DEPTH} deep")));
        }
        if kind == ValueKind::Map {
            self.spend(MAP_PARTS, 0)?;
        }
        for part in value.try_iter()? {
            self.spend(1, 0)?;
            self.value(&part, depth + 1)?;
            if kind == ValueKind::Map && self.is_strict {
                self.value(&value.get_item(&part)?, depth + 1)?;
            }
        }
        Ok(())
    }

    /// The items of a list, which is not nested.
    fn items(&mut self, list: &Value) -> Result<Vec<Value>, Error> {
        let counted = |item: Value| {
            self.spend(1, 0)?;
            self.value(&item, 1)?;
            Ok(item)
        };
        list.try_iter()?.map(counted).collect()
    }

    fn text(&mut self, text: &str) -> Result<(), Error> {
        self.spend(0, text.len())?;
        match RESERVED.iter().find(|reserved| self.is_strict && text.contains(**reserved)) {
            Some(found) => {
                let detail = format!("{found:?} cannot be a part of a value");
                Err(Error::new(ErrorKind::BadSerialization, detail))
            }
            None => Ok(()),
        }
    }

    fn spend(&mut self, parts: usize, bytes: usize) -> Result<(), Error> {
        let Limit { what, parts: most_parts, bytes: most_bytes } = self.limit;
        let too_many = || failure(format!("{what} more than {most_parts} parts"));
        let too_long = || failure(format!("{what} more than {most_bytes} bytes"));
        self.parts = self.parts.checked_sub(parts).ok_or_else(too_many)?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(too_long)?;
        Ok(())
    }
}

fn failure(detail: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail)
}

/// The failure of values that are too long.
pub(super) fn too_much() -> Error {
    failure(format!("its values together have more than {MAX_WRITTEN} bytes"))
}

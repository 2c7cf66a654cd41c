//! The operators and functions that expressions may use. Each gives what it gives in a policy of the API server, or no value.

use std::{
    cmp::Ordering,
    mem,
    ops::Range,
    sync::{Arc, LazyLock},
};

use cel::{
    Value,
    common::ast::operators as operator,
    functions::{duration, timestamp},
    objects::Opaque,
};
use regex::{Regex, RegexSet};
use serde_json::Value as Json;

use super::{
    Expression,
    error::{Problem, unsuited},
    values,
};
use crate::field_path;

/// Maximum length of a text, in bytes, and of a list that an expression builds.
const LARGEST: usize = 1 << 20;
/// Seconds since 1970 of the years that Kubernetes knows.
const YEARS_1_TO_9999: Range<i64> = -62_135_596_800..253_402_300_800;

/// Times and durations that Go and Rust read alike, what they read differently in a pattern (classes that are Unicode's in Rust,
/// escapes and flags of one of them, sets within sets, repetitions of repetitions), and expressions that only name a field.
static SHAPES: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    let time = r"(?-u)^\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$";
    let duration = r"^(0|-?([0-9]{1,6}h|[0-9]{1,8}m|[0-9]{1,9}([mun]?s))+)$";
    let odd = r"(?sx) \\[[:alnum:]<>] | [*+?}](\?[*+?{]|[*+{]) | \{(,|\d*,?\d{4}) | \(\?([^:i]|i[^:)])
        | \{[^}]*\d\d.*\)\{ | \{.*\)\{[^}]*\d\d | \[\^?\] | \[([^\]\\]|\\.)*(&&|--|~~|\[)";
    let path = r#"^\w+(\.[A-Za-z_]\w*|\.`[^`]+`|\['[^'\\]*'\]|\["[^"\\]*"\])*$"#;
    RegexSet::new([time, duration, odd, path]).ok()
});
const TIME: usize = 0;
const DURATION: usize = 1;
const ODD_PATTERN: usize = 2;
pub(super) const PATH: usize = 3;

pub(super) fn is(shape: usize, text: &str) -> bool {
    SHAPES.as_ref().is_some_and(|shapes| shapes.matches(text).matched(shape))
}

/// What an operator or a function gives for values; its target is the first one.
pub(super) fn call(name: &str, values: &[Value]) -> Result<Value, Problem> {
    let groups = [comparison, arithmetic, conversion, text, list];
    let found = groups.into_iter().find_map(|group| group(name, values)).filter(is_known);
    found.ok_or_else(|| unsuited(name, values))
}

/// Whether it is neither too large, nor a time or a duration that Kubernetes does not have.
fn is_known(value: &Value) -> bool {
    match value {
        Value::String(text) => text.len() <= LARGEST,
        Value::List(items) => items.len() <= LARGEST,
        Value::Timestamp(time) => YEARS_1_TO_9999.contains(&time.timestamp()),
        Value::Duration(duration) => duration.num_nanoseconds().is_some(),
        _ => true,
    }
}

fn comparison(name: &str, values: &[Value]) -> Option<Value> {
    let [one, other] = values else { return None };
    let order = || one.partial_cmp(other).filter(|_| *one != Value::Null);
    Some(match (name, other) {
        (operator::EQUALS, _) => (one == other).into(),
        (operator::NOT_EQUALS, _) => (one != other).into(),
        (operator::LESS, _) => order()?.is_lt().into(),
        (operator::LESS_EQUALS, _) => order()?.is_le().into(),
        (operator::GREATER, _) => order()?.is_gt().into(),
        (operator::GREATER_EQUALS, _) => order()?.is_ge().into(),
        (operator::IN, Value::List(items)) => items.contains(one).into(),
        (operator::IN, Value::Map(_)) => values::entry(other, one, false).is_ok().into(),
        ("isGreaterThan", _) => Quantity::compare(one, other)?.is_gt().into(),
        ("isLessThan", _) => Quantity::compare(one, other)?.is_lt().into(),
        ("compareTo", _) => (Quantity::compare(one, other)? as i64).into(),
        _ => return None,
    })
}

fn arithmetic(name: &str, values: &[Value]) -> Option<Value> {
    match (name, values) {
        (operator::LOGICAL_NOT, [Value::Bool(value)]) => Some(Value::Bool(!value)),
        (operator::NEGATE, [Value::Int(number)]) => number.checked_neg().map(Value::Int),
        (operator::NEGATE, [Value::Float(number)]) => Some(Value::Float(-number)),
        (operator::ADD, [one, other]) => (one.clone() + other.clone()).ok(),
        (operator::SUBSTRACT, [one, other]) => (one.clone() - other.clone()).ok(),
        (operator::MULTIPLY, [one, other]) => (one.clone() * other.clone()).ok(),
        (operator::DIVIDE, [one, other]) => (one.clone() / other.clone()).ok(),
        (operator::MODULO, [one, other]) => (one.clone() % other.clone()).ok(),
        _ => None,
    }
}

fn conversion(name: &str, values: &[Value]) -> Option<Value> {
    Some(match (name, values) {
        ("dyn", [value]) | ("string", [value @ Value::String(_)]) | ("int", [value @ Value::Int(_)]) => {
            value.clone()
        }
        ("string", [Value::Bool(value)]) => value.to_string().into(),
        ("string", [Value::Int(number)]) => number.to_string().into(),
        ("int", [Value::Float(number)]) => Value::Int(number.trunc().to_string().parse().ok()?),
        ("int", [Value::String(text)]) => Value::Int(text.parse().ok()?),
        ("timestamp", [Value::String(text)]) => time(text)?,
        ("duration", [Value::String(text)]) if is(DURATION, text) => duration(text.clone()).ok()?,
        ("quantity", [Value::String(text)]) => Value::Opaque(Arc::new(Quantity::read(text)?)),
        ("hasValue", [value]) => values::as_optional(value)?.value().is_some().into(),
        ("value", [value]) => values::as_optional(value)?.value()?.clone(),
        _ => return None,
    })
}

/// A time of RFC 3339.
pub(super) fn time(text: &Arc<String>) -> Option<Value> {
    timestamp(text.clone()).ok().filter(|value| is(TIME, text) && is_known(value))
}

fn text(name: &str, values: &[Value]) -> Option<Value> {
    let Value::String(text) = values.first()? else { return None };
    Some(match (name, &values[1..]) {
        ("size", []) => Value::Int(text.chars().count().try_into().ok()?),
        ("lowerAscii", []) => text.to_ascii_lowercase().into(),
        ("upperAscii", []) => text.to_ascii_uppercase().into(),
        ("trim", []) => text.trim().into(),
        ("startsWith", [Value::String(part)]) => text.starts_with(part.as_str()).into(),
        ("endsWith", [Value::String(part)]) => text.ends_with(part.as_str()).into(),
        ("contains", [Value::String(part)]) => text.contains(part.as_str()).into(),
        ("matches", [Value::String(pattern)]) if !is(ODD_PATTERN, pattern) => {
            Regex::new(pattern).ok()?.is_match(text).into()
        }
        ("split", [Value::String(separator)]) if !separator.is_empty() => {
            text.split(separator.as_str()).map(Value::from).collect::<Vec<_>>().into()
        }
        ("substring", [Value::Int(from)]) => part(text, *from, text.chars().count().try_into().ok()?)?,
        ("substring", [Value::Int(from), Value::Int(to)]) => part(text, *from, *to)?,
        _ => return None,
    })
}

/// From one character to before another one.
fn part(text: &str, from: i64, to: i64) -> Option<Value> {
    let characters: Vec<char> = text.chars().collect();
    let part = characters.get(from.try_into().ok()?..to.try_into().ok()?)?;
    Some(part.iter().collect::<String>().into())
}

fn list(name: &str, values: &[Value]) -> Option<Value> {
    Some(match (name, values) {
        ("size", [Value::List(items)]) => Value::Int(items.len().try_into().ok()?),
        ("size", [Value::Map(fields)]) => Value::Int(fields.map.len().try_into().ok()?),
        ("join", [Value::List(items)]) => joined(items, "")?,
        ("join", [Value::List(items), Value::String(separator)]) => joined(items, separator)?,
        ("sort", [Value::List(items)]) => sorted(items)?.into(),
        ("min", [Value::List(items)]) => sorted(items)?.into_iter().next()?,
        ("max", [Value::List(items)]) => sorted(items)?.pop()?,
        _ => return None,
    })
}

fn joined(items: &[Value], separator: &str) -> Option<Value> {
    let texts = items.iter().map(|item| match item {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    });
    let texts = texts.collect::<Option<Vec<_>>>()?;
    (texts.len() * separator.len() <= LARGEST).then(|| texts.join(separator).into())
}

/// In ascending order; none if the items are not all of one type that has an order.
fn sorted(items: &[Value]) -> Option<Vec<Value>> {
    let is_of_type = |item: &Value| mem::discriminant(item) == mem::discriminant(&items[0]);
    let has_order = |item: &Value| *item != Value::Null && item.partial_cmp(item).is_some();
    let mut sorted = items.iter().all(|item| is_of_type(item) && has_order(item)).then(|| items.to_vec())?;
    sorted.sort_by(|one, other| one.partial_cmp(other).unwrap_or(Ordering::Equal));
    Some(sorted)
}

/// A quantity of Kubernetes in units of 10^-9.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Quantity(i128);

/// The suffixes of units from 10^-9 on, each a thousand times the one before, and those of 1024.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
const NANO: i128 = 1_000_000_000;

impl Opaque for Quantity {
    fn runtime_type_name(&self) -> &'static str {
        "quantity"
    }
}

impl Quantity {
    /// None for one that is finer than 10^-9 or not below 2^63, which Kubernetes changes.
    pub(super) fn read(text: &str) -> Option<Self> {
        let end = text.find(|part: char| !(part.is_ascii_digit() || ".+-".contains(part)));
        let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
        let power = |base: i128, exponent: usize| base.checked_pow(exponent.try_into().ok()?);
        let unit = if let Some(prefix) = suffix.strip_suffix('i') {
            NANO.checked_mul(power(1024, BINARY.iter().position(|known| *known == prefix)? + 1)?)?
        } else if let Some(thousands) = DECIMAL.iter().position(|known| *known == suffix) {
            power(1000, thousands)?
        } else {
            let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            power(10, exponent.checked_add(9)?.try_into().ok()?)?
        };
        let (units, parts) = (digits.checked_mul(unit)?, power(10, fraction.len())?);
        let is_exact = units % parts == 0 && (units / parts).unsigned_abs() < (NANO << 63).unsigned_abs();
        is_exact.then_some(Self(units / parts))
    }

    /// None unless both are quantities.
    pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
        let (Value::Opaque(one), Value::Opaque(other)) = (one, other) else { return None };
        Some(one.downcast_ref::<Self>()?.cmp(other.downcast_ref()?))
    }
}

impl Expression {
    /// Whether two values are the same quantity, such as `1000m` and 1.
    #[must_use]
    pub fn is_same_quantity(one: &Json, other: &Json) -> bool {
        let [one, other] = [one, other].map(|value| Quantity::read(&field_path::text(value)?));
        one.is_some() && one == other
    }
}

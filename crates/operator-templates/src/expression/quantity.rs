use std::cmp::Ordering;

use cel::{Value, objects::Opaque};
use serde_json::Value as Json;

use crate::field_path;

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
        let is_exact = units % parts == 0 && (units / parts).abs() < NANO << 63;
        is_exact.then_some(Self(units / parts))
    }

    /// None unless both are quantities.
    pub(super) fn compare(one: &Value, other: &Value) -> Option<Ordering> {
        let (Value::Opaque(one), Value::Opaque(other)) = (one, other) else { return None };
        Some(one.downcast_ref::<Self>()?.cmp(other.downcast_ref()?))
    }
}

/// Whether two values are the same quantity, such as `1000m` and 1.
#[must_use]
pub fn is_same_quantity(one: &Json, other: &Json) -> bool {
    let [one, other] = [one, other].map(|value| Quantity::read(&field_path::text(value)?));
    one.is_some() && one == other
}

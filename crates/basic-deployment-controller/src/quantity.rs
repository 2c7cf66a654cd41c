//! Quantities of Kubernetes, such as `500m` and `1Gi`.

use serde_json::Value;

/// The suffixes of units from 10^-9 on, each a thousand times the one before, and those of 1024.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 6] = ["K", "M", "G", "T", "P", "E"];
const NANO: i128 = 1_000_000_000;

/// Whether two values are the same quantity, such as `1000m` and 1.
#[must_use]
pub fn is_same(one: &Value, other: &Value) -> bool {
    let [one, other] = [one, other].map(|value| match value {
        Value::String(text) => read(text),
        Value::Number(number) => read(&number.to_string()),
        _ => None,
    });
    one.is_some() && one == other
}

/// The quantity in units of 10^-9. None for one that is finer than that or not below 2^63, which Kubernetes changes.
fn read(text: &str) -> Option<i128> {
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
    is_exact.then_some(units / parts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_in_different_forms_are_the_same() {
        for (one, other) in [
            ("1.5Ki", "1536"),
            ("1e3", "1k"),
            ("1000m", "1"),
            (".5", "500m"),
            ("+1", "1."),
            ("1Ei", "1024Pi"),
        ] {
            assert!(is_same(&json!(one), &json!(other)), "{one} {other}");
        }
        assert!(is_same(&json!(1), &json!("1000m")) && is_same(&json!(1.5), &json!("1500m")));
        for (one, other) in [("1Gi", "1G"), ("-1", "1"), ("1n", "0"), ("7E", "0.001u")] {
            assert!(!is_same(&json!(one), &json!(other)), "{one} {other}");
        }
    }

    #[test]
    fn what_kubernetes_changes_or_refuses_is_not_the_same_as_anything() {
        for text in [
            "99999999999999999999E",
            "10000000000000000000E",
            "1e200",
            "1E-200",
            "1e99999999999",
            "100000000000000000000000000000000000000000",
            "-170141183460469231731687303715884105728n",
            "8Ei",
            "0.1n",
            "1ki",
            "1e",
            "1 Gi",
            "",
        ] {
            assert!(!is_same(&json!(text), &json!(text)), "{text}");
        }
        assert!(!is_same(&json!(true), &json!(true)));
    }
}

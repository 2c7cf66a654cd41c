//! Quantities like `100m` or `4Gi`, as far as `resourceFieldRef` needs them.

/// The number that a quantity stands for.
pub fn parse(text: &str) -> Option<f64> {
    let digits =
        text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | '-' | '+')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let factor = match suffix {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        "Pi" => 1024.0 * 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return text.parse().ok(),
    };
    Some(number.parse::<f64>().ok()? * factor)
}

/// `quantity` in units of `divisor`, rounded up as Kubernetes does.
pub fn divide(quantity: &str, divisor: Option<&str>) -> Option<String> {
    let divisor = divisor.filter(|divisor| *divisor != "0").map_or(Some(1.0), parse)?;
    // A hair less, so that 0.1 / 0.001 is 100 and not 101.
    Some(format!("{:.0}", (parse(quantity)? / divisor - 1e-9).ceil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_divided_and_rounded_up() {
        for (quantity, divisor, expected) in [
            ("500m", None, "1"),
            ("100m", Some("1m"), "100"),
            ("2", Some("0"), "2"),
            ("64Mi", None, "67108864"),
            ("64Mi", Some("1Mi"), "64"),
            ("1.5Gi", Some("1Gi"), "2"),
            ("1e3", None, "1000"),
        ] {
            assert_eq!(divide(quantity, divisor).as_deref(), Some(expected), "{quantity} / {divisor:?}");
        }
        assert_eq!(divide("many", None), None);
    }
}

//! The median of several runs with their spread, and the growth over several sizes.

use serde::Serialize;

/// The values of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of some values; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        // The same element twice if their number is odd.
        let (low, high) = (sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max })
    }
}

/// The exponent of growth: the slope of the least-squares line through the logarithms of sizes and values, so that 1 is
/// linear and 2 quadratic. `None` without two sizes, or with a value that has no logarithm.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    if points.iter().any(|(size, value)| *size <= 0.0 || *value <= 0.0) {
        return None;
    }
    let logarithms: Vec<(f64, f64)> = points.iter().map(|(size, value)| (size.ln(), value.ln())).collect();
    let count = f64::from(u32::try_from(points.len()).ok()?);
    let mean = |of: fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>() / count;
    let (size, value) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |of: &dyn Fn(&(f64, f64)) -> f64| logarithms.iter().map(of).sum::<f64>();
    let variance = sum(&|point| (point.0 - size).powi(2));
    let covariance = sum(&|point| (point.0 - size) * (point.1 - value));
    (variance > f64::EPSILON).then(|| covariance / variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two_in_the_middle() {
        assert_eq!(Spread::of(&[9.0, 1.0, 5.0]), Some(Spread { median: 5.0, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of(&[9.0, 1.0, 5.0, 6.0]), Some(Spread { median: 5.5, min: 1.0, max: 9.0 }));
        assert_eq!(Spread::of(&[2.0]), Some(Spread { median: 2.0, min: 2.0, max: 2.0 }));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn linear_growth_has_the_exponent_one_and_quadratic_growth_two() {
        let grown = |by: fn(f64) -> f64| exponent(&[300.0, 1000.0, 3000.0].map(|size| (size, by(size))));
        for (by, wanted) in [
            ((|n| 7.0 * n) as fn(f64) -> f64, 1.0),
            (|n| 0.1 * n * n, 2.0),
            (|_| 5.0, 0.0),
            (|n| 1.0 / n, -1.0),
        ] {
            assert!((grown(by).unwrap() - wanted).abs() < 1e-9, "{:?} is not {wanted}", grown(by));
        }
        // A constant part hides a part of the growth.
        let with_base = grown(|n| 1000.0 + n).unwrap();
        assert!(with_base > 0.3 && with_base < 0.7, "{with_base}");
    }

    #[test]
    fn nothing_grows_over_one_size_or_from_zero() {
        assert_eq!(exponent(&[(300.0, 1.0)]), None);
        assert_eq!(exponent(&[(300.0, 1.0), (300.0, 2.0)]), None);
        assert_eq!(exponent(&[(300.0, 0.0), (1000.0, 2.0)]), None);
        assert_eq!(exponent(&[]), None);
    }
}

//! A measured figure.

use std::{fmt, time::Duration};

use serde::Serialize;

/// The name of the figure that answers how long a scenario took.
pub const TIME: &str = "time";

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    pub name: String,
    pub unit: Unit,
    pub value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    Seconds,
    Mebibytes,
    Bytes,
    Count,
    PerObject,
    Percent,
}

impl Figure {
    pub fn new(name: impl Into<String>, unit: Unit, value: f64) -> Self {
        Self { name: name.into(), unit, value }
    }

    pub fn seconds(name: impl Into<String>, value: Duration) -> Self {
        Self::new(name, Unit::Seconds, value.as_secs_f64())
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of requests are far below 2^52")]
    pub fn count(name: impl Into<String>, value: usize) -> Self {
        Self::new(name, Unit::Count, value as f64)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.name, self.unit.number(self.value), self.unit.suffix())
    }
}

impl Unit {
    /// A value without its unit.
    pub fn number(self, value: f64) -> String {
        match self {
            Self::Seconds | Self::PerObject => format!("{value:.2}"),
            Self::Mebibytes => format!("{value:.1}"),
            Self::Bytes | Self::Count | Self::Percent => format!("{value:.0}"),
        }
    }

    /// What follows the number.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Seconds => " s",
            Self::Mebibytes => " MiB",
            Self::Bytes => " bytes",
            Self::Percent => " %",
            Self::Count | Self::PerObject => "",
        }
    }
}

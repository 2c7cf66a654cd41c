//! A measurement, which figures are a part of.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{figure::Figure, scenario::Scenario, subject::Subject};

/// The measurement of one subject in one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub scenario: Scenario,
    pub subject: Subject,
    pub objects: usize,
    /// Those of each object at the end.
    pub replicas: usize,
    /// Counted from 1.
    pub run: usize,
    pub figures: Vec<Figure>,
    /// The number of requests of the controllers, by verb, resource and code.
    pub requests: BTreeMap<String, usize>,
}

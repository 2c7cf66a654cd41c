//! The scenarios, and their order.

use clap::ValueEnum;
use serde::Serialize;

/// The scenarios, in the order in which one set of objects goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// The objects are created, until all are ready
    Create,
    /// Each object gets two replicas more, until all are ready
    Scale,
    /// Each object gets another image, until all pods are replaced
    Roll,
    /// The controllers are killed, until a new object is ready
    Restart,
}

impl Scenario {
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Scale => "scale",
            Self::Roll => "roll",
            Self::Restart => "restart",
        }
    }

    /// The chosen ones, once each and in their order.
    pub fn in_order(chosen: &[Self]) -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|scenario| chosen.contains(scenario)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_keeps_its_place_and_its_name() {
        let twice = [Scenario::Roll, Scenario::Create, Scenario::Roll];
        assert_eq!(Scenario::in_order(&twice), [Scenario::Create, Scenario::Roll]);
        for scenario in Scenario::value_variants() {
            assert_eq!(scenario.to_possible_value().unwrap().get_name(), scenario.name());
        }
    }
}

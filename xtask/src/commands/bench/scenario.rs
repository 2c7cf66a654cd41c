//! The scenarios, and their order.

use clap::{ValueEnum, builder::PossibleValue};
use serde::Serialize;

/// The scenarios, in the order in which one set of objects goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Scenario {
    /// The objects are created, until all are ready
    Create,
    /// Nothing changes for 20 seconds
    Steady,
    /// Each object gets two replicas more, until all are ready
    Scale,
    /// Each object gets another image, until all pods are replaced
    Roll,
    /// Each object gets one restart command, until all have succeeded
    Commands,
    /// The controllers are killed, until a new object is ready
    Restart,
    /// The objects are deleted, until no pod is left
    Delete,
    /// Protected objects are deleted, until all are backed up and gone
    Backups,
}

/// A chosen scenario, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    All,
    One(Scenario),
}

impl Scenario {
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Steady => "steady",
            Self::Scale => "scale",
            Self::Roll => "roll",
            Self::Commands => "commands",
            Self::Restart => "restart",
            Self::Delete => "delete",
            Self::Backups => "backups",
        }
    }
}

impl Choice {
    /// The chosen scenarios, once each and in their order.
    pub fn scenarios(choices: &[Self]) -> Vec<Scenario> {
        let is_chosen = |scenario| choices.contains(&Self::All) || choices.contains(&Self::One(scenario));
        Scenario::value_variants().iter().copied().filter(|scenario| is_chosen(*scenario)).collect()
    }
}

impl ValueEnum for Choice {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::One(Scenario::Create),
            Self::One(Scenario::Steady),
            Self::One(Scenario::Scale),
            Self::One(Scenario::Roll),
            Self::One(Scenario::Commands),
            Self::One(Scenario::Restart),
            Self::One(Scenario::Delete),
            Self::One(Scenario::Backups),
            Self::All,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::One(scenario) => scenario.to_possible_value(),
            Self::All => Some(PossibleValue::new("all").help("All of them, in this order")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_can_be_chosen_and_keeps_its_place() {
        let every = Scenario::value_variants();
        let choices: Vec<Choice> = every.iter().copied().map(Choice::One).collect();
        assert_eq!(Choice::value_variants()[..every.len()], choices);
        assert_eq!(Choice::scenarios(&[Choice::All]), every);
        let twice = [Scenario::Delete, Scenario::Create, Scenario::Delete].map(Choice::One);
        assert_eq!(Choice::scenarios(&twice), [Scenario::Create, Scenario::Delete]);
        for scenario in every {
            assert_eq!(scenario.to_possible_value().unwrap().get_name(), scenario.name());
        }
    }
}

//! The requirements of the replica contract that only behaviour shows, and how long each may take.

use std::{collections::BTreeMap, fmt, time::Duration};

use clap::ValueEnum;
use serde::Serialize;

/// A requirement that is tried on real objects, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ValueEnum)]
#[serde(rename_all = "camelCase")]
#[value(rename_all = "camelCase")]
pub enum Requirement {
    /// The replicas follow the desired number, up and down.
    Scaling,
    /// The outputs say which generation they refer to.
    ObservedGeneration,
    /// Each output has its type, or is not reported yet.
    Outputs,
    /// Only replicas that serve are counted.
    Active,
    /// Ready is true if, and only if, all replicas are new and serve.
    Ready,
    /// A changed template replaces the replicas.
    Replacement,
    /// Ready is never true while the new template does not serve.
    BadTemplate,
    /// Some replicas serve during each change.
    Budget,
    /// Another restart token replaces all replicas.
    Restart,
    /// Nothing is written while nothing changes.
    SteadyState,
    /// Fields of other field managers stay.
    ForeignFields,
    /// With the child, all its replicas go.
    Deletion,
    /// The number of new replicas is right.
    Updated,
    /// An object that is not ready is named.
    BlockedBy,
    /// The selector selects the replicas, and nothing else.
    Selector,
}

/// RFC 2119
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// The kind does not honour the contract without it.
    Must,
    /// A parent has less to show without it.
    Should,
}

impl Requirement {
    /// Whether a kind that fails it does not honour the contract.
    pub fn level(self) -> Level {
        match self {
            Self::Updated | Self::BlockedBy | Self::Selector => Level::Should,
            _ => Level::Must,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How long the trials may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Of a requirement without a limit of its own.
    pub each: Duration,
    /// Of some requirements.
    pub own: BTreeMap<Requirement, Duration>,
    /// The time for which something must not happen: a write in the steady state, readiness with the bad template.
    pub window: Duration,
}

impl Limits {
    /// The limit of a requirement.
    pub fn of(&self, requirement: Requirement) -> Duration {
        self.own.get(&requirement).copied().unwrap_or(self.each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_requirement_is_found_by_the_name_in_the_report() {
        for requirement in Requirement::value_variants() {
            let name = requirement.to_string();
            assert_eq!(Requirement::from_str(&name, false).as_ref(), Ok(requirement));
            assert_eq!(serde_json::to_value(requirement).unwrap(), name);
        }
    }

    #[test]
    fn the_page_of_the_contract_names_each_requirement_with_its_level() {
        let page = include_str!("../../../../../docs/replica-contract.md");
        for requirement in Requirement::value_variants() {
            let (name, level) = (format!("`{requirement}`"), format!("| {} |", requirement.level()));
            let is_its =
                |line: &str| line.starts_with("| `") && line.contains(&name) && line.contains(&level);
            assert!(page.lines().any(is_its), "{name} {level}");
        }
    }
}

//! The requirements of the replica contract that only behaviour shows.

use std::{fmt, str::FromStr};

use serde::Serialize;

/// A requirement that is tried on real objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Requirement {
    /// The replicas follow the desired number, up and down.
    Scaling,
    /// The outputs say which generation they refer to.
    ObservedGeneration,
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
    /// All of them, in the order of the report.
    pub const ALL: [Self; 14] = [
        Self::Scaling,
        Self::ObservedGeneration,
        Self::Active,
        Self::Ready,
        Self::Replacement,
        Self::BadTemplate,
        Self::Budget,
        Self::Restart,
        Self::SteadyState,
        Self::ForeignFields,
        Self::Deletion,
        Self::Updated,
        Self::BlockedBy,
        Self::Selector,
    ];

    /// Whether a kind that fails it does not honour the contract.
    pub fn level(self) -> Level {
        match self {
            Self::Updated | Self::BlockedBy | Self::Selector => Level::Should,
            _ => Level::Must,
        }
    }

    /// Its name, as in the report and in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scaling => "scaling",
            Self::ObservedGeneration => "observedGeneration",
            Self::Active => "active",
            Self::Ready => "ready",
            Self::Replacement => "replacement",
            Self::BadTemplate => "badTemplate",
            Self::Budget => "budget",
            Self::Restart => "restart",
            Self::SteadyState => "steadyState",
            Self::ForeignFields => "foreignFields",
            Self::Deletion => "deletion",
            Self::Updated => "updated",
            Self::BlockedBy => "blockedBy",
            Self::Selector => "selector",
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Must => "MUST",
            Self::Should => "SHOULD",
        })
    }
}

impl FromStr for Requirement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = || Self::ALL.map(Self::name).join(", ");
        let found = Self::ALL.into_iter().find(|requirement| requirement.name() == text);
        found.ok_or_else(|| format!("{text:?} is no requirement; there are: {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_requirement_is_found_by_the_name_in_the_report() {
        for requirement in Requirement::ALL {
            assert_eq!(requirement.name().parse(), Ok(requirement));
            assert_eq!(serde_json::to_value(requirement).unwrap(), requirement.name());
        }
        assert!("speed".parse::<Requirement>().unwrap_err().contains("badTemplate"));
    }

    #[test]
    fn the_page_of_the_contract_names_each_requirement_with_its_level() {
        let page = include_str!("../../../../../docs/replica-contract.md");
        for requirement in Requirement::ALL {
            let (name, level) = (format!("`{requirement}`"), format!("| {} |", requirement.level()));
            let is_its =
                |line: &str| line.starts_with("| `") && line.contains(&name) && line.contains(&level);
            assert!(page.lines().any(is_its), "{name} {level}");
        }
    }
}

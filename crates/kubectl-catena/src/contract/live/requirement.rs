//! The requirements of the replica contract that only behaviour shows, and how long each may take.

use std::{fmt, time::Duration};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::issue::duration;

/// The time limit of a requirement without one.
const TIMEOUT: Duration = Duration::from_secs(120);

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

impl Requirement {
    /// Whether a kind that fails it does not honour the contract; without another one, a parent has less to show.
    pub fn is_must(self) -> bool {
        !matches!(self, Self::Updated | Self::BlockedBy | Self::Selector)
    }

    /// How the contract puts it, in the words of RFC 2119.
    pub fn level(self) -> &'static str {
        if self.is_must() { "MUST" } else { "SHOULD" }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How long the trials may take.
#[derive(Args, Clone, Debug)]
pub struct Limits {
    /// The time limit of each requirement, or of one, for example 5m or scaling=10m [default: 2m]
    #[arg(long = "timeout", value_name = "[REQUIREMENT=]DURATION", value_parser = limit, requires = "live")]
    pub timeouts: Vec<(Option<Requirement>, Duration)>,
    /// The time for which nothing may be written in the steady state, and the bad template may not be ready
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = duration, requires = "live")]
    pub window: Duration,
}

impl Limits {
    /// The limit of a requirement.
    pub fn of(&self, requirement: Requirement) -> Duration {
        let last = |of| self.timeouts.iter().rfind(|(named, _)| *named == of).map(|(_, limit)| *limit);
        last(Some(requirement)).or_else(|| last(None)).unwrap_or(TIMEOUT)
    }
}

/// `5m` or `scaling=5m`
fn limit(text: &str) -> Result<(Option<Requirement>, Duration)> {
    let Some((name, limit)) = text.split_once('=') else { return Ok((None, duration(text)?)) };
    let Ok(requirement) = Requirement::from_str(name, false) else {
        let names: Vec<_> = Requirement::value_variants().iter().map(ToString::to_string).collect();
        bail!("{name:?} is no requirement; there are: {}", names.join(", "));
    };
    Ok((Some(requirement), duration(limit)?))
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

    #[test]
    fn a_time_limit_is_for_all_requirements_or_for_one() {
        let seconds = Duration::from_secs;
        assert_eq!(limit("90s").unwrap(), (None, seconds(90)));
        assert_eq!(limit("budget=1m").unwrap(), (Some(Requirement::Budget), seconds(60)));
        assert!(limit("speed=1m").unwrap_err().to_string().contains("steadyState"));
        assert!(limit("budget=soon").is_err());
        let limits = |texts: &[&str]| {
            let timeouts = texts.iter().map(|text| limit(text).unwrap()).collect();
            let limits = Limits { timeouts, window: seconds(5) };
            (limits.of(Requirement::Budget).as_secs(), limits.of(Requirement::Ready).as_secs())
        };
        assert_eq!(limits(&[]), (120, 120));
        assert_eq!(limits(&["budget=1m", "30s", "40s"]), (60, 40));
    }
}

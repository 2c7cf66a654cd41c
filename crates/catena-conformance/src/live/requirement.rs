//! The requirements of the replica contract that only behaviour shows: how long each may take, and what the trials have shown.

use std::{cell::RefCell, collections::BTreeMap, fmt, time::Duration};

use anyhow::{Result, bail};
use catena_terminal::{Cell, Table, Tone, parse_duration};
use clap::{Args, ValueEnum};
use kube::discovery::ApiResource;
use serde::Serialize;

use crate::Report;

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
    #[arg(long, default_value = "5s", value_name = "DURATION", value_parser = parse_duration, requires = "live")]
    pub window: Duration,
}

impl Limits {
    /// The limit of a requirement.
    pub(crate) fn of(&self, requirement: Requirement) -> Duration {
        let last = |of| self.timeouts.iter().rfind(|(named, _)| *named == of).map(|(_, limit)| *limit);
        last(Some(requirement)).or_else(|| last(None)).unwrap_or(TIMEOUT)
    }
}

/// `5m` or `scaling=5m`
fn limit(text: &str) -> Result<(Option<Requirement>, Duration)> {
    let Some((name, limit)) = text.split_once('=') else { return Ok((None, parse_duration(text)?)) };
    let Ok(requirement) = Requirement::from_str(name, false) else {
        let names: Vec<_> = Requirement::value_variants().iter().map(ToString::to_string).collect();
        bail!("{name:?} is no requirement; there are: {}", names.join(", "));
    };
    Ok((Some(requirement), parse_duration(limit)?))
}

/// What a trial has shown: why its requirement holds, or why not.
pub type Seen = Result<String, String>;

/// The results so far.
#[derive(Debug, Default)]
pub struct Ledger(RefCell<BTreeMap<Requirement, (Verdict, String)>>);

/// The result of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// It was seen to hold.
    Passed,
    /// It was seen not to hold.
    Failed,
    /// No trial could show it.
    NotProven,
    /// The kind does not have what it is about.
    NotApplicable,
}

/// The result of a requirement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// The requirement.
    pub name: Requirement,
    /// Whether the kind has to fulfil it.
    pub level: &'static str,
    /// The result.
    pub result: Verdict,
    /// What was seen.
    pub seen: String,
}

impl Ledger {
    /// What a trial has shown: that it holds, or that it does not.
    pub fn conclude(&self, requirement: Requirement, seen: Seen) {
        match seen {
            Ok(seen) => self.pass(requirement, seen),
            Err(seen) => self.fail(requirement, seen),
        }
    }

    /// It was seen to hold. A requirement that has failed once stays failed.
    pub fn pass(&self, requirement: Requirement, seen: impl Into<String>) {
        self.set(requirement, Verdict::Passed, seen.into());
    }

    /// It was seen not to hold. The first failure is reported.
    pub fn fail(&self, requirement: Requirement, seen: impl Into<String>) {
        self.set(requirement, Verdict::Failed, seen.into());
    }

    /// It cannot be shown, for this reason.
    pub fn leave_open(&self, requirement: Requirement, why: impl Into<String>) {
        self.set(requirement, Verdict::NotProven, why.into());
    }

    /// It does not concern this kind.
    pub fn skip(&self, requirement: Requirement, why: impl Into<String>) {
        if !self.0.borrow().contains_key(&requirement) {
            self.set(requirement, Verdict::NotApplicable, why.into());
        }
    }

    /// Whether it was seen not to hold.
    pub fn has_failed(&self, requirement: Requirement) -> bool {
        self.0.borrow().get(&requirement).is_some_and(|(verdict, _)| *verdict == Verdict::Failed)
    }

    fn set(&self, requirement: Requirement, verdict: Verdict, seen: String) {
        if !self.has_failed(requirement) {
            self.0.borrow_mut().insert(requirement, (verdict, seen));
        }
    }

    /// The report at the end.
    pub fn report(&self, kind: &ApiResource) -> Report {
        let results = self.0.borrow();
        let line = |name: &Requirement| {
            let open = || (Verdict::NotProven, "no trial came so far".to_owned());
            let (result, seen) = results.get(name).cloned().unwrap_or_else(open);
            Line { name: *name, level: name.level(), result, seen }
        };
        let requirements: Vec<Line> = Requirement::value_variants().iter().map(line).collect();
        let breaks_it =
            |line: &&Line| line.name.is_must() && matches!(line.result, Verdict::Failed | Verdict::NotProven);
        let (of, broken) = (&kind.kind, requirements.iter().filter(breaks_it).count());
        let verdict = match broken {
            0 => format!("{of} was seen to honour the replica contract v1"),
            1 => format!("{of} was not seen to honour the replica contract v1: one MUST"),
            many => format!("{of} was not seen to honour the replica contract v1: {many} MUSTs"),
        };
        let table = table(&requirements);
        Report { requirements, ..Report::new(kind, broken == 0, verdict, table) }
    }
}

fn table(requirements: &[Line]) -> Table {
    let mut table = Table::of(["", "REQUIREMENT", "LEVEL", "SEEN"]);
    for Line { name, level, result, seen } in requirements {
        let (sign, tone) = match result {
            Verdict::Passed => ("✓", Tone::Good),
            Verdict::Failed if name.is_must() => ("✗", Tone::Bad),
            Verdict::Failed => ("✗", Tone::Moving),
            Verdict::NotProven => ("?", Tone::Moving),
            Verdict::NotApplicable => ("–", Tone::Quiet),
        };
        table.push([Cell::toned(tone, sign), name.to_string().into(), level.into(), seen.into()]);
    }
    table
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use catena_cluster::testing::kinds;

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
        let page = include_str!("../../../../docs/replica-contract.md");
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

    fn report(ledger: &Ledger) -> Report {
        ledger.report(&kinds().find("deployments").unwrap().resource)
    }

    fn all_passed() -> Ledger {
        let ledger = Ledger::default();
        for requirement in Requirement::value_variants() {
            ledger.pass(*requirement, "it was seen");
        }
        ledger
    }

    #[test]
    fn a_kind_honours_the_contract_only_if_every_must_was_seen() {
        assert!(!report(&Ledger::default()).honours);
        assert!(report(&all_passed()).honours);
        let without = |requirement| {
            let ledger = all_passed();
            ledger.fail(requirement, "it was not so");
            report(&ledger).honours
        };
        for requirement in Requirement::value_variants() {
            assert_eq!(without(*requirement), !requirement.is_must(), "{requirement}");
        }
    }

    #[test]
    fn a_report_for_scripts_names_the_kind_beside_its_requirements() {
        let document = serde_json::to_value(report(&all_passed())).unwrap();
        let names: Vec<_> = document.as_object().unwrap().keys().collect();
        assert_eq!(names, ["apiVersion", "honours", "kind", "requirements"]);
        assert_eq!(document["requirements"][0]["name"], "scaling");
    }

    #[test]
    fn a_later_trial_does_not_mend_a_failure() {
        let ledger = all_passed();
        ledger.fail(Requirement::Ready, "the first");
        ledger.fail(Requirement::Ready, "the second");
        ledger.pass(Requirement::Ready, "it holds");
        let text = strip_str(&report(&ledger).text()).to_string();
        assert!(text.contains("the first") && !text.contains("the second"), "{text}");
        assert!(
            text.starts_with("Deployment was not seen to honour the replica contract v1: one MUST\n"),
            "{text}"
        );
    }
}

//! What the trials have shown, requirement by requirement.

use std::{cell::RefCell, collections::BTreeMap};

use catena_cluster::Tone;
use clap::ValueEnum;
use kube::discovery::ApiResource;
use serde::Serialize;

use super::Requirement;
use crate::{
    contract::Report,
    screen::{Cell, Table},
};

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

/// The result of each requirement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Requirements {
    /// Requirement by requirement.
    pub requirements: Vec<Line>,
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
    pub fn report(&self, kind: &ApiResource) -> Report<Requirements> {
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
        Report::new(kind, broken == 0, Requirements { requirements }, verdict, table)
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

    use catena_cluster::{Paint, testing::kinds};

    use super::*;

    fn report(ledger: &Ledger) -> Report<Requirements> {
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
        let text = report(&ledger).text(Paint::OFF);
        assert!(text.contains("the first") && !text.contains("the second"), "{text}");
        assert!(
            text.starts_with("Deployment was not seen to honour the replica contract v1: one MUST\n"),
            "{text}"
        );
    }
}

//! What the trials have shown, requirement by requirement.

use std::{cell::RefCell, collections::BTreeMap};

use serde::Serialize;

use super::requirement::{Level, Requirement};
use crate::{
    kinds::Kind,
    paint::{Paint, Tone},
    table::{Cell, Table},
};

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

/// The result for a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// API version of the kind.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// Whether every MUST was seen to hold, as far as it applies.
    pub honours: bool,
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
    pub level: Level,
    /// The result.
    pub result: Verdict,
    /// What was seen.
    pub seen: String,
}

impl Ledger {
    /// It was seen to hold. A requirement that has failed once stays failed.
    pub fn pass(&self, requirement: Requirement, seen: impl Into<String>) {
        if !self.has_failed(requirement) {
            self.set(requirement, Verdict::Passed, seen.into());
        }
    }

    /// It was seen not to hold. The first failure is reported.
    pub fn fail(&self, requirement: Requirement, seen: impl Into<String>) {
        if !self.has_failed(requirement) {
            self.set(requirement, Verdict::Failed, seen.into());
        }
    }

    /// It cannot be shown, for this reason.
    pub fn leave_open(&self, requirement: Requirement, why: impl Into<String>) {
        if !self.has_failed(requirement) {
            self.set(requirement, Verdict::NotProven, why.into());
        }
    }

    /// It does not concern this kind.
    pub fn skip(&self, requirement: Requirement, why: impl Into<String>) {
        if !self.is_known(requirement) {
            self.set(requirement, Verdict::NotApplicable, why.into());
        }
    }

    /// Whether it was seen not to hold.
    pub fn has_failed(&self, requirement: Requirement) -> bool {
        self.0.borrow().get(&requirement).is_some_and(|(verdict, _)| *verdict == Verdict::Failed)
    }

    /// Whether it has a result.
    pub fn is_known(&self, requirement: Requirement) -> bool {
        self.0.borrow().contains_key(&requirement)
    }

    fn set(&self, requirement: Requirement, verdict: Verdict, seen: String) {
        self.0.borrow_mut().insert(requirement, (verdict, seen));
    }

    /// The report at the end.
    pub fn report(&self, kind: &Kind) -> Report {
        let results = self.0.borrow();
        let requirements: Vec<Line> = Requirement::ALL
            .into_iter()
            .map(|name| {
                let open = || (Verdict::NotProven, "no trial came so far".to_owned());
                let (result, seen) = results.get(&name).cloned().unwrap_or_else(open);
                Line { name, level: name.level(), result, seen }
            })
            .collect();
        Report {
            api_version: kind.resource.api_version.clone(),
            kind: kind.resource.kind.clone(),
            honours: !requirements.iter().any(Line::breaks_the_contract),
            requirements,
        }
    }
}

impl Line {
    fn breaks_the_contract(&self) -> bool {
        self.level == Level::Must && matches!(self.result, Verdict::Failed | Verdict::NotProven)
    }
}

impl Report {
    /// The report for people.
    pub fn text(&self, paint: Paint) -> String {
        let mut table = Table::of(["", "REQUIREMENT", "LEVEL", "SEEN"]);
        for line in &self.requirements {
            let (sign, tone) = match line.result {
                Verdict::Passed => ("✓", Tone::Good),
                Verdict::Failed if line.level == Level::Must => ("✗", Tone::Bad),
                Verdict::Failed => ("✗", Tone::Moving),
                Verdict::NotProven => ("?", Tone::Moving),
                Verdict::NotApplicable => ("–", Tone::Quiet),
            };
            table.push([
                Cell::toned(tone, sign),
                line.name.name().into(),
                line.level.to_string().into(),
                line.seen.as_str().into(),
            ]);
        }
        let broken = self.requirements.iter().filter(|line| line.breaks_the_contract()).count();
        let verdict = match broken {
            0 => paint.tone(Tone::Good, &format!("{} was seen to honour the replica contract v1", self.kind)),
            1 => {
                paint.bad(&format!("{} was not seen to honour the replica contract v1: one MUST", self.kind))
            }
            many => paint
                .bad(&format!("{} was not seen to honour the replica contract v1: {many} MUSTs", self.kind)),
        };
        format!("{verdict}\n\n{}", table.render(paint))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::kinds;

    fn report(ledger: &Ledger) -> Report {
        ledger.report(kinds().find("deployments").unwrap())
    }

    fn all_passed() -> Ledger {
        let ledger = Ledger::default();
        for requirement in Requirement::ALL {
            ledger.pass(requirement, "it was seen");
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
        for requirement in Requirement::ALL {
            assert_eq!(without(requirement), requirement.level() == Level::Should, "{requirement}");
        }
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

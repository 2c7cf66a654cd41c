//! The outcomes of many runs: fault × controller → runs, lost, duplicated.

use std::{collections::BTreeMap, fmt};

use super::{plan::Plan, story::Outcome};
use crate::{CONTROLLERS, Controller};

/// Counts the outcomes of runs by fault.
#[derive(Default)]
pub struct Table(BTreeMap<String, Row>);

#[derive(Default)]
struct Row {
    /// By the name of the disturbed controller.
    runs: BTreeMap<String, usize>,
    not_reached: usize,
    lost: usize,
    duplicated: usize,
    rule_broken: usize,
}

impl Table {
    /// Adds the outcome of one run.
    pub fn add(&mut self, plans: &[Plan], outcome: &Outcome) {
        let faults = plans.iter().flat_map(|plan| plan.faults.iter().map(move |fault| (plan, fault)));
        for (plan, fault) in faults {
            let row = self.0.entry(fault.name()).or_default();
            *row.runs.entry(plan.controller.clone()).or_default() += 1;
            row.not_reached += usize::from(outcome.ahead.contains(fault));
            row.lost += usize::from(outcome.lost.is_some());
            row.duplicated += usize::from(outcome.duplicated.is_some());
            row.rule_broken += usize::from(!outcome.offences.is_empty());
        }
    }
}

/// As Markdown, for a page.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = CONTROLLERS.map(Controller::name);
        writeln!(f, "| fault | {} | not reached | lost | duplicated | rule broken |", names.join(" | "))?;
        writeln!(f, "|---|{}", "---:|".repeat(names.len() + 4))?;
        for (fault, row) in &self.0 {
            let runs = names.map(|name| row.runs.get(name).copied().unwrap_or_default().to_string());
            let Row { not_reached, lost, duplicated, rule_broken, .. } = row;
            let runs = runs.join(" | ");
            writeln!(f, "| {fault} | {runs} | {not_reached} | {lost} | {duplicated} | {rule_broken} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chaos::{Fault, ListFault};

    #[test]
    fn a_run_counts_for_its_fault_and_controller() {
        let faults = vec![Fault::List { number: 1, how: ListFault::Cut }];
        let plans = [Plan { controller: "command-binder".into(), faults }];
        let mut table = Table::default();
        table.add(&plans, &Outcome::default());
        table.add(&plans, &Outcome { lost: Some("it hangs".into()), ..Outcome::default() });
        let text = table.to_string();
        let mut lines = text.lines().map(|line| line.trim_matches('|').split('|').map(str::trim));
        let (head, row) = (lines.next().unwrap(), lines.nth(1).unwrap());
        let told: Vec<_> = head.zip(row).filter(|(_, cell)| *cell != "0").collect();
        assert_eq!(told, [("fault", "list cut halfway"), ("command-binder", "2"), ("lost", "1")]);
    }
}

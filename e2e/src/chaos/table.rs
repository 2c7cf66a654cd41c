//! What came of many runs: fault × controller → runs, lost, duplicated.

use std::{collections::BTreeMap, fmt};

use super::{plan::Plan, story::Outcome};

/// Counts the outcomes of runs by fault and controller.
#[derive(Default)]
pub struct Table(BTreeMap<(String, String), Row>);

#[derive(Default)]
struct Row {
    runs: usize,
    not_reached: usize,
    lost: usize,
    duplicated: usize,
    offences: usize,
}

impl Table {
    /// Adds the outcome of one run.
    pub fn add(&mut self, plans: &[Plan], outcome: &Outcome) {
        let faults = plans.iter().flat_map(|plan| plan.faults.iter().map(move |fault| (plan, fault)));
        for (plan, fault) in faults {
            let row = self.0.entry((fault.name(), plan.controller.clone())).or_default();
            row.runs += 1;
            row.not_reached += usize::from(outcome.ahead.contains(fault));
            row.lost += usize::from(outcome.lost.is_some());
            row.duplicated += usize::from(outcome.duplicated.is_some());
            row.offences += usize::from(!outcome.offences.is_empty());
        }
    }
}

/// As Markdown, so that it can be kept in a page.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| fault | controller | runs | not reached | lost | duplicated | rule broken |")?;
        writeln!(f, "|---|---|---:|---:|---:|---:|---:|")?;
        for ((fault, controller), row) in &self.0 {
            let Row { runs, not_reached, lost, duplicated, offences } = row;
            writeln!(
                f,
                "| {fault} | {controller} | {runs} | {not_reached} | {lost} | {duplicated} | {offences} |"
            )?;
        }
        Ok(())
    }
}

//! What is left of a run: tables on standard output, which are Markdown and can be read as they stand, and a file on request.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use local_cluster::files;
use serde::Serialize;

use super::{
    Options,
    figure::{Figure, Unit},
    scenarios::Scenario,
    subject::Subject,
};

/// The measurement of one subject in one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Sample {
    pub scenario: Scenario,
    pub subject: Subject,
    pub objects: usize,
    /// Those of each object at the end.
    pub replicas: usize,
    /// Counted from 1.
    pub run: usize,
    pub figures: Vec<Figure>,
    /// The number of requests of the controllers, by verb, resource and code.
    pub requests: BTreeMap<String, usize>,
}

#[derive(Serialize)]
struct Document<'a> {
    replicas: usize,
    pod_bytes: usize,
    runs: usize,
    cpus: usize,
    summary: &'a [Group],
    samples: &'a [Sample],
}

/// Prints the tables, and writes the file.
pub fn write(samples: &[Sample], options: &Options) -> Result<()> {
    let summary = Group::all(samples);
    println!("{}", tables(&summary, options.runs.get()));
    if let Some(path) = &options.json {
        let document = Document {
            replicas: options.replicas.get(),
            pod_bytes: options.pod_bytes,
            runs: options.runs.get(),
            cpus: std::thread::available_parallelism()?.get(),
            summary: &summary,
            samples,
        };
        files::write(path, serde_json::to_string_pretty(&document)?)?;
    }
    Ok(())
}

/// One scenario with one number of objects.
#[derive(Debug, Serialize)]
struct Group {
    scenario: Scenario,
    objects: usize,
    replicas: usize,
    rows: Vec<Row>,
}

/// One figure of all subjects.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    unit: Unit,
    spreads: BTreeMap<Subject, Spread>,
}

/// The values of several runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Spread {
    median: f64,
    min: f64,
    max: f64,
}

impl Group {
    /// All samples, grouped by scenario and by number of objects.
    fn all(samples: &[Sample]) -> Vec<Self> {
        let key = |one: &Sample| (one.scenario, one.objects, one.replicas);
        let keys: BTreeSet<_> = samples.iter().map(key).collect();
        let group = |of: (Scenario, usize, usize)| {
            let rows = rows(samples.iter().filter(|one| key(one) == of));
            let (scenario, objects, replicas) = of;
            Self { scenario, objects, replicas, rows }
        };
        keys.into_iter().map(group).collect()
    }

    fn table(&self) -> String {
        let of_rows = self.rows.iter().flat_map(|row| row.spreads.keys().copied());
        let subjects: BTreeSet<Subject> = of_rows.collect();
        let line = |first: String, cell: &dyn Fn(Subject) -> String, last: String| {
            [vec![first], subjects.iter().copied().map(cell).collect(), vec![last]].concat()
        };
        let title = format!("{}, {} × {}", self.scenario.name(), self.objects, self.replicas);
        let mut lines = vec![line(title, &|subject| subject.label().to_owned(), "ratio".to_owned())];
        lines.extend(self.rows.iter().map(|row| line(row.name.clone(), &|of| row.cell(of), row.ratio())));
        markdown(&lines)
    }
}

fn rows<'a>(samples: impl Iterator<Item = &'a Sample>) -> Vec<Row> {
    let mut values: Vec<(String, Unit, BTreeMap<Subject, Vec<f64>>)> = Vec::new();
    for sample in samples {
        for figure in &sample.figures {
            let at = values.iter().position(|(name, _, _)| *name == figure.name).unwrap_or_else(|| {
                values.push((figure.name.clone(), figure.unit, BTreeMap::new()));
                values.len() - 1
            });
            values[at].2.entry(sample.subject).or_default().push(figure.value);
        }
    }
    let spreads = |values: BTreeMap<Subject, Vec<f64>>| {
        values.into_iter().filter_map(|(subject, values)| Some((subject, Spread::of(values)?))).collect()
    };
    values.into_iter().map(|(name, unit, values)| Row { name, unit, spreads: spreads(values) }).collect()
}

impl Row {
    fn cell(&self, subject: Subject) -> String {
        let Some(Spread { median, min, max }) = self.spreads.get(&subject) else { return "–".to_owned() };
        let [median, min, max] = [median, min, max].map(|value| self.unit.number(*value));
        let around = if min == max { String::new() } else { format!(" ({min}–{max})") };
        format!("{median}{}{around}", self.unit.suffix())
    }

    /// Catena's median divided by the other's.
    fn ratio(&self) -> String {
        let median = |subject| self.spreads.get(&subject).map(|spread| spread.median);
        match (median(Subject::Catena), median(Subject::Native)) {
            (Some(ours), Some(theirs)) if theirs > 0.0 && self.unit != Unit::Percent => {
                format!("{:.2}", ours / theirs)
            }
            _ => String::new(),
        }
    }
}

impl Spread {
    /// The spread of some values; `None` without any.
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        // The same element twice if their number is odd.
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { median: f64::midpoint(low, high), min, max })
    }
}

/// One table for each group.
fn tables(groups: &[Group], runs: usize) -> String {
    let tables: Vec<String> = groups.iter().map(Group::table).collect();
    let note = match runs {
        1 => "one run".to_owned(),
        runs => format!("medians of {runs} runs, in parentheses the least and the most"),
    };
    format!("{note}\n\n{}", tables.join("\n"))
}

/// A table with aligned columns; the first line is its header.
fn markdown(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &Vec<String>| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:<width$} |"));
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = format!("|{}\n", widths.iter().map(|width| "-".repeat(width + 2) + "|").collect::<String>());
    let mut lines: Vec<String> = lines.iter().map(line).collect();
    lines.insert(1, rule);
    lines.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(subject: Subject, objects: usize, run: usize, time: f64) -> Sample {
        let figures = vec![
            Figure::new("time", Unit::Seconds, time),
            Figure::new("machine: busy", Unit::Percent, 50.0 * time),
        ];
        let (scenario, requests) = (Scenario::Create, BTreeMap::new());
        Sample { scenario, subject, objects, replicas: 3, run, figures, requests }
    }

    #[test]
    fn the_median_is_the_middle_one_or_between_the_two_in_the_middle() {
        let spread = |values: &[f64]| Spread::of(values.to_vec());
        assert_eq!(spread(&[9.0, 1.0, 5.0]), Some(Spread { median: 5.0, min: 1.0, max: 9.0 }));
        assert_eq!(spread(&[9.0, 1.0, 5.0, 6.0]), Some(Spread { median: 5.5, min: 1.0, max: 9.0 }));
        assert_eq!(spread(&[2.0]), Some(Spread { median: 2.0, min: 2.0, max: 2.0 }));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn a_table_shows_medians_with_their_spread_and_a_ratio_for_each_number_of_objects() {
        let samples = [
            sample(Subject::Catena, 300, 1, 1.0),
            sample(Subject::Catena, 300, 2, 3.0),
            sample(Subject::Native, 300, 1, 4.0),
            sample(Subject::Catena, 1000, 1, 8.0),
        ];
        let text = tables(&Group::all(&samples), 2);
        let wanted = "\
medians of 2 runs, in parentheses the least and the most

| create, 300 × 3 | Catena             | kube-controller-manager | ratio |
|-----------------|--------------------|-------------------------|-------|
| time            | 2.00 s (1.00–3.00) | 4.00 s                  | 0.50  |
| machine: busy   | 100 % (50–150)     | 200 %                   |       |

| create, 1000 × 3 | Catena | ratio |
|------------------|--------|-------|
| time             | 8.00 s |       |
| machine: busy    | 400 %  |       |
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_figure_of_one_subject_alone_has_no_ratio() {
        let mut other = sample(Subject::Native, 5, 1, 1.0);
        other.figures.remove(0);
        let both = tables(&Group::all(&[sample(Subject::Catena, 5, 1, 1.0), other]), 1);
        assert!(both.contains("| time          | 1.00 s | –                       |       |"), "{both}");
    }
}

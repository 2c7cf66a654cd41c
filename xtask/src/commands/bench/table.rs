//! The tables of a run, which are Markdown and can be read as they stand.

use std::{collections::BTreeSet, iter};

use super::{
    figure::Unit,
    statistics::Spread,
    subject::Subject,
    summary::{Group, Row},
};

/// One table for each group.
pub fn all(groups: &[Group], runs: usize) -> String {
    let tables: Vec<String> = groups.iter().map(of_group).collect();
    let note = match runs {
        1 => "one run".to_owned(),
        runs => format!("medians of {runs} runs, in parentheses the least and the most"),
    };
    format!("{note}\n\n{}", tables.join("\n"))
}

fn of_group(group: &Group) -> String {
    let subjects: BTreeSet<Subject> = group.rows.iter().flat_map(|row| row.spreads.keys().copied()).collect();
    let mut lines =
        vec![line(group.title(), &subjects, |subject| subject.label().to_owned(), "ratio".to_owned())];
    lines.extend(group.rows.iter().map(|row| {
        let cell = |subject| {
            row.spreads.get(&subject).map_or_else(|| "–".to_owned(), |spread| spread_of(row.unit, spread))
        };
        line(row.name.clone(), &subjects, cell, ratio(row))
    }));
    markdown(&lines)
}

/// A line with a cell for each subject.
fn line(
    name: String,
    subjects: &BTreeSet<Subject>,
    cell: impl Fn(Subject) -> String,
    last: String,
) -> Vec<String> {
    iter::once(name).chain(subjects.iter().copied().map(cell)).chain(iter::once(last)).collect()
}

fn spread_of(unit: Unit, spread: &Spread) -> String {
    let [median, min, max] = [spread.median, spread.min, spread.max].map(|value| unit.number(value));
    let around = if min == max { String::new() } else { format!(" ({min}–{max})") };
    format!("{median}{}{around}", unit.suffix())
}

/// Catena's median divided by the other's.
fn ratio(row: &Row) -> String {
    let median = |subject| row.spreads.get(&subject).map(|spread| spread.median);
    match (median(Subject::Catena), median(Subject::Native)) {
        (Some(ours), Some(theirs)) if theirs > 0.0 && row.unit != Unit::Percent => {
            format!("{:.2}", ours / theirs)
        }
        _ => String::new(),
    }
}

/// A table with aligned columns; the first line is its header.
fn markdown(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:<width$} |"));
        format!("|{}\n", cells.collect::<String>())
    };
    let rule = format!("|{}\n", widths.iter().map(|width| "-".repeat(width + 2) + "|").collect::<String>());
    let mut text = String::new();
    for (number, cells) in lines.iter().enumerate() {
        text += &line(cells);
        if number == 0 {
            text += &rule;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::summary::tests::sample, *};

    #[test]
    fn a_table_shows_medians_with_their_spread_and_a_ratio() {
        let samples = [
            sample(Subject::Catena, 300, 1, 1.0),
            sample(Subject::Catena, 300, 2, 3.0),
            sample(Subject::Native, 300, 1, 4.0),
        ];
        let text = all(&Group::all(&samples), 2);
        let wanted = "\
medians of 2 runs, in parentheses the least and the most

| create, 300 × 3 | Catena             | kube-controller-manager | ratio |
|-----------------|--------------------|-------------------------|-------|
| time            | 2.00 s (1.00–3.00) | 4.00 s                  | 0.50  |
| machine: busy   | 100 % (50–150)     | 200 %                   |       |
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_figure_of_one_subject_alone_has_no_ratio_and_a_subject_without_figures_no_column() {
        let alone = all(&Group::all(&[sample(Subject::Catena, 5, 1, 1.0)]), 1);
        assert!(alone.contains("| create, 5 × 3 | Catena | ratio |\n"), "{alone}");
        let mut other = sample(Subject::Native, 5, 1, 1.0);
        other.figures.remove(0);
        let both = all(&Group::all(&[sample(Subject::Catena, 5, 1, 1.0), other]), 1);
        assert!(both.contains("| time          | 1.00 s | –                       |       |"), "{both}");
    }
}

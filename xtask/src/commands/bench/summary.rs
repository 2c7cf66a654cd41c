//! What all samples together say: a spread for each figure, and its growth with the number of objects.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    figure::Unit,
    sample::Sample,
    scenario::Scenario,
    statistics::{Spread, exponent},
    subject::Subject,
};

/// One scenario with one number of objects.
#[derive(Debug, Serialize)]
pub struct Group {
    pub scenario: Scenario,
    pub objects: usize,
    pub replicas: Option<usize>,
    pub rows: Vec<Row>,
}

/// One figure of all subjects.
#[derive(Debug, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    pub unit: Unit,
    pub spreads: BTreeMap<Subject, Spread>,
}

/// The exponents of growth of one figure.
#[derive(Debug, PartialEq, Serialize)]
pub struct Growth {
    pub scenario: Scenario,
    pub name: String,
    pub exponents: BTreeMap<Subject, f64>,
}

impl Group {
    /// All samples, grouped by scenario and by number of objects.
    pub fn all(samples: &[Sample]) -> Vec<Self> {
        let keys: BTreeSet<_> = samples.iter().map(|one| (one.scenario, one.objects, one.replicas)).collect();
        let group = |(scenario, objects, replicas)| {
            let of_key =
                |one: &&Sample| (one.scenario, one.objects, one.replicas) == (scenario, objects, replicas);
            let samples: Vec<&Sample> = samples.iter().filter(of_key).collect();
            Self { scenario, objects, replicas, rows: rows(&samples) }
        };
        keys.into_iter().map(group).collect()
    }

    /// Its name, such as `create, 300 × 3`.
    pub fn title(&self) -> String {
        match self.replicas {
            Some(replicas) => format!("{}, {} × {replicas}", self.scenario.name(), self.objects),
            None => format!("{}, {}", self.scenario.name(), self.objects),
        }
    }

    /// The row of a figure.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }
}

fn rows(samples: &[&Sample]) -> Vec<Row> {
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
    let row = |(name, unit, values): (String, Unit, BTreeMap<Subject, Vec<f64>>)| {
        let spreads =
            values.into_iter().filter_map(|(subject, values)| Some((subject, Spread::of(&values)?)));
        Row { name, unit, spreads: spreads.collect() }
    };
    values.into_iter().map(row).collect()
}

impl Growth {
    /// The growth of the medians, where there are several sizes.
    pub fn all(groups: &[Group]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for group in groups {
            for row in group.rows.iter().filter(|row| row.unit.grows()) {
                if all.iter().any(|one| one.scenario == group.scenario && one.name == row.name) {
                    continue;
                }
                let exponents: BTreeMap<Subject, f64> = (row.spreads.keys())
                    .filter_map(|subject| {
                        Some((*subject, exponent(&points(groups, group.scenario, &row.name, *subject))?))
                    })
                    .collect();
                if !exponents.is_empty() {
                    all.push(Self { scenario: group.scenario, name: row.name.clone(), exponents });
                }
            }
        }
        all
    }
}

#[expect(clippy::cast_precision_loss, reason = "numbers of objects are far below 2^52")]
fn points(groups: &[Group], scenario: Scenario, name: &str, subject: Subject) -> Vec<(f64, f64)> {
    let of_scenario = groups.iter().filter(|group| group.scenario == scenario);
    of_scenario
        .filter_map(|group| Some((group.objects as f64, group.row(name)?.spreads.get(&subject)?.median)))
        .collect()
}

#[cfg(test)]
pub mod tests {
    use super::{super::figure::Figure, *};

    /// A sample with one time.
    pub fn sample(subject: Subject, objects: usize, run: usize, time: f64) -> Sample {
        Sample {
            scenario: Scenario::Create,
            subject,
            objects,
            replicas: Some(3),
            run,
            figures: vec![
                Figure::new("time", Unit::Seconds, time),
                Figure::new("machine: busy", Unit::Percent, 50.0 * time),
            ],
            requests: BTreeMap::new(),
        }
    }

    #[test]
    fn runs_of_one_size_are_one_spread_and_other_sizes_another() {
        let mut samples: Vec<Sample> =
            [3.0, 1.0, 2.0].map(|time| sample(Subject::Catena, 300, 1, time)).into();
        samples.push(sample(Subject::Native, 300, 1, 9.0));
        samples.push(sample(Subject::Catena, 1000, 1, 8.0));
        let groups = Group::all(&samples);
        let titles: Vec<String> = groups.iter().map(Group::title).collect();
        assert_eq!(titles, ["create, 300 × 3", "create, 1000 × 3"]);
        let spreads = &groups[0].row("time").unwrap().spreads;
        assert_eq!(spreads[&Subject::Catena], Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(spreads[&Subject::Native], Spread { median: 9.0, min: 9.0, max: 9.0 });
        assert_eq!(groups[1].row("time").unwrap().spreads.len(), 1);
    }

    #[test]
    fn growth_is_told_of_each_subject_with_several_sizes_but_not_of_shares() {
        let samples = [
            sample(Subject::Catena, 100, 1, 1.0),
            sample(Subject::Catena, 1000, 1, 10.0),
            sample(Subject::Native, 100, 1, 1.0),
        ];
        let growth = Growth::all(&Group::all(&samples));
        assert_eq!(growth.len(), 1, "{growth:?}");
        assert_eq!(growth[0].name, "time");
        assert_eq!(growth[0].exponents.len(), 1, "{growth:?}");
        assert!((growth[0].exponents[&Subject::Catena] - 1.0).abs() < 1e-9, "{growth:?}");
    }
}

//! What all samples together say: a spread for each figure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{figure::Unit, sample::Sample, scenario::Scenario, statistics::Spread, subject::Subject};

/// One scenario with one number of objects.
#[derive(Debug, Serialize)]
pub struct Group {
    pub scenario: Scenario,
    pub objects: usize,
    pub replicas: usize,
    pub rows: Vec<Row>,
}

/// One figure of all subjects.
#[derive(Debug, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    pub unit: Unit,
    pub spreads: BTreeMap<Subject, Spread>,
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
        format!("{}, {} × {}", self.scenario.name(), self.objects, self.replicas)
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

#[cfg(test)]
pub mod tests {
    use super::{super::figure::Figure, *};

    /// A sample with one time.
    pub fn sample(subject: Subject, objects: usize, run: usize, time: f64) -> Sample {
        Sample {
            scenario: Scenario::Create,
            subject,
            objects,
            replicas: 3,
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
        assert_eq!(groups[0].rows[0].name, "time");
        let spreads = &groups[0].rows[0].spreads;
        assert_eq!(spreads[&Subject::Catena], Spread { median: 2.0, min: 1.0, max: 3.0 });
        assert_eq!(spreads[&Subject::Native], Spread { median: 9.0, min: 9.0, max: 9.0 });
        assert_eq!(groups[1].rows[0].spreads.len(), 1);
    }
}

//! The suite itself, on a cluster that is up and has the charts.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    num::ParseIntError,
    str::FromStr,
};

use anyhow::Result;
use local_cluster::{Interrupt, forget_other_clusters, own_file};

use super::only::{Only, ensure_found};
use crate::{cargo, cluster::Cluster, rights, workspace};

/// The options of a run.
#[derive(Clone, clap::Args)]
pub struct Suite {
    /// Number of end-to-end tests that are started at once; most of them wait for tests that would disturb them
    #[arg(long, default_value_t = 256, value_name = "COUNT")]
    test_threads: usize,
    /// Run the tests in a shuffled order, by this seed or a random one, which is printed
    #[arg(long, value_name = "SEED", num_args = 0..=1, require_equals = true, default_missing_value = Seed::RANDOM)]
    shuffle: Option<Seed>,
    /// Keep the cluster of the end-to-end tests afterwards
    #[arg(long, alias = "keep-cluster")]
    pub keep: bool,
    /// Arguments for the end-to-end tests, such as a part of a test's name
    #[arg(last = true)]
    arguments: Vec<String>,
    #[arg(skip)]
    only: Vec<Only>,
    #[arg(skip)]
    variables: Vec<(&'static str, String)>,
}

/// The seed of a shuffled order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seed(u64);

impl Seed {
    const RANDOM: &str = "random";
}

impl FromStr for Seed {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        if text == Self::RANDOM {
            // It has few digits, because people copy it.
            return Ok(Self(RandomState::new().build_hasher().finish() % 1_000_000));
        }
        text.parse().map(Self)
    }
}

impl Suite {
    /// The same for only a part of the suite.
    pub fn narrowed_to(&self, only: &[Only]) -> Self {
        Self { only: only.to_vec(), ..self.clone() }
    }

    /// One test that runs only on request, with variables that configure it.
    pub fn on_request(test: &str, variables: Vec<(&'static str, String)>, keep: bool) -> Self {
        let arguments = [test, "--ignored"].map(Into::into).into();
        Self { test_threads: 1, shuffle: None, keep, arguments, only: Vec::new(), variables }
    }

    /// Fails if a name among the arguments is that of no test.
    pub fn ensure_found(&self) -> Result<()> {
        ensure_found(&self.arguments)
    }

    /// Runs the tests; `variables` describe this cluster. Afterwards, where the API server's audit log can be read,
    /// compares the rights of the controllers with their requests.
    ///
    /// # Errors
    /// When one fails, or the rights are not those that are used.
    pub async fn run(
        &self,
        cluster: &Cluster,
        on: &str,
        variables: &[(&str, String)],
        interrupt: &Interrupt,
    ) -> Result<()> {
        let access = &cluster.access;
        let mut tests = cargo::command();
        forget_other_clusters(&mut tests)
            .args(self.of_cargo())
            .env("KUBECONFIG", &access.kubeconfig)
            .env("CATENA_ON", on)
            .env("CATENA_LOGS", &access.logs)
            .env("CATENA_HELM", &access.helm)
            .env("CATENA_KUBECTL", &access.kubectl)
            .env("CATENA_PLUGIN", workspace::release_binaries()?.join("kubectl-catena"))
            .env("CATENA_XTASK", own_file())
            .env("CATENA_CHARTS", workspace::charts())
            .env("CATENA_VALUES", &cluster.values)
            .envs(self.variables.iter().chain(variables).map(|(name, value)| (name, value)));
        if let Some(Seed(seed)) = self.shuffle {
            tests.env("CATENA_ORDER", seed.to_string());
        }
        if let Some(audit_log) = &access.audit_log {
            tests.env("CATENA_AUDIT_LOG", audit_log);
        }
        interrupt.run(&mut tests).await?;
        match &access.audit_log {
            Some(audit_log) => rights::check(audit_log, self.part()),
            None => Ok(()),
        }
    }

    /// Who chooses tests, by whatever argument, runs not all of them.
    fn part(&self) -> rights::Part {
        if self.only.is_empty() && self.arguments.is_empty() {
            rights::Part::Whole
        } else {
            rights::Part::Selected
        }
    }

    fn of_cargo(&self) -> Vec<String> {
        let mut arguments: Vec<String> =
            ["test", "--package", "e2e", "--no-fail-fast"].map(Into::into).into();
        // A failure is told beside its test, and not only after all others.
        arguments.extend(["--", "--nocapture"].map(Into::into));
        arguments.push(format!("--test-threads={}", self.test_threads));
        arguments.extend(self.only.iter().map(Only::filter));
        arguments.extend(self.arguments.iter().cloned());
        arguments
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        suite: Suite,
    }

    fn of_cargo(only: &[&str], line: &[&str]) -> String {
        let only: Vec<Only> = only.iter().map(|name| name.parse().unwrap()).collect();
        let suite = Line::parse_from([&["xtask"], line].concat()).suite;
        suite.narrowed_to(&only).of_cargo().join(" ")
    }

    #[test]
    fn an_order_is_shuffled_by_the_given_seed_or_by_any() {
        let seed = |line: &[&str]| Line::parse_from([&["xtask"], line].concat()).suite.shuffle;
        assert_eq!(seed(&[]), None);
        assert_eq!(seed(&["--shuffle=7"]), Some(Seed(7)));
        assert!(seed(&["--shuffle"]).is_some());
    }

    #[test]
    fn a_file_and_a_part_of_a_name_are_filters() {
        let all = "test --package e2e --no-fail-fast -- --nocapture --test-threads=256";
        assert_eq!(of_cargo(&[], &[]), all);
        assert_eq!(of_cargo(&[], &["--", "scales", "--ignored"]), format!("{all} scales --ignored"));
        assert_eq!(
            of_cargo(&["heals", "three_replicas_cost"], &["--test-threads=1", "--", "--exact"]),
            "test --package e2e --no-fail-fast -- --nocapture --test-threads=1 heals:: three_replicas_cost --exact"
        );
    }
}

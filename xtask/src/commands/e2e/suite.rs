//! The suite itself, on clusters that are up and have the charts.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    num::ParseIntError,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use local_cluster::{Access, Interrupt, forget_other_clusters, output, own_file};
use parking_lot::Mutex;

use super::times;
use crate::{
    cargo,
    cluster::Cluster,
    post_mortem::ended,
    rights,
    workspace::{self, Profile},
};

/// The options of a run.
#[derive(Clone, clap::Args)]
pub struct Suite {
    /// Number of end-to-end tests that are started at once; most of them wait for tests that would disturb them
    #[arg(long, default_value_t = 256, value_name = "COUNT")]
    test_threads: usize,
    /// Run the tests in a shuffled order, by this seed or a random one, which is printed
    #[arg(long, value_name = "SEED", num_args = 0..=1, require_equals = true, default_missing_value = RANDOM, value_parser = seed)]
    shuffle: Option<u64>,
    /// Keep the clusters of the end-to-end tests afterwards
    #[arg(long, alias = "keep-cluster")]
    pub keep: bool,
    /// Arguments that choose end-to-end tests: parts of their names, and --skip, --ignored, --include-ignored or --exact
    #[arg(last = true)]
    arguments: Vec<String>,
    #[arg(skip)]
    variables: Vec<(&'static str, String)>,
}

/// The chosen tests, by their full names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chosen {
    /// Those that run beside each other.
    pub shared: Vec<String>,
    /// Those that disturb all others, or are disturbed by them.
    pub alone: Vec<String>,
}

/// Tests that want a cluster alone: each cluster that is free takes the next one.
pub type Queue = Mutex<VecDeque<String>>;

const RANDOM: &str = "random";

fn seed(text: &str) -> Result<u64, ParseIntError> {
    // A random one has few digits, because people copy it.
    if text == RANDOM { Ok(RandomState::new().build_hasher().finish() % 1_000_000) } else { text.parse() }
}

impl Suite {
    /// The same for only a part of the suite: files of e2e/tests, or tests by a part of their name.
    pub fn narrowed_to(&self, only: &[String]) -> Self {
        let filters = only.iter().map(|name| filter(name));
        Self { arguments: filters.chain(self.arguments.iter().cloned()).collect(), ..self.clone() }
    }

    /// One test that runs only on request, with variables that configure it.
    pub fn on_request(test: &str, variables: Vec<(&'static str, String)>, keep: bool) -> Self {
        let arguments = [test, "--ignored"].map(Into::into).into();
        Self { test_threads: 1, shuffle: None, keep, arguments, variables }
    }

    /// Whether any argument chooses tests.
    pub fn is_a_part(&self) -> bool {
        !self.arguments.is_empty()
    }

    /// Builds the test program, and asks it which tests the arguments choose. A name of no test is an error: a run would pass.
    pub async fn choose(&self, interrupt: &Interrupt) -> Result<Chosen> {
        interrupt.run(program().arg("--no-run")).await?;
        let list = |arguments: &[String]| -> Result<Chosen> {
            let mut program = program();
            program.args(["--quiet", "--", "--list", "--format", "terse"]).args(arguments);
            Ok(Chosen::of(&output(&mut program).context("the end-to-end tests cannot be listed")?))
        };
        let chosen = list(&self.arguments)?;
        let is_exact = self.arguments.iter().any(|argument| argument == "--exact");
        for name in names(&self.arguments) {
            ensure!(
                chosen.has(name, is_exact),
                "{name:?} is {} test that is chosen; the files are {}",
                if is_exact { "not the full name, FILE::TEST, of any" } else { "not in the name of any" },
                list(&[])?.files().join(", ")
            );
        }
        ensure!(!chosen.is_empty(), "no end-to-end test is chosen by {:?}", self.arguments.join(" "));
        Ok(chosen)
    }

    /// The tests that want a cluster alone, in their order: those that take more than a minute come first, so that no cluster
    /// waits for the end of one that began last.
    pub fn queue(&self, mut alone: Vec<String>) -> Queue {
        if let Some(seed) = self.shuffle {
            alone.sort_by_key(|test| {
                let mut hasher = DefaultHasher::new();
                (seed, test).hash(&mut hasher);
                hasher.finish()
            });
        } else {
            alone.sort_by_key(|test| !test.contains("::long::"));
        }
        Mutex::new(alone.into())
    }

    /// Runs tests that share a cluster, described by `variables`, and then those of the queue, one after another, until none is
    /// left, also when one fails.
    pub async fn run_in_turn(
        &self,
        shared: &[String],
        queue: &Queue,
        cluster: &Cluster,
        on: &str,
        variables: &[(&str, String)],
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut result = self.run(shared, cluster, on, variables, interrupt).await;
        while !interrupt.came()
            && let Some(test) = next(queue)
        {
            let alone = self.run(std::slice::from_ref(&test), cluster, on, variables, interrupt).await;
            result = ended(result, alone.with_context(|| format!("{test} failed")));
        }
        result
    }

    async fn run(
        &self,
        tests: &[String],
        cluster: &Cluster,
        on: &str,
        variables: &[(&str, String)],
        interrupt: &Interrupt,
    ) -> Result<()> {
        if tests.is_empty() {
            return Ok(());
        }
        let access = &cluster.access;
        let mut program = program();
        forget_other_clusters(&mut program)
            .args(self.arguments_for(tests))
            .env("KUBECONFIG", &access.kubeconfig)
            // A test downloads nothing.
            .env("CATENA_FROM_SOURCE", "1")
            // A failed test names what failed; where in the test is no news beside it.
            .env("RUST_LIB_BACKTRACE", "0")
            .env("CATENA_ON", on)
            .env("CATENA_LOGS", &access.logs)
            .env("CATENA_TIMES", times::file(&access.logs))
            .env("CATENA_HELM", &access.helm)
            .env("CATENA_KUBECTL", &access.kubectl)
            .env("CATENA_PLUGIN", workspace::binaries(Profile::Development)?.join("kubectl-catena"))
            .env("CATENA_XTASK", own_file())
            .env("CATENA_CHARTS", workspace::charts())
            .env("CATENA_VALUES", &cluster.values)
            .env("CATENA_SUITE_VALUES", workspace::suite_values())
            .envs(self.variables.iter().chain(variables).map(|(name, value)| (name, value)));
        if let Some(seed) = self.shuffle
            && tests.len() > 1
        {
            program.env("CATENA_ORDER", seed.to_string());
        }
        if let Some(audit_log) = &access.audit_log {
            program.env("CATENA_AUDIT_LOG", audit_log);
        }
        interrupt.run(&mut program).await
    }

    /// Prints where the time went on all clusters of a run, and after the whole suite compares the rights of the controllers
    /// with their requests, where the API server's audit log can be read.
    pub fn sum_up(&self, clusters: &[&Access], result: Result<()>, interrupt: &Interrupt) -> Result<()> {
        if interrupt.came() {
            return result;
        }
        ended(result, times::print(clusters))?;
        let audit_logs: Vec<&Path> =
            clusters.iter().filter_map(|access| access.audit_log.as_deref()).collect();
        // The other tests may use what a part of them does not.
        if audit_logs.is_empty() || self.is_a_part() {
            return Ok(());
        }
        rights::check(&audit_logs)
    }

    fn arguments_for(&self, tests: &[String]) -> Vec<String> {
        let threads = format!("--test-threads={}", self.test_threads);
        // A failure is told beside its test, and not only after all others.
        let mut options = vec!["--no-fail-fast", "--", "--nocapture", &threads, "--exact"];
        // With either, those that the test program has listed are the right ones; without, it lists ignored ones, too.
        if self.arguments.iter().any(|argument| argument == "--ignored" || argument == "--include-ignored") {
            options.push("--include-ignored");
        }
        options.into_iter().map(str::to_owned).chain(tests.iter().cloned()).collect()
    }
}

/// Apart from the tests themselves, during which nobody may wait for the queue.
fn next(queue: &Queue) -> Option<String> {
    queue.lock().pop_front()
}

impl Chosen {
    /// From the list of a test program, with a line `NAME: test` for each.
    fn of(list: &str) -> Self {
        let names = list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned);
        let (alone, shared) = names.partition(|name| name.contains("::alone::"));
        Self { shared, alone }
    }

    fn has(&self, name: &str, is_exact: bool) -> bool {
        let fits = |full: &String| if is_exact { full == name } else { full.contains(name) };
        self.shared.iter().chain(&self.alone).any(fits)
    }

    fn is_empty(&self) -> bool {
        self.shared.is_empty() && self.alone.is_empty()
    }

    fn files(&self) -> Vec<&str> {
        let tests = self.shared.iter().chain(&self.alone);
        let mut files: Vec<&str> = tests.filter_map(|name| Some(name.split_once("::")?.0)).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

/// The test program, by cargo.
fn program() -> std::process::Command {
    let mut command = cargo::command();
    command.args(["test", "--package", "e2e", "--test", "suite"]);
    command
}

/// The names among a test program's arguments; some options have a value.
fn names(arguments: &[String]) -> impl Iterator<Item = &str> {
    let mut is_value = false;
    arguments.iter().map(String::as_str).filter(move |argument| {
        let was_value = std::mem::replace(&mut is_value, WITH_VALUE.contains(argument));
        !was_value && !argument.starts_with('-')
    })
}

/// Options of a test program whose value is an argument of its own.
const WITH_VALUE: [&str; 7] =
    ["--color", "--format", "--logfile", "--shuffle-seed", "--skip", "--test-threads", "-Z"];

/// The filter for all tests of a file, which a shell completes to its path, or for a part of their name.
fn filter(name: &str) -> String {
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy();
    let file = workspace::root().join("e2e/tests").join(format!("{stem}.rs"));
    if file.is_file() { format!("{stem}::") } else { name.to_owned() }
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

    fn suite(line: &[&str]) -> Suite {
        Line::parse_from([&["xtask"], line].concat()).suite
    }

    #[test]
    fn an_order_is_shuffled_by_the_given_seed_or_by_any() {
        assert_eq!(suite(&[]).shuffle, None);
        assert_eq!(suite(&["--shuffle=7"]).shuffle, Some(7));
        assert!(suite(&["--shuffle"]).shuffle.is_some());
    }

    #[test]
    fn a_file_and_a_part_of_a_name_are_filters() {
        for name in ["heals", "heals.rs", "e2e/tests/heals.rs"] {
            assert_eq!(filter(name), "heals::");
        }
        let narrowed = suite(&["--", "--ignored"]).narrowed_to(&["heals".into(), "three_replicas".into()]);
        assert_eq!(narrowed.arguments, ["heals::", "three_replicas", "--ignored"]);
        assert!(narrowed.is_a_part() && !suite(&[]).is_a_part());
    }

    #[test]
    fn the_tests_of_a_cluster_are_named_in_full() {
        let tests = ["heals::a_pod".to_owned()];
        assert_eq!(
            suite(&["--test-threads=1", "--", "heals", "--exact"]).arguments_for(&tests).join(" "),
            "--no-fail-fast -- --nocapture --test-threads=1 --exact heals::a_pod"
        );
        // Without that, those that run only on request would not; with it in any case, they always would.
        for on_request in ["--ignored", "--include-ignored"] {
            let arguments = suite(&["--", "heals", on_request]).arguments_for(&tests);
            assert!(arguments.ends_with(&["--include-ignored".into(), tests[0].clone()]), "{arguments:?}");
        }
    }

    #[test]
    fn a_name_is_told_from_an_option_and_its_value() {
        let names_in = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            names(&arguments).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names_in("heals --skip rolls_out --ignored takes_any"), ["heals", "takes_any"]);
        assert!(names_in("-Z nonsense --exact").is_empty());
        let chosen = Chosen::of("heals::a_pod: test\n");
        assert!(chosen.has("heals", false) && !chosen.has("rols_out", false));
        assert!(chosen.has("heals::a_pod", true) && !chosen.has("heals", true));
    }

    #[test]
    fn those_in_a_module_alone_are_apart() {
        let list = "heals::a_pod: test\nkeeps_up::alone::a_hundred: test\nheals::again: test\n\n3 tests, 0 benchmarks\n";
        let chosen = Chosen::of(list);
        assert_eq!(chosen.shared, ["heals::a_pod", "heals::again"]);
        assert_eq!(chosen.alone, ["keeps_up::alone::a_hundred"]);
        assert_eq!(chosen.files(), ["heals", "keeps_up"]);
        assert!(Chosen::of("0 tests, 0 benchmarks\n").is_empty());
    }

    #[test]
    fn long_ones_that_want_a_cluster_alone_begin_first() {
        let suite = Suite::on_request("any", Vec::new(), false);
        let queue =
            suite.queue(["a::alone::b", "c::alone::long::d", "e::alone::f"].map(str::to_owned).into());
        assert_eq!(*queue.lock(), ["c::alone::long::d", "a::alone::b", "e::alone::f"]);
    }
}

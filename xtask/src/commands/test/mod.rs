//! `cargo xtask test`: everything that must hold before a change is merged.

mod chart_checks;
mod failures;

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use clap::ValueEnum;
use local_cluster::{Interrupt, explain, files, own_file, seconds};

use super::{crds, demo, e2e};
use crate::{cargo, published, workspace};

/// The options of the checks.
#[derive(clap::Args)]
pub struct Options {
    /// Run only this step; can be given several times
    #[arg(long, value_enum, value_name = "STEP")]
    only: Vec<Step>,
    /// Leave this step out; can be given several times
    #[arg(long, value_enum, value_name = "STEP")]
    skip: Vec<Step>,
    #[command(flatten)]
    e2e: e2e::Suite,
}

/// The steps, in their order: quick ones that often fail come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// cargo fmt --check
    Fmt,
    /// cargo clippy, where a warning is an error
    Clippy,
    /// cargo test of everything but the end-to-end suite, among it the models in their small size
    Unit,
    /// The committed CRDs match the types, and break nothing of the last releases
    Crds,
    /// cargo deny, where it is installed
    Deny,
    /// The crates for others can be packed, whether or not their registry can be reached
    Pack,
    /// The common parts are in all charts; helm lint and helm template of every chart, with all of its value files
    Charts,
    /// The end-to-end suite on clusters of its own
    E2e,
    /// The demo, on a cluster of its own, and a benchmark of a few objects on the same one; beside the end-to-end tests
    Demo,
}

/// Time in which an interrupted demo takes its cluster down, beside those of the end-to-end tests.
const DEMO_GRACE: Duration = Duration::from_secs(180);

enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

/// Runs the steps, each even if an earlier one failed, and prints a summary.
pub async fn run(options: Options) -> Result<()> {
    let interrupt = Interrupt::listen()?;
    let is_wanted = |step: &Step| {
        (options.only.is_empty() || options.only.contains(step)) && !options.skip.contains(step)
    };
    if options.e2e.is_a_part() && is_wanted(&Step::E2e) {
        // Here, too, because the step comes late.
        options.e2e.choose(&interrupt).await?;
    }
    let mut wanted: Vec<Step> = Step::value_variants().iter().copied().filter(is_wanted).collect();
    let is_beside = wanted.ends_with(&[Step::E2e, Step::Demo]);
    wanted.truncate(wanted.len() - 2 * usize::from(is_beside));
    let mut done = Vec::new();
    for step in wanted {
        if !interrupt.came() {
            done.push(timed(step, step.make(&options, &interrupt)).await);
        }
    }
    if is_beside && !interrupt.came() {
        let e2e = Box::pin(timed(Step::E2e, Step::E2e.make(&options, &interrupt)));
        let (e2e, demo) = tokio::join!(e2e, timed(Step::Demo, demo_apart(&interrupt)));
        done.extend([e2e, demo]);
    }
    sum_up(&done, interrupt.came())
}

/// Makes a step, and tells its failure at once.
async fn timed(step: Step, making: impl Future<Output = Result<Outcome>>) -> (Step, Outcome, Duration) {
    eprintln!("\n── {} ──", step.name());
    let started = Instant::now();
    let outcome = making.await.unwrap_or_else(|error| Outcome::Failed(explain(&error)));
    if let Outcome::Failed(why) = &outcome {
        eprintln!("{} failed: {why}", step.name());
    }
    (step, outcome, started.elapsed())
}

/// The demo in a process of its own, whose output does not mix with that of the end-to-end tests.
async fn demo_apart(interrupt: &Interrupt) -> Result<Outcome> {
    let path = workspace::target()?.join("demo.log");
    let log = files::create(&path)?;
    let mut demo = Command::new(own_file());
    demo.args(["test", "--only", &Step::Demo.name()]).stdout(log.try_clone()?).stderr(log);
    let result = interrupt.run_with_grace(&mut demo, DEMO_GRACE).await;
    if result.is_err() && !interrupt.came() {
        eprintln!("{}", fs::read_to_string(&path).unwrap_or_default());
    }
    result.map(|()| Outcome::Passed)
}

fn sum_up(done: &[(Step, Outcome, Duration)], interrupted: bool) -> Result<()> {
    println!();
    let (mut passed, mut failed) = (0, 0);
    for (step, outcome, took) in done {
        let took = seconds(*took);
        let name = step.name();
        match outcome {
            Outcome::Passed => {
                passed += 1;
                println!("✓ {name:<7} {took}");
            }
            Outcome::Failed(why) => {
                failed += 1;
                println!("✗ {name:<7} {took}: {why}");
            }
            Outcome::Skipped(why) => println!("– {name:<7} skipped: {why}"),
        }
    }
    if interrupted {
        println!("interrupted: the steps after this were not made");
    }
    println!("{passed} passed, {failed} failed");
    if failed > 0 || interrupted {
        bail!("the tests did not pass: read the first failure above; repeat one step with `--only STEP`");
    }
    Ok(())
}

impl Step {
    fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    async fn make(self, options: &Options, interrupt: &Interrupt) -> Result<Outcome> {
        match self {
            Self::Fmt => {
                cargo::run(&["fmt", "--all", "--check"], interrupt).await?;
                // Cargo does not find them: they are modules by a macro.
                let mut rustfmt = Command::new("rustfmt");
                rustfmt.args(["--check", "--edition", "2024"]);
                rustfmt.args(files::list(&workspace::root().join("e2e/tests"))?);
                interrupt.run(rustfmt.current_dir(workspace::root())).await?;
            }
            Self::Clippy => {
                // The end-to-end suite is no test target of `cargo test`, and none of all targets.
                for targets in
                    [&["--workspace", "--all-targets"][..], &["--package", "e2e", "--test", "suite"]]
                {
                    let arguments = [&["clippy"], targets, &["--", "-D", "warnings"]].concat();
                    cargo::run(&arguments, interrupt).await?;
                }
            }
            Self::Unit => {
                // A test downloads nothing but from a server of its own.
                let mut tests = cargo::command();
                tests.args(["test", "--workspace"]).env("CATENA_FROM_SOURCE", "1");
                failures::run(tests, interrupt).await?;
            }
            Self::Crds => {
                crds::run(true)?;
                crds::compat::since_the_last_releases()?;
            }
            Self::Deny => return deny(interrupt).await,
            Self::Pack => interrupt.run(&mut published::packing()).await?,
            Self::Charts => chart_checks::run(interrupt).await?,
            Self::E2e => e2e::run_locally(&options.e2e, interrupt).await?,
            Self::Demo => demo::rehearse(interrupt).await?,
        }
        Ok(Outcome::Passed)
    }
}

/// Without advisories: they come from the network and change by themselves.
async fn deny(interrupt: &Interrupt) -> Result<Outcome> {
    let version = cargo::command().args(["deny", "--version"]).output();
    if !version.is_ok_and(|version| version.status.success()) {
        return Ok(Outcome::Skipped("for this check, `cargo install --locked cargo-deny`".to_owned()));
    }
    cargo::run(&["deny", "check", "bans", "licenses", "sources"], interrupt).await?;
    Ok(Outcome::Passed)
}

//! The end-to-end suite on a cluster of its own, which is taken down whatever happens.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, anyhow};

use super::cargo;
use crate::{
    charts,
    cluster::{
        bring_up::{Wanted, bring_up},
        home::Home,
        state::State,
        take_down::take_down,
    },
    explain::explain,
    interrupt::Interrupt,
    progress::Step,
    toolchain::Tool,
    workspace,
};

/// How the suite is run.
#[derive(clap::Args)]
pub struct Suite {
    /// How many end-to-end tests run side by side; they mostly wait
    #[arg(long, default_value_t = 4, value_name = "COUNT")]
    test_threads: usize,
    /// Leave the cluster of the end-to-end tests running
    #[arg(long)]
    keep_cluster: bool,
    /// Arguments for the end-to-end tests, such as a part of a test's name
    #[arg(last = true)]
    filter: Vec<String>,
}

/// Builds, brings up, installs, tests, takes down.
pub async fn run(options: &Suite, interrupt: &Interrupt) -> Result<()> {
    cargo(&["build", "--release"], interrupt).await?;
    let home = Home::of(&format!("e2e-{}", std::process::id()))?;
    let result = on_cluster(&home, options, interrupt).await;
    let kept = match &result {
        Ok(()) => None,
        Err(_) => keep_logs(&home),
    };
    if options.keep_cluster {
        eprintln!("the cluster is left: `cargo xtask down --name {}` takes it down", home.name());
    } else {
        take_down(&home)?;
    }
    match kept {
        Some(logs) => {
            result.map_err(|error| anyhow!("{}; logs are kept in {}", explain(&error), logs.display()))
        }
        None => result,
    }
}

async fn on_cluster(home: &Home, options: &Suite, interrupt: &Interrupt) -> Result<()> {
    let bin_dir = workspace::release_binaries();
    let wanted = Wanted { nodes: 3, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
    interrupt.or(bring_up(home, &wanted)).await?;
    charts::install(home, &charts::all(), interrupt).await?;
    let state = State::require(home)?;
    let threads = format!("--test-threads={}", options.test_threads);
    let mut tests = Command::new("cargo");
    tests
        .args(["test", "--package", "e2e", "--no-fail-fast", "--", &threads])
        .args(&options.filter)
        .current_dir(workspace::root())
        .env("KUBECONFIG", home.kubeconfig())
        .env("CATENA_AUDIT_LOG", home.audit_log())
        .env("CATENA_CLUSTER", home.name())
        .env("CATENA_LOGS", home.logs())
        .env("CATENA_HELM", state.toolchain.path(Tool::Helm)?)
        .env("CATENA_KUBECTL", state.toolchain.path(Tool::Kubectl)?)
        .env("CATENA_CHARTS", workspace::charts())
        .env("CATENA_VALUES", workspace::local_values());
    interrupt.run(&mut tests).await
}

/// Copies the logs to where `down` does not reach.
fn keep_logs(home: &Home) -> Option<PathBuf> {
    let step = Step::start("keeping the logs");
    let target = workspace::target().join("e2e-logs").join(home.name());
    let copied = copy(&home.logs(), &target);
    match copied {
        Ok(files) => {
            step.done(format!("{files} files in {}", target.display()));
            Some(target)
        }
        Err(error) => {
            eprintln!("the logs could not be kept: {error:#}");
            None
        }
    }
}

fn copy(from: &PathBuf, to: &PathBuf) -> Result<usize> {
    fs::create_dir_all(to).with_context(|| format!("could not create {}", to.display()))?;
    let mut files = 0;
    for entry in fs::read_dir(from).with_context(|| format!("could not list {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        fs::copy(entry.path(), &target).with_context(|| format!("could not write {}", target.display()))?;
        files += 1;
    }
    Ok(files)
}

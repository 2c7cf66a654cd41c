//! The suite itself, on a cluster that is up and has the charts.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use crate::{access::Access, interrupt::Interrupt, progress::Step, workspace};

/// How the suite is run.
#[derive(clap::Args)]
pub struct Suite {
    /// How many end-to-end tests run side by side; they mostly wait
    #[arg(long, default_value_t = 4, value_name = "COUNT")]
    test_threads: usize,
    /// Leave the cluster of the end-to-end tests running
    #[arg(long, alias = "keep")]
    pub keep_cluster: bool,
    /// Arguments for the end-to-end tests, such as a part of a test's name
    #[arg(last = true)]
    filter: Vec<String>,
}

impl Suite {
    /// Runs the tests; `variables` tell them what only this cluster has.
    ///
    /// # Errors
    /// When one fails.
    pub async fn run(
        &self,
        access: &Access,
        on: &str,
        variables: &[(&str, String)],
        interrupt: &Interrupt,
    ) -> Result<()> {
        let threads = format!("--test-threads={}", self.test_threads);
        let mut tests = Command::new("cargo");
        tests
            .args(["test", "--package", "e2e", "--no-fail-fast", "--", &threads])
            .args(&self.filter)
            .current_dir(workspace::root())
            .env("KUBECONFIG", &access.kubeconfig)
            .env("CATENA_ON", on)
            .env("CATENA_LOGS", &access.logs)
            .env("CATENA_HELM", &access.helm)
            .env("CATENA_KUBECTL", &access.kubectl)
            .env("CATENA_PLUGIN", workspace::release_binaries().join("kubectl-catena"))
            .env("CATENA_CHARTS", workspace::charts())
            .env("CATENA_VALUES", &access.values)
            .envs(variables.iter().map(|(name, value)| (name, value)));
        if let Some(audit_log) = &access.audit_log {
            tests.env("CATENA_AUDIT_LOG", audit_log);
        }
        interrupt.run(&mut tests).await
    }
}

/// Copies the logs of a cluster to where taking it down does not reach.
pub fn keep_logs(logs: &Path, cluster: &str) -> Option<PathBuf> {
    let step = Step::start("keeping the logs");
    let target = workspace::target().join("e2e-logs").join(cluster);
    match copy(logs, &target) {
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

fn copy(from: &Path, to: &Path) -> Result<usize> {
    fs::create_dir_all(to).with_context(|| format!("could not create {}", to.display()))?;
    let mut files = 0;
    for entry in fs::read_dir(from).with_context(|| format!("could not list {}", from.display()))? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            files += copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)
                .with_context(|| format!("could not write {}", target.display()))?;
            files += 1;
        }
    }
    Ok(files)
}

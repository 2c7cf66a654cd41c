//! The suite on a kind cluster of its own: real kubelets, real images.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, anyhow, bail};

use super::suite::{Suite, keep_logs};
use crate::{
    access::Access,
    charts,
    commands::images,
    explain::explain,
    images::{WORKLOAD, reference},
    interrupt::Interrupt,
    kind::{self, Kind},
    progress::Step,
};

/// Builds the images, creates, installs, tests, deletes.
pub async fn run(suite: &Suite, node_image: Option<&str>, interrupt: &Interrupt) -> Result<()> {
    if let Some(problem) = kind::problem() {
        bail!("there can be no kind cluster: {problem}; `--on local` needs neither Docker nor kind");
    }
    let mut programs: Vec<String> = charts::all().into_iter().map(|chart| chart.name).collect();
    programs.push(WORKLOAD.to_owned());
    let archives = images::write(&programs, interrupt).await?;

    let cluster = Kind::of(&format!("catena-e2e-{}", std::process::id()))?;
    let result = async {
        cluster.create(node_image, interrupt).await?;
        cluster.load(&archives, interrupt).await?;
        let access = cluster.access()?;
        let result = on_cluster(&cluster, &access, suite, interrupt).await;
        if result.is_err() {
            collect(&access, &access.logs);
        }
        result
    }
    .await;
    let kept = match &result {
        Ok(()) => None,
        Err(_) => keep_logs(&cluster.logs(), cluster.name()),
    };
    if suite.keep_cluster {
        eprintln!("the cluster is left: `kind delete cluster --name {}` takes it down", cluster.name());
    } else {
        cluster.delete()?;
    }
    match kept {
        Some(logs) => {
            result.map_err(|error| anyhow!("{}; all that was said is in {}", explain(&error), logs.display()))
        }
        None => result,
    }
}

async fn on_cluster(cluster: &Kind, access: &Access, suite: &Suite, interrupt: &Interrupt) -> Result<()> {
    charts::install(access, &charts::all(), interrupt).await?;
    let variables =
        [("CATENA_KIND", cluster.name().to_owned()), ("CATENA_WORKLOAD_IMAGE", reference(WORKLOAD))];
    suite.run(access, "kind", &variables, interrupt).await
}

/// Writes down what the cluster holds, as far as it answers.
fn collect(access: &Access, directory: &Path) {
    let step = Step::start("collecting events, objects and logs");
    let questions: [(&str, &[&str]); 3] = [
        ("events.txt", &["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"]),
        ("objects.yaml", &["get", "catena,pods,deployments,configmaps", "--all-namespaces", "--output=yaml"]),
        (
            "controllers.log",
            &[
                "logs",
                "--namespace=catena-system",
                "--selector=app.kubernetes.io/name",
                "--prefix",
                "--tail=-1",
            ],
        ),
    ];
    for (file, question) in questions {
        let answer = Command::new(&access.kubectl)
            .args(question)
            .env("KUBECONFIG", &access.kubeconfig)
            .output()
            .map_or_else(
                |error| error.to_string().into_bytes(),
                |output| [output.stdout, output.stderr].concat(),
            );
        if let Err(error) = fs::write(directory.join(file), answer) {
            eprintln!("{file} could not be kept: {error}");
        }
    }
    step.done("");
}

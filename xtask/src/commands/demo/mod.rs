//! `cargo xtask demo`: the whole story, from nothing, on a cluster that is left running.

mod kubectl;
mod story;

use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use local_cluster::{Access, Interrupt, KindCluster, LocalCluster, Toolchain, Wanted, kind_problem, seconds};

use crate::{
    cargo,
    charts::{self, Chart, NAMESPACE},
    cluster::{Cluster, temporary},
    commands::{bench, images},
    images::{WORKLOAD, programs, reference},
    post_mortem::{ended, on_failure},
    workspace::{self, Profile},
};
use kubectl::Kubectl;
use story::say;

/// The values of backup-controller in the demo.
const BACKUPS: &str = "examples/backups/basicdeployments.yaml";

/// The options of the demo.
#[derive(clap::Args)]
pub struct Options {
    /// The cluster: the control plane as local processes, or kind
    #[arg(long, value_enum, value_name = "CLUSTER", default_value_t = On::Local)]
    on: On,
    /// The image of kind's nodes, of Kubernetes 1.32 or later; kind's own one by default
    #[arg(long, value_name = "IMAGE")]
    node_image: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum On {
    /// Fake nodes; controllers run as processes of this machine
    Local,
    /// Real kubelets and real images, on Docker
    Kind,
}

/// Shows the story step by step and leaves the cluster running.
pub async fn run(name: &str, options: &Options) -> Result<()> {
    if options.node_image.is_some() && options.on != On::Kind {
        bail!("--node-image is for kind: add `--on kind`");
    }
    let started = Instant::now();
    let interrupt = Interrupt::listen()?;
    let access = tell(name, options, &interrupt).await.with_context(|| {
        format!(
            "the demo stopped; what there is of the cluster is left, and `cargo xtask down{}` takes it away",
            flag(name)
        )
    })?;
    println!("\nAll of it in {}. What to try next:", seconds(started.elapsed()));
    match options.on {
        On::Local => next_steps(name),
        On::Kind => {
            println!("  export KUBECONFIG={}", access.kubeconfig.display());
            println!("  kubectl scale basicdeployment hello --replicas=5");
            println!("  cargo xtask down{}", flag(name));
        }
    }
    Ok(())
}

/// Shows the story on a local cluster of its own, which is always taken down, and measures a few objects on it.
pub async fn rehearse(interrupt: &Interrupt) -> Result<()> {
    let cluster = temporary("demo")?;
    let name = cluster.name();
    let told = async {
        tell(name, &Options { on: On::Local, node_image: None }, interrupt).await?;
        bench::rehearse(&cluster, interrupt).await
    };
    let told = on_failure(Box::pin(told).await, name, &cluster.logs(), || cluster.access().ok());
    ended(told, cluster.take_down().map(drop))
}

async fn tell(name: &str, options: &Options, interrupt: &Interrupt) -> Result<Access> {
    let (cluster, image) = match options.on {
        On::Local => (local(name, interrupt).await?, None),
        On::Kind => {
            (on_kind(name, options.node_image.as_deref(), interrupt).await?, Some(reference(WORKLOAD)))
        }
    };
    say("3. Their Helm charts, as a platform team installs them.");
    let kubectl = Kubectl { access: &cluster.access, interrupt };
    let had_them = has_controllers(&kubectl).await?;
    charts::install(&cluster, &charts(), interrupt).await?;
    if had_them {
        restart(&kubectl).await?;
        charts::wait(&cluster, interrupt).await?;
    }
    story::tell(&kubectl, image.as_deref()).await?;
    Ok(cluster.access)
}

async fn has_controllers(kubectl: &Kubectl<'_>) -> Result<bool> {
    let names = kubectl.read(&["get", "deployments", "--namespace", NAMESPACE, "--output=name"]).await?;
    Ok(!names.is_empty())
}

/// A new build does not change the Deployments of the controllers, so that the old programs would run on.
async fn restart(kubectl: &Kubectl<'_>) -> Result<()> {
    say("   The cluster had them already: they restart as the programs that were built just now.");
    kubectl.run(&["rollout", "restart", "deployment", "--namespace", NAMESPACE]).await
}

async fn local(name: &str, interrupt: &Interrupt) -> Result<Cluster> {
    let cluster = LocalCluster::named(name)?;
    say(
        "1. A cluster: the real control plane, three fake nodes, one node whose pods are processes of this machine.",
    );
    let bin_dir = workspace::binaries(Profile::Development)?;
    let wanted = Wanted { nodes: 3, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
    interrupt.or(cluster.bring_up(&wanted)).await?;

    say("2. The controllers, each a program of its own that knows the others only through resources.");
    cargo::build(&programs(), interrupt).await?;
    Cluster::local(&cluster)
}

async fn on_kind(name: &str, node_image: Option<&str>, interrupt: &Interrupt) -> Result<Cluster> {
    if let Some(problem) = kind_problem() {
        bail!("there can be no kind cluster: {problem}; `cargo xtask demo` without --on needs neither");
    }
    // First, because a missing Go would otherwise be noticed after all the builds.
    interrupt.or(Toolchain::clients()).await?;
    let cluster = KindCluster::named(name)?;
    cluster.ensure_known()?;
    say("1. A cluster: kind, with real kubelets.");
    match (cluster.exists()?, node_image) {
        (false, _) => cluster.create(node_image, interrupt).await?,
        (true, None) => {}
        (true, Some(image)) => bail!(
            "the cluster is there already, and keeps its nodes; `cargo xtask down{}` first makes room for one of {image}",
            flag(name)
        ),
    }
    say("2. The controllers, each an image of one static binary, and a server to run.");
    let mut programs: Vec<String> = charts::all().into_iter().map(|chart| chart.name).collect();
    programs.push(WORKLOAD.to_owned());
    let archives = images::write(&programs, interrupt).await?;
    cluster.load(&archives, interrupt).await?;
    Cluster::on_kind(&cluster)
}

/// The flag by which other commands select the cluster.
fn flag(name: &str) -> String {
    if name == "default" { String::new() } else { format!(" --name {name}") }
}

fn charts() -> Vec<Chart> {
    let mut charts = charts::all();
    for chart in charts.iter_mut().filter(|chart| chart.name == "backup-controller") {
        chart.values.push(workspace::root().join(BACKUPS));
    }
    charts
}

fn next_steps(name: &str) {
    let flag = flag(name);
    for (command, why) in [
        (
            format!("kubectl{flag} scale basicdeployment hello --replicas=5"),
            "no new revision, just more pods",
        ),
        (format!("kubectl{flag} get basicdeployments,pods --watch"), "then delete a pod in another window"),
        (format!("logs{flag} basic-replicaset-controller --follow"), "what a controller says"),
        ("status".to_owned(), "the processes behind it, and where their logs are"),
        (format!("down{flag}"), "take everything away again"),
    ] {
        println!("  {:<73} # {why}", format!("cargo xtask {command}"));
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[tokio::test]
    async fn a_second_demo_finds_the_controllers_of_the_first_one_and_restarts_them() {
        let interrupt = Interrupt::listen().unwrap();
        // Instead of kubectl: a program that lists nothing, one that lists something, and one that fails.
        let [nothing, something, failing] = ["true", "echo", "false"].map(|kubectl| Access {
            kubeconfig: PathBuf::new(),
            logs: PathBuf::new(),
            audit_log: None,
            kubectl: kubectl.into(),
            helm: "false".into(),
        });
        let [nothing, something, failing] =
            [&nothing, &something, &failing].map(|access| Kubectl { access, interrupt: &interrupt });
        assert!(!has_controllers(&nothing).await.unwrap());
        assert!(has_controllers(&something).await.unwrap());
        let asked = restart(&failing).await.unwrap_err().to_string();
        assert!(asked.contains("rollout restart deployment --namespace catena-system"), "{asked}");
    }
}

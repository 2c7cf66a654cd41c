//! `cargo xtask demo`: from nothing to a running BasicDeployment.

use std::{process::Command, time::Instant};

use anyhow::{Context, Result, bail};

use crate::{
    charts::{self, Chart},
    cluster::{
        bring_up::{Wanted, bring_up},
        home::Home,
        state::State,
    },
    interrupt::Interrupt,
    progress::seconds,
    toolchain::Tool,
    workspace,
};

/// The controllers of the shortest chain that makes pods.
const CONTROLLERS: [&str; 2] = ["basic-deployment-controller", "basic-replicaset-controller"];
const EXAMPLE: &str = "examples/basicdeployment.yaml";

/// Tells the story step by step and leaves the cluster running.
pub async fn run(name: &str) -> Result<()> {
    let started = Instant::now();
    let interrupt = Interrupt::listen()?;
    let home = Home::of(name)?;
    let flag = if name == "default" { String::new() } else { format!(" --name {name}") };

    say(
        "1. A cluster: the real control plane, three fake nodes, one node whose pods are processes of this machine.",
    );
    let bin_dir = workspace::release_binaries();
    let wanted = Wanted { nodes: 3, bin_dir: Some(bin_dir.clone()), default_bin_dir: bin_dir };
    interrupt.or(bring_up(&home, &wanted)).await?;

    say("2. Two controllers, each a program of its own that knows the other only through resources.");
    let mut build = Command::new("cargo");
    build.args(["build", "--release"]).current_dir(workspace::root());
    for controller in CONTROLLERS {
        build.args(["--package", controller]);
    }
    interrupt.run(&mut build).await?;

    say("3. Their Helm charts, as a platform team installs them.");
    charts::install(&home, &chosen()?, &interrupt).await?;

    say("4. Five lines, as an application team writes them.");
    let kubectl = Kubectl { state: State::require(&home)?, home: &home, interrupt: &interrupt };
    println!("{}", example()?);
    kubectl.run(&["apply", "-f", EXAMPLE]).await?;
    kubectl.run(&["wait", "--for=condition=Ready", "basicdeployment/hello", "--timeout=60s"]).await?;
    kubectl.run(&["get", "basicdeployments,basicreplicasets,pods"]).await?;

    println!("\nFrom nothing to three ready pods in {}. What to try next:", seconds(started.elapsed()));
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
    Ok(())
}

fn say(line: &str) {
    println!("\n{line}");
}

fn chosen() -> Result<Vec<Chart>> {
    let charts: Vec<Chart> =
        charts::all().into_iter().filter(|chart| CONTROLLERS.contains(&chart.name.as_str())).collect();
    if charts.len() < CONTROLLERS.len() {
        bail!("the charts {} are not all in {}", CONTROLLERS.join(" and "), workspace::charts().display());
    }
    Ok(charts)
}

/// The example without its comments, indented.
fn example() -> Result<String> {
    let path = workspace::root().join(EXAMPLE);
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("could not read {}", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.trim().is_empty());
    Ok(lines.map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n"))
}

struct Kubectl<'a> {
    state: State,
    home: &'a Home,
    interrupt: &'a Interrupt,
}

impl Kubectl<'_> {
    async fn run(&self, arguments: &[&str]) -> Result<()> {
        println!("$ kubectl {}", arguments.join(" "));
        let mut kubectl = Command::new(self.state.toolchain.path(Tool::Kubectl)?);
        kubectl.args(arguments).current_dir(workspace::root()).env("KUBECONFIG", self.home.kubeconfig());
        self.interrupt.run(&mut kubectl).await.with_context(|| {
            format!(
                "the demo stopped at `kubectl {}`: look at it with `cargo xtask status` and `cargo xtask logs \
                 basic-deployment-controller`; the cluster {:?} is left running",
                arguments.join(" "),
                self.home.name()
            )
        })
    }
}

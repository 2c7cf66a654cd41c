//! `cargo xtask status`

use std::io::Write;

use anyhow::Result;
use local_cluster::{KindCluster, LocalCluster};

/// Shows every local cluster, and the paths of those on kind.
pub async fn run() -> Result<()> {
    let (locals, kinds) = (LocalCluster::all()?, KindCluster::known()?);
    if locals.is_empty() && kinds.is_empty() {
        println!("there is no local cluster: start one with `cargo xtask up`");
    }
    let mut shown = Vec::new();
    for local in &locals {
        shown.push(describe(local).await);
    }
    for kind in &kinds {
        let state = match kind.exists() {
            Ok(true) => "on kind".to_owned(),
            Ok(false) => "was on kind, and is gone".to_owned(),
            Err(error) => format!("on kind, whose state is not known: {error:#}"),
        };
        shown.push(format!(
            "{}: {state}\n  {:<20} {}\n",
            kind.name(),
            "kubeconfig",
            kind.kubeconfig().display()
        ));
    }
    // Written at once; a reader that has seen enough (`| head`) is no failure.
    std::io::stdout().write_all(shown.join("\n").as_bytes()).ok();
    Ok(())
}

async fn describe(cluster: &LocalCluster) -> String {
    let name = cluster.name();
    let Some(health) = cluster.health().await else {
        return format!(
            "{name}: not running (`cargo xtask up --name {name}` starts it again with its data)\n"
        );
    };
    let state = match health.nodes {
        Ok((ready, all)) => format!("running, {ready} of {all} nodes ready"),
        Err(error) => format!("running, but {error:#}"),
    };
    let mut lines = vec![format!("{name}: {state}\n")];
    let mut line = |label: &str, value: String| lines.push(format!("  {label:<20} {value}\n"));
    match health.setup {
        Ok(setup) => {
            line("server", setup.server);
            line("binaries of pods", setup.bin_dir.display().to_string());
        }
        Err(error) => line("state", format!("{error:#}")),
    }
    line("kubeconfig", cluster.kubeconfig().display().to_string());
    line("audit log", cluster.audit_log().display().to_string());
    line("logs", cluster.logs().display().to_string());
    line("supervisor", format!("pid {}", health.supervisor));
    for (name, kept) in health.components {
        let pid = kept.pid.map_or_else(|| "down".to_owned(), |pid| format!("pid {pid}"));
        line(&name, if kept.restarts == 0 { pid } else { format!("{pid}, restarted {}×", kept.restarts) });
    }
    lines.concat()
}

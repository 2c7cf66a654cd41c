//! `cargo xtask status`

use std::io::Write;

use anyhow::Result;

use crate::{
    cluster::{home::Home, keeper::Roster, kubeconfig, processes, readiness, state::State},
    kind::Kind,
};

/// Shows every local cluster, and where those on kind are found.
pub async fn run() -> Result<()> {
    let (homes, kinds) = (Home::existing()?, Kind::known()?);
    if homes.is_empty() && kinds.is_empty() {
        println!("there is no local cluster: start one with `cargo xtask up`");
    }
    let mut shown = Vec::new();
    for home in &homes {
        shown.push(describe(home).await);
    }
    for kind in &kinds {
        let state = if kind.exists() { "on kind" } else { "was on kind, and is gone" };
        shown.push(format!(
            "{}: {state}\n  {:<20} {}\n",
            kind.name(),
            "kubeconfig",
            kind.kubeconfig().display()
        ));
    }
    // Written at once, and a reader that has seen enough (`| head`) is no failure.
    std::io::stdout().write_all(shown.join("\n").as_bytes()).ok();
    Ok(())
}

async fn describe(home: &Home) -> String {
    let running = processes::supervisor_pid(home).filter(|_| processes::is_running(home));
    let Some(supervisor) = running else {
        return format!(
            "{}: not running (`cargo xtask up --name {0}` starts it again with its data)\n",
            home.name()
        );
    };
    let mut lines = vec![format!("{}: {}\n", home.name(), health(home).await)];
    let mut line = |label: &str, value: String| lines.push(format!("  {label:<20} {value}\n"));
    match State::read(home) {
        Ok(Some(state)) => {
            line("server", state.addresses.server());
            line("binaries of pods", state.bin_dir.display().to_string());
        }
        Ok(None) => line("state", "missing".to_owned()),
        Err(error) => line("state", format!("{error:#}")),
    }
    line("kubeconfig", home.kubeconfig().display().to_string());
    line("audit log", home.audit_log().display().to_string());
    line("logs", home.logs().display().to_string());
    line("supervisor", format!("pid {}", supervisor.as_raw_nonzero()));
    for (name, kept) in Roster::read(home) {
        let pid = kept.pid.map_or_else(|| "down".to_owned(), |pid| format!("pid {pid}"));
        line(&name, if kept.restarts == 0 { pid } else { format!("{pid}, restarted {}×", kept.restarts) });
    }
    lines.concat()
}

async fn health(home: &Home) -> String {
    match kubeconfig::client(&home.kubeconfig()).await {
        Ok(client) if readiness::api_server_is_ready(&client).await => {
            match readiness::nodes_ready(&client).await {
                Ok((ready, all)) => format!("running, {ready} of {all} nodes ready"),
                Err(error) => format!("running, but its nodes could not be listed: {error}"),
            }
        }
        Ok(_) => "running, the API server is not ready".to_owned(),
        Err(error) => format!("running, but without a usable kubeconfig: {error:#}"),
    }
}

//! kubectl, with each command printed in the form that a reader would type.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use local_cluster::{Access, Interrupt};
use tokio::io::AsyncWriteExt;

use crate::workspace;

/// Runs kubectl against the demo's cluster.
pub struct Kubectl<'a> {
    pub access: &'a Access,
    pub interrupt: &'a Interrupt,
}

impl Kubectl<'_> {
    /// Runs a command whose output is for the reader.
    pub async fn run(&self, arguments: &[&str]) -> Result<()> {
        show(arguments);
        self.interrupt.run(&mut self.command(arguments)).await.with_context(|| self.stopped(arguments))
    }

    /// Runs a command that reads from standard input; its output is needed, and shown.
    pub async fn feed(&self, arguments: &[&str], input: &str) -> Result<String> {
        show(arguments);
        let answer = self.output(arguments, input).await?;
        println!("{answer}");
        Ok(answer)
    }

    /// Runs a command whose output is needed but not shown.
    pub async fn read(&self, arguments: &[&str]) -> Result<String> {
        self.output(arguments, "").await
    }

    async fn output(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = tokio::process::Command::from(self.command(arguments));
        command.kill_on_drop(true).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let work = async {
            let mut child = command.spawn().context("could not run kubectl")?;
            if let Some(mut stdin) = child.stdin.take() {
                stdin.write_all(input.as_bytes()).await?;
            }
            let output = child.wait_with_output().await?;
            if !output.status.success() {
                bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
            }
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        self.interrupt.or(work).await.with_context(|| self.stopped(arguments))
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut kubectl = self.access.kubectl();
        kubectl.args(arguments).current_dir(workspace::root());
        kubectl
    }

    fn stopped(&self, arguments: &[&str]) -> String {
        format!("`kubectl {}` (logs are in {})", arguments.join(" "), self.access.logs.display())
    }
}

fn show(arguments: &[&str]) {
    let quoted = |argument: &&str| {
        if argument.contains(['{', '*', '"', ' ']) { format!("'{argument}'") } else { (*argument).to_owned() }
    };
    println!("$ kubectl {}", arguments.iter().map(quoted).collect::<Vec<_>>().join(" "));
}

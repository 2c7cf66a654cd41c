//! kubectl, with each command printed in the form that a reader would type.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use local_cluster::{Access, Interrupt};
use tokio::io::AsyncWriteExt;

use crate::workspace;

/// Runs kubectl against the demo's cluster.
pub struct Kubectl<'a> {
    access: &'a Access,
    interrupt: &'a Interrupt,
}

impl<'a> Kubectl<'a> {
    pub fn new(access: &'a Access, interrupt: &'a Interrupt) -> Self {
        Self { access, interrupt }
    }

    /// Runs a command whose output is for the reader.
    pub async fn run(&self, arguments: &[&str]) -> Result<()> {
        show(arguments);
        self.interrupt.run(&mut self.command(arguments)).await.with_context(|| self.stopped(arguments))
    }

    /// Runs a command whose output is needed, and shows it.
    pub async fn ask(&self, arguments: &[&str]) -> Result<String> {
        let answer = self.answer(arguments, "").await?;
        println!("{answer}");
        Ok(answer)
    }

    /// Runs a command that reads from standard input.
    pub async fn feed(&self, arguments: &[&str], input: &str) -> Result<()> {
        let answer = self.answer(arguments, input).await?;
        println!("{answer}");
        Ok(())
    }

    /// Runs a command whose output is needed but not shown.
    pub async fn read(&self, arguments: &[&str]) -> Result<String> {
        self.output(arguments, "").await
    }

    async fn answer(&self, arguments: &[&str], input: &str) -> Result<String> {
        show(arguments);
        self.output(arguments, input).await
    }

    async fn output(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let work = async {
            let mut child = tokio::process::Command::from(command)
                .kill_on_drop(true)
                .spawn()
                .context("could not run kubectl")?;
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

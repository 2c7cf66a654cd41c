//! Programs that end by themselves.

use std::{
    ffi::OsStr,
    iter::once,
    process::{Output, Stdio},
};

use anyhow::{Context, Result, ensure};
use tokio::{io::AsyncWriteExt, process::Command};

/// Runs a program with an input, to its end.
pub(crate) async fn run(mut program: Command, input: &str) -> Result<Output> {
    let started = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut running = started.with_context(|| format!("could not start {}", line(&program)))?;
    let mut stdin = running.stdin.take().context("the program has no input")?;
    // Its output is read meanwhile: it may answer each line, and wait until somebody takes that.
    let writing = async move { stdin.write_all(input.as_bytes()).await };
    let (written, output) = tokio::join!(writing, running.wait_with_output());
    written?;
    Ok(output?)
}

/// The output of a program that has to succeed.
pub async fn output_of(program: Command, input: &str) -> Result<String> {
    let line = line(&program);
    let output = run(program, input).await?;
    ensure!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn line(program: &Command) -> String {
    let program = program.as_std();
    let words = once(program.get_program()).chain(program.get_args()).map(OsStr::to_string_lossy);
    words.collect::<Vec<_>>().join(" ")
}

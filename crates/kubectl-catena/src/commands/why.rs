//! `kubectl catena why`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;

use crate::{
    connection::Options,
    output::Output,
    paint::Paint,
    target::ObjectArgument,
    why::{explanation, text},
};

/// The object to explain.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    object: ObjectArgument,
    #[command(flatten)]
    output: Output,
}

/// Explains the state of an object.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let target = arguments.object.target()?;
    let cluster = options.connect().await?;
    let answer = Box::pin(explanation(&cluster, &target)).await?;
    arguments.output.print(&answer, || text(&answer, Timestamp::now(), Paint::for_stdout()))?;
    Ok(answer.exit_code().into())
}

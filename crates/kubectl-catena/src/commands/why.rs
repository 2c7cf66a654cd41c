//! `kubectl catena why`

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

/// What is asked about.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    object: ObjectArgument,
    #[command(flatten)]
    output: Output,
}

/// Says why the object is not as it should be.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<()> {
    let target = arguments.object.target()?;
    let cluster = options.connect().await?;
    let answer = explanation(&cluster, &target).await?;
    arguments.output.print(&answer, || text(&answer, Timestamp::now(), Paint::for_stdout()))
}

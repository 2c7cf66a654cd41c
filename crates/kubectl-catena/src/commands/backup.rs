//! `kubectl catena backup`

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::Args;

use super::exit_code;
use crate::{
    archive::{LeftOut, Saved, collect},
    connection::Options,
    interrupt::{Interrupt, interrupted},
    kinds::Kind,
    output::Output,
    paint::Paint,
    table::Table,
};

/// The scope of a backup.
#[derive(Args)]
pub struct Arguments {
    /// The folder; an earlier backup in it is brought up to date
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A kind to back up, in any form that kubectl accepts, instead of all kinds of Catena; can be given several times
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// Back up all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    output: Output,
}

/// Makes a backup.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let kinds: Result<Vec<Kind>> =
        arguments.kinds.iter().map(|word| cluster.kinds.find(word).cloned()).collect();
    let namespace = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
    let kinds = kinds?;
    let collected = Box::pin(collect(&cluster, &arguments.folder, &kinds, namespace));
    let Some(saved) = interrupt.or(collected).await else { return Ok(interrupted()) };
    let saved = saved?;
    arguments.output.print(&saved, || text(&saved))?;
    if !saved.complete {
        eprintln!(
            "the backup is incomplete, and no file was removed: correct what was not read, and make it again"
        );
    }
    Ok(exit_code(saved.complete))
}

fn text(saved: &Saved) -> String {
    let mut table = Table::of(["KIND", "SAVED", "LEFT OUT", "REASON"]);
    for (kind, count) in &saved.objects {
        table.push([kind.into(), count.to_string().into(), "".into(), "".into()]);
    }
    for LeftOut { kind, count, why } in &saved.left_out {
        table.push([kind.into(), "".into(), count.to_string().into(), why.into()]);
    }
    let gaps = saved.not_seen.iter().map(|gap| format!("not saved: {gap}\n"));
    table.render(Paint::for_stdout()) + &gaps.collect::<String>()
}

//! `kubectl catena backup`

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use catena_cluster::{Kind, Kinds, Options, Paint};
use clap::Args;

use super::exit_code;
use crate::{
    archive::{LeftOut, Saved, collect},
    screen::{Interrupt, Output, Table, interrupted},
};

/// The scope of a backup.
#[derive(Args)]
pub struct Arguments {
    /// The folder; an earlier backup in it is brought up to date
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// A kind or a category to back up, in any form that kubectl accepts, instead of all kinds of Catena (catena); can be given
    /// several times
    #[arg(long = "kind", value_name = "KIND")]
    kinds: Vec<String>,
    /// Back up all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
}

/// Makes a backup.
pub async fn run(options: &Options, output: Output, arguments: &Arguments) -> Result<ExitCode> {
    let cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let kinds = kinds(&cluster.kinds, &arguments.kinds)?;
    let namespace = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
    let collected = Box::pin(collect(&cluster, &arguments.folder, &kinds, namespace));
    let Some(saved) = interrupt.or(collected).await else { return Ok(interrupted()) };
    let saved = saved?;
    output.print(&saved, |paint| text(&saved, paint))?;
    if saved.objects.is_empty() {
        let of = if kinds.is_empty() { "Catena's kinds" } else { "the chosen kinds" };
        let place =
            namespace.map_or_else(|| "in any namespace".to_owned(), |name| format!("in namespace {name:?}"));
        eprintln!(
            "nothing was saved, and an earlier backup stays as it is: there is no object of {of} {place}; choose others with \
             --kind"
        );
    } else if saved.keeps_former {
        eprintln!(
            "the backup is incomplete, and no file was removed: correct what was not read, and make it again"
        );
    } else if !saved.complete {
        eprintln!("the backup is incomplete: it lacks the objects that cannot be kept, as listed above");
    }
    Ok(exit_code(saved.complete))
}

/// The kinds that words name, which may be categories.
fn kinds(known: &Kinds, words: &[String]) -> Result<Vec<Kind>> {
    let mut kinds = Vec::new();
    for word in words {
        let before = kinds.len();
        kinds.extend(known.in_category(word).filter(|kind| kind.is_listed).cloned());
        if kinds.len() == before {
            kinds.push(known.find(word)?.clone());
        }
    }
    Ok(kinds)
}

fn text(saved: &Saved, paint: Paint) -> String {
    let mut table = Table::of(["KIND", "SAVED", "LEFT OUT", "REASON"]);
    for (kind, count) in &saved.objects {
        table.push([kind.into(), count.to_string().into(), "".into(), "".into()]);
    }
    for LeftOut { kind, count, why } in &saved.left_out {
        table.push([kind.into(), "".into(), count.to_string().into(), why.into()]);
    }
    let gaps = saved.not_seen.iter().map(|gap| format!("not saved: {gap}\n"));
    let rows = if table.is_empty() { String::new() } else { table.render(paint) };
    rows + &gaps.collect::<String>()
}

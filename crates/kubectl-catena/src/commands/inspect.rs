//! `kubectl catena tree` and `kubectl catena why`

use std::process::ExitCode;

use anyhow::Result;
use catena_cluster::{Gap, ObjectArgument, Options};
use catena_explain::{Drawing, LostOwner, Node, Scope, draw, explanation, fetch, text};
use catena_terminal::sanitized;
use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use crate::output::Output;

/// The object, and the extent of its tree.
#[derive(Args)]
pub struct Tree {
    #[command(flatten)]
    object: ObjectArgument,
    /// Omit the objects above
    #[arg(long)]
    below: bool,
    /// Search all kinds, not only the usual kinds of dependents
    #[arg(long)]
    all_kinds: bool,
    /// Give each object a line, even if many are alike
    #[arg(long)]
    no_grouping: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'s> {
    tree: &'s Node,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost_owners: Vec<String>,
    #[serde(skip_serializing_if = "<[Gap]>::is_empty")]
    not_seen: &'s [Gap],
}

/// Explains the state of an object.
pub async fn why(options: &Options, output: Output, object: &ObjectArgument) -> Result<ExitCode> {
    let target = object.target()?;
    let cluster = options.connect().await?;
    let answer = Box::pin(explanation(&cluster, &target)).await?;
    output.print(&answer, || text(&answer, answer.now))?;
    Ok(answer.exit_code().into())
}

/// Shows the chain.
pub async fn tree(options: &Options, output: Output, arguments: &Tree) -> Result<()> {
    let target = arguments.object.target()?;
    let cluster = options.connect().await?;
    let scope = Scope { whole: !arguments.below, all_kinds: arguments.all_kinds };
    let (tree, fetched) = fetch(&cluster, &target, scope).await?;
    let lost_owners = fetched.lost_owners.iter().map(|lost| lost.owner.to_string()).collect();
    let shown = Shown { tree: &tree, lost_owners, not_seen: &fetched.gaps };
    output.print(&shown, || {
        let drawing =
            Drawing { asked: &fetched.asked, is_grouped: !arguments.no_grouping, now: Timestamp::now() };
        draw(&tree, &drawing) + &remarks(&shown, &fetched.lost_owners)
    })
}

/// The objects that are missing from the tree, with the reason.
fn remarks(shown: &Shown, lost_owners: &[LostOwner]) -> String {
    let lost = lost_owners.iter().map(|lost| sanitized(&format!("\n{}\n", lost.remark(false))));
    let unseen = shown.not_seen.iter().map(|gap| format!("\nnot read: {gap}"));
    let text: String = lost.chain(unseen).collect();
    if text.is_empty() || text.ends_with('\n') { text } else { text + "\n" }
}

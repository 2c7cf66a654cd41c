//! `kubectl catena backup` and `kubectl catena restore`

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use catena_archive::{Choices, LeftOut, Report, Saved};
use catena_cluster::{Kind, Kinds, Options};
use catena_terminal::{Cell, Interrupt, Table, Tone, interrupted, tell};
use clap::Args;

use super::exit_code;
use crate::output::Output;

/// The scope of a backup.
#[derive(Args)]
pub struct Backup {
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
pub async fn backup(options: &Options, output: Output, arguments: &Backup) -> Result<ExitCode> {
    let cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let kinds = kinds(&cluster.kinds, &arguments.kinds)?;
    let namespace = (!arguments.all_namespaces).then_some(cluster.namespace.as_str());
    let collected = Box::pin(catena_archive::collect(&cluster, &arguments.folder, &kinds, namespace));
    let Some(saved) = interrupt.or(collected).await else { return Ok(interrupted()) };
    let saved = saved?;
    output.print(&saved, || saved_text(&saved))?;
    if saved.objects.is_empty() {
        let of = if kinds.is_empty() { "Catena's kinds" } else { "the chosen kinds" };
        let place =
            namespace.map_or_else(|| "in any namespace".to_owned(), |name| format!("in namespace {name:?}"));
        tell(&format!(
            "nothing was saved, and an earlier backup stays as it is: there is no object of {of} {place} that could be kept; choose \
             others with --kind"
        ));
    } else if saved.keeps_former {
        tell(
            "the backup is incomplete, and keeps the files of objects that may be gone: correct what was not read, and make it again",
        );
    } else if !saved.complete {
        tell("the backup is incomplete: it lacks what is listed above");
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

fn saved_text(saved: &Saved) -> String {
    let mut table = Table::of(["KIND", "SAVED", "LEFT OUT", "REASON"]);
    for (kind, count) in &saved.objects {
        table.push([kind.into(), count.to_string().into(), "".into(), "".into()]);
    }
    for LeftOut { kind, count, why } in &saved.left_out {
        table.push([kind.into(), "".into(), count.to_string().into(), why.into()]);
    }
    let gaps = saved.not_seen.iter().map(|gap| format!("not saved: {gap}\n"));
    let text = table.section() + &gaps.collect::<String>();
    text.trim_start().to_owned()
}

/// The backup.
#[derive(Args)]
pub struct Restore {
    /// The folder of a backup
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    choices: Choices,
}

/// Restores a backup.
pub async fn restore(options: &Options, output: Output, arguments: &Restore) -> Result<ExitCode> {
    let mut cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let restoration = Box::pin(catena_archive::restore(
        &mut cluster,
        &arguments.folder,
        options.namespace.as_deref(),
        arguments.choices,
    ));
    let Some(restored) = interrupt.or(restoration).await else {
        tell("the restoration is incomplete: repeat it to continue");
        return Ok(interrupted());
    };
    let restored = restored?;
    output.print(&restored, || restored_text(&restored))?;
    Ok(exit_code(restored.failed.is_empty() && restored.differing.is_empty()))
}

fn restored_text(restored: &Report) -> String {
    let (created, present) = (restored.restored.len(), restored.present.len());
    let some = |count: usize, text: String| if count == 0 { String::new() } else { text };
    let (overwritten, differing) = (restored.overwritten.len(), restored.differing.len());
    let overwritten = some(overwritten, format!(", {overwritten} overwritten"));
    let differing = some(differing, format!(" ({differing} not as in the backup)"));
    let text = format!(
        "{created} objects restored, {present} were there and are left alone{overwritten}{differing}\n"
    );
    let mut table = Table::of(["NAMESPACE", "NOT RESTORED", "REASON"]);
    let left_out = restored.left_out.iter().map(|note| (note, Tone::Moving));
    let failed = restored.differing.iter().chain(&restored.failed).map(|note| (note, Tone::Bad));
    for (note, tone) in left_out.chain(failed) {
        let namespace = note.object.namespace.clone().unwrap_or_default();
        table.push([namespace.into(), Cell::toned(tone, note.object.to_string()), note.why.as_str().into()]);
    }
    text + &table.section()
}

#[cfg(test)]
mod tests {

    use anstream::adapter::strip_str;
    use catena_archive::Note;
    use catena_cluster::Identity;

    use super::*;

    #[test]
    fn what_could_not_be_brought_back_is_listed_with_the_reason() {
        let object =
            Identity { kind: "BasicDeploymentRestart".into(), name: "again".into(), ..Identity::default() };
        let restored =
            Report { left_out: vec![Note { object, why: "it had begun".into() }], ..Report::default() };
        let text = strip_str(&restored_text(&restored)).to_string();
        assert!(text.starts_with("0 objects restored, 0 were there"), "{text}");
        assert!(text.contains("BasicDeploymentRestart/again   it had begun"), "{text}");
    }

    #[test]
    fn what_differs_from_the_backup_is_counted_apart() {
        let object = Identity { kind: "Secret".into(), name: "key".into(), ..Identity::default() };
        let differing = vec![Note { object: object.clone(), why: "it differs in data.key".into() }];
        let text = restored_text(&Report { present: vec![object], differing, ..Report::default() });
        assert!(text.contains("1 were there and are left alone (1 not as in the backup)\n"), "{text}");
        assert!(text.contains("Secret/key") && text.contains("it differs in data.key"), "{text}");
    }
}

//! `kubectl catena restore`

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use catena_cluster::{Options, Paint, Tone};
use clap::Args;

use super::exit_code;
use crate::{
    archive::{Choices, Report, restore},
    screen::{Cell, Interrupt, Output, Table, interrupted},
};

/// The backup.
#[derive(Args)]
pub struct Arguments {
    /// The folder of a backup
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    #[command(flatten)]
    choices: Choices,
}

/// Restores a backup.
pub async fn run(options: &Options, output: Output, arguments: &Arguments) -> Result<ExitCode> {
    let mut cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let restoration =
        Box::pin(restore(&mut cluster, &arguments.folder, options.namespace.as_deref(), arguments.choices));
    let Some(restored) = interrupt.or(restoration).await else {
        eprintln!("the restoration is incomplete: repeat it to continue");
        return Ok(interrupted());
    };
    let restored = restored?;
    output.print(&restored, |paint| text(&restored, paint))?;
    Ok(exit_code(restored.failed.is_empty() && restored.differing.is_empty()))
}

fn text(restored: &Report, paint: Paint) -> String {
    let (created, present) = (restored.restored.len(), restored.present.len());
    let some = |count: usize, text: String| if count == 0 { String::new() } else { text };
    let (overwritten, differing) = (restored.overwritten.len(), restored.differing.len());
    let overwritten = some(overwritten, format!(", {overwritten} overwritten"));
    let differing = some(differing, format!(" ({differing} not as in the backup)"));
    let mut text = format!(
        "{created} objects restored, {present} were there and are left alone{differing}{overwritten}\n"
    );
    let mut table = Table::of(["NAMESPACE", "NOT RESTORED", "REASON"]);
    let left_out = restored.left_out.iter().map(|note| (note, Tone::Moving));
    let failed = restored.differing.iter().chain(&restored.failed).map(|note| (note, Tone::Bad));
    for (note, tone) in left_out.chain(failed) {
        let namespace = note.object.namespace.clone().unwrap_or_default();
        table.push([namespace.into(), Cell::toned(tone, note.object.to_string()), note.why.as_str().into()]);
    }
    if !table.is_empty() {
        text += &["\n", &table.render(paint)].concat();
    }
    text
}

#[cfg(test)]
mod tests {

    use catena_cluster::Identity;

    use super::*;
    use crate::archive::Note;

    #[test]
    fn what_could_not_be_brought_back_is_listed_with_the_reason() {
        let object =
            Identity { kind: "BasicDeploymentRestart".into(), name: "again".into(), ..Identity::default() };
        let restored =
            Report { left_out: vec![Note { object, why: "it had begun".into() }], ..Report::default() };
        let text = text(&restored, Paint::OFF);
        assert!(text.starts_with("0 objects restored, 0 were there"), "{text}");
        assert!(text.contains("BasicDeploymentRestart/again   it had begun"), "{text}");
    }

    #[test]
    fn what_differs_from_the_backup_is_counted_apart() {
        let object = Identity { kind: "Secret".into(), name: "key".into(), ..Identity::default() };
        let differing = vec![Note { object: object.clone(), why: "it differs in data.key".into() }];
        let text = text(&Report { present: vec![object], differing, ..Report::default() }, Paint::OFF);
        assert!(text.contains("1 were there and are left alone (1 not as in the backup)\n"), "{text}");
        assert!(text.contains("Secret/key") && text.contains("it differs in data.key"), "{text}");
    }
}

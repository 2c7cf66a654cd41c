//! `kubectl catena upgrade migrate`

use std::{collections::BTreeSet, process::ExitCode};

use anyhow::Result;
use catena_cluster::{Cluster, Options, Paint, Tone};
use clap::Args;

use super::{push_lost, push_refused};
use crate::{
    screen::{Interrupt, Output, Table, interrupted},
    upgrade::{LostField, Migrated, Migration, migrate},
};

/// Objects are left in another version.
const OBJECTS_LEFT: u8 = 4;

/// The kind to migrate.
#[derive(Args)]
pub struct Arguments {
    /// The kind, in any form that kubectl accepts, or the name of its CustomResourceDefinition
    kind: String,
    #[command(flatten)]
    migration: Migration,
}

/// Migrates a kind.
pub async fn run(options: &Options, output: Output, arguments: &Arguments) -> Result<ExitCode> {
    let cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let name = definition(&cluster, &arguments.kind)?;
    let migration = &arguments.migration;
    let Some(migrated) = interrupt.or(Box::pin(migrate(&cluster, &name, migration))).await else {
        return Ok(interrupted());
    };
    let migrated = migrated?;
    output.print(&migrated, |paint| text(&migrated, migration.dry_run, paint))?;
    Ok(if migrated.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(OBJECTS_LEFT) })
}

/// The name of the definition of a kind.
fn definition(cluster: &Cluster, word: &str) -> Result<String> {
    let kind = cluster.kinds.find(word.rsplit('/').next().unwrap_or_default())?;
    Ok(format!("{}.{}", kind.resource.plural, kind.resource.group))
}

fn text(migrated: &Migrated, dry_run: bool, paint: Paint) -> String {
    let Migrated { name, storage_version: storage, .. } = migrated;
    let left = migrated.left.len() + migrated.refused.len() + migrated.failed.len();
    if !migrated.is_complete() {
        let verdict = format!(
            "{name}: {left} objects are left as they are, so that status.storedVersions is unchanged"
        );
        let mut text = paint.tone(Tone::Bad, &verdict) + "\n\n";
        let mut table = Table::of(["LEFT", "FIELD", "VALUE", "REASON"]);
        push_lost(&mut table, &migrated.left, "would be lost");
        push_refused(&mut table, &migrated.refused);
        for failed in &migrated.failed {
            table.push([failed.what.as_str().into(), "".into(), "".into(), failed.why.as_str().into()]);
        }
        text += &table.render(paint);
        let lost = migrated.left.iter().flat_map(|object| &object.fields);
        let fields: BTreeSet<String> = lost.map(LostField::general).collect();
        if !fields.is_empty() {
            let flags: Vec<String> = fields.iter().map(|field| format!("--drop '{field}'")).collect();
            let advice = format!(
                "\nWhat to do: add the field to version {storage} of the definition, move the value elsewhere, or accept the \
                 loss with {}\n",
                flags.join(" ")
            );
            text += &advice;
        }
        return text;
    }
    let verdict = match (dry_run, migrated.objects) {
        (_, 0) if migrated.stored_versions.len() == 1 => {
            format!("{name}: all objects are stored in version {storage}")
        }
        (true, count) => {
            format!("{name}: {count} objects would be stored in version {storage}, without loss")
        }
        (false, count) => {
            format!("{name}: {count} objects are stored in version {storage}, and none in another one")
        }
    };
    paint.tone(Tone::Good, &verdict) + "\n"
}

#[cfg(test)]
mod tests {
    use catena_cluster::ObjectName;
    use serde_json::json;

    use super::*;
    use crate::upgrade::ObjectFields;

    #[test]
    fn a_possible_loss_is_answered_with_the_flag_that_accepts_it() {
        let object = ObjectName { namespace: None, name: "a".into() };
        let path = "spec.rules[12].color".to_owned();
        let fields = vec![LostField { path, value: json!("red"), is_default: false }];
        let left = vec![ObjectFields { object, fields }];
        let migrated = Migrated {
            name: "things.example.com".into(),
            storage_version: "v2".into(),
            left,
            ..Migrated::default()
        };
        let text = text(&migrated, false, Paint::OFF);
        assert!(text.contains("spec.rules[12].color   \"red\""), "{text}");
        assert!(text.contains("--drop 'spec.rules[].color'"), "{text}");
    }
}

//! `kubectl catena upgrade`

use std::{collections::BTreeSet, path::PathBuf, process::ExitCode};

use anyhow::Result;
use catena_api::compatibility::Finding;
use catena_cluster::{Gap, LostField, ObjectName, Options};
use catena_terminal::{Cell, Interrupt, Table, Tone, cut, interrupted, tell};
use catena_upgrade::{
    Absent, Checked, Leftover, Migrated, Migration, ObjectFields, Refused, absent, definitions,
    remove_leftovers, scratch_id,
};
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::output::Output;

/// The longest value in a table; `-o json` shows it whole.
const MAX_VALUE: usize = 80;
/// Something could not be checked.
const INCOMPLETE: u8 = 1;
/// A rule is broken, but no object is affected.
const RULES_BROKEN: u8 = 3;
/// An object would be refused or lose a field, or the server would refuse a definition; or objects are left in another version.
const OBJECTS_AFFECTED: u8 = 4;

/// The step of an upgrade.
#[derive(Subcommand)]
pub enum Command {
    /// Check new definitions against the installed ones, and every live object against the new schemas
    #[command(
        after_help = "Example: helm template --include-crds --is-upgrade charts/basic-deployment-controller | kubectl catena upgrade check -\n\nExit codes: 0 no rule is \
        broken, and no object is affected; 1 the check failed; 3 a rule is broken, but no object is affected; 4 an object \
        would be refused or lose a field, or the server would refuse a definition; 130 interrupted."
    )]
    Check(Check),
    /// Store all objects of a kind in its storage version, so that other versions can be removed from the definition
    #[command(
        after_help = "Example: kubectl catena upgrade migrate basicdeployments\n\nExit codes: 0 all objects are in the storage \
        version; 1 the migration failed; 4 objects are left, because they would lose a field or are refused; 130 \
        interrupted. Repeat it to continue."
    )]
    Migrate(Migrate),
}

/// Runs a step.
pub async fn run(options: &Options, output: Output, command: &Command) -> Result<ExitCode> {
    match command {
        Command::Check(arguments) => Box::pin(check(options, output, arguments)).await,
        Command::Migrate(arguments) => Box::pin(migrate(options, output, arguments)).await,
    }
}

/// The new definitions.
#[derive(Args)]
pub struct Check {
    /// Files with definitions (`CustomResourceDefinition`), folders of such files, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let a broken rule pass if no live object is affected: exit code 0 instead of 3
    #[arg(long)]
    objects_only: bool,
    /// A fixed name for the group of the scratch definition, `zz-upgrade-check-ID.catena.dev`, for rights that must name it
    #[arg(long, value_name = "ID", value_parser = scratch_id)]
    scratch_id: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    definitions: Vec<Checked>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    absent: Vec<Absent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    leftovers: Vec<Leftover>,
}

/// Checks definitions.
async fn check(options: &Options, output: Output, arguments: &Check) -> Result<ExitCode> {
    let definitions = definitions(&arguments.files)?;
    let cluster = options.connect().await?;
    let leftovers = remove_leftovers(&cluster).await?;
    let mut report =
        Report { definitions: Vec::new(), absent: absent(&cluster, &definitions).await?, leftovers };
    // From here on, there may be something to remove.
    let mut interrupt = Interrupt::new()?;
    for definition in &definitions {
        let (id, mut scratch) = (arguments.scratch_id.as_deref(), None);
        let check = Box::pin(catena_upgrade::check(&cluster, definition, id, &mut scratch));
        let checked = interrupt.or(check).await;
        // However the check ends.
        if let Some(scratch) = scratch {
            scratch.remove().await?;
        }
        let Some(checked) = checked else { return Ok(interrupted()) };
        report.definitions.push(checked?);
    }
    output.print(&report, || text(&report))?;
    Ok(ExitCode::from(exit_code(&report, arguments.objects_only)))
}

/// The exit code for a printed report, which an error would follow as a second document.
fn exit_code(report: &Report, objects_only: bool) -> u8 {
    let breaks_a_rule = report.definitions.iter().any(|checked| !checked.findings.is_empty());
    let unchecked = report.definitions.iter().flat_map(|checked| &checked.unchecked).count();
    if report.definitions.iter().any(Checked::harms) || report.absent.iter().any(|absent| absent.deleted) {
        OBJECTS_AFFECTED
    } else if unchecked > 0 {
        tell(&format!("the check is incomplete: {unchecked} could not be checked, as listed above"));
        INCOMPLETE
    } else if !objects_only && (breaks_a_rule || !report.absent.is_empty()) {
        RULES_BROKEN
    } else {
        0
    }
}

fn text(report: &Report) -> String {
    let leftover = |Leftover { name, removed, in_use_until, denied }: &Leftover| match denied.as_str() {
        _ if *removed => format!("removed {name}, which a killed check had left\n"),
        "" => format!(
            "left {name} alone: another check uses it, or was killed; a check after {in_use_until} removes it\n"
        ),
        denied => format!("left {name} alone, which a killed check had left: {denied}\n"),
    };
    let leftovers = report.leftovers.iter().map(leftover);
    let definitions = report.definitions.iter().map(definition_text);
    let absent = report.absent.iter().map(absent_text);
    leftovers.chain(definitions).chain(absent).collect::<Vec<_>>().join("\n")
}

fn absent_text(Absent { name, objects, deleted }: &Absent) -> String {
    let objects = match objects {
        None => "its objects, which cannot be listed,".to_owned(),
        Some(1) => "its object".to_owned(),
        Some(count) => format!("its {count} objects"),
    };
    let (tone, what) = if *deleted {
        (Tone::Bad, format!("helm deletes it with {objects}: save them before with"))
    } else {
        (Tone::Moving, format!("{objects} stay, and nothing new may be responsible for them: save them with"))
    };
    tone.paint(&format!("{name} is installed, and not among the new definitions"))
        + &format!("\n{what} `kubectl catena backup DIR --all-namespaces --kind {name}`\n")
}

fn definition_text(checked: &Checked) -> String {
    let (name, objects) = (&checked.name, checked.objects);
    let (refused, pruned) = (checked.refused.len(), checked.pruned.len());
    let mut text = if !checked.installed {
        format!("{name} is not installed: there is nothing to compare it with\n")
    } else if checked.harms() || !checked.findings.is_empty() || !checked.unchecked.is_empty() {
        let verdict = format!(
            "{name}: {refused} of {objects} objects would be refused, and {pruned} would lose fields"
        );
        let tone = if checked.harms() { Tone::Bad } else { Tone::Moving };
        tone.paint(&verdict) + "\n"
    } else {
        let tried =
            format!("{name} can be replaced: all {objects} objects stay valid, and none loses a field");
        Tone::Good.paint(&tried) + "\n"
    };
    if let Some(refusal) = &checked.refused_definition {
        let what = Tone::Bad.paint("the server would refuse the definition:");
        text += &["\n", &what, " ", refusal, "\n", &checked.first].concat();
    }
    let mut rules = Table::of(["RULE", "VERSION", "FIELD", "CHANGE"]);
    for Finding { rule, version, path, message } in &checked.findings {
        let rule = serde_json::to_value(rule).unwrap_or_default();
        let rule = Cell::toned(Tone::Moving, rule.as_str().unwrap_or_default());
        rules.push([rule, version.into(), path.into(), message.into()]);
    }
    let refused = affected("REFUSED", &[], "", &checked.refused);
    let pruned = affected("LOSES", &checked.pruned, "", &[]);
    let mut unchecked = Table::of(["NOT CHECKED", "REASON"]);
    for Gap { what, why } in &checked.unchecked {
        unchecked.push([what.into(), why.into()]);
    }
    text.extend([rules, refused, pruned, unchecked].iter().map(Table::section));
    let defaults = checked.defaults_dropped.iter();
    let defaults = defaults
        .map(|(field, count)| format!("\n{field} is dropped; {count} objects hold only its default\n"));
    text + &defaults.collect::<String>()
}

/// The kind to migrate.
#[derive(Args)]
pub struct Migrate {
    /// The kind, in any form that kubectl accepts, or the name of its CustomResourceDefinition
    kind: String,
    #[command(flatten)]
    migration: Migration,
}

/// Migrates a kind.
async fn migrate(options: &Options, output: Output, arguments: &Migrate) -> Result<ExitCode> {
    let cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let name = cluster.kinds.find(arguments.kind.rsplit('/').next().unwrap_or_default())?.full_name();
    let migration = &arguments.migration;
    let Some(migrated) = interrupt.or(Box::pin(catena_upgrade::migrate(&cluster, &name, migration))).await
    else {
        return Ok(interrupted());
    };
    let migrated = migrated?;
    output.print(&migrated, || migrated_text(&migrated, migration))?;
    Ok(if migrated.is_complete() { ExitCode::SUCCESS } else { ExitCode::from(OBJECTS_AFFECTED) })
}

fn migrated_text(migrated: &Migrated, migration: &Migration) -> String {
    let Migrated { name, storage_version, .. } = migrated;
    let storage = migration.to.as_ref().unwrap_or(storage_version);
    let left = migrated.left.len() + migrated.refused.len() + migrated.failed.len();
    if !migrated.is_complete() {
        let verdict = format!(
            "{name}: {left} objects are left as they are, so that status.storedVersions is unchanged"
        );
        let mut text = Tone::Bad.paint(&verdict) + "\n\n";
        let mut table = affected("LEFT", &migrated.left, "would be lost", &migrated.refused);
        for failed in &migrated.failed {
            table.push([failed.what.as_str().into(), "".into(), "".into(), failed.why.as_str().into()]);
        }
        text += &table.render();
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
    let verdict = match (migration.dry_run, migrated.objects) {
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
    Tone::Good.paint(&verdict) + "\n"
}

/// The objects that would lose fields, for a reason, and those that would be refused.
fn affected(title: &str, pruned: &[ObjectFields], reason: &str, refused: &[Refused]) -> Table {
    let mut table = Table::of([title, "FIELD", "VALUE", "REASON"]);
    let name = |object: &ObjectName| Cell::toned(Tone::Bad, object.to_string());
    for ObjectFields { object, fields } in pruned {
        for LostField { path, value, .. } in fields {
            let value = cut(&value.to_string(), MAX_VALUE).into_owned();
            table.push([name(object), path.into(), value.into(), reason.into()]);
        }
    }
    for Refused { object, causes } in refused {
        for cause in causes {
            table.push([name(object), (&cause.field).into(), "".into(), (&cause.message).into()]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use catena_upgrade::Definition;
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn each_lost_field_is_listed_with_its_object_and_value() {
        let object = serde_json::from_value::<serde_json::Value>(
            json!({"metadata": {"namespace": "shop", "name": "a"}}),
        );
        let object = ObjectName::of(&object.unwrap());
        let fields = vec![LostField { path: "spec.legacy".into(), value: json!("x"), is_default: false }];
        let checked = Checked {
            name: "things.example.com".into(),
            installed: true,
            objects: 5,
            pruned: vec![ObjectFields { object, fields }],
            ..Checked::default()
        };
        let text = strip_str(&definition_text(&checked)).to_string();
        assert!(
            text.starts_with(
                "things.example.com: 0 of 5 objects would be refused, and 1 would lose fields\n"
            )
        );
        assert!(text.contains("shop/a   spec.legacy   \"x\"\n"), "{text}");
        assert!(checked.harms());
    }

    #[test]
    fn a_check_that_missed_an_object_fails_beside_its_report() {
        let gap = Gap::new("shop/a", "no permission");
        let report = |checked: Checked, absent: Vec<Absent>| Report {
            definitions: vec![checked],
            absent,
            leftovers: Vec::new(),
        };
        let missed = Checked { unchecked: vec![gap], ..Checked::default() };
        assert_eq!(exit_code(&report(missed, Vec::new()), true), 1);
        assert_eq!(exit_code(&report(Checked::default(), Vec::new()), false), 0);
        for (deleted, objects_only, code) in [(true, true, 4), (false, false, 3), (false, true, 0)] {
            let absent = vec![Absent { name: "things.example.com".into(), objects: Some(1), deleted }];
            assert_eq!(exit_code(&report(Checked::default(), absent), objects_only), code);
        }
    }

    #[test]
    fn what_could_not_be_checked_is_not_said_to_stay_valid() {
        let name = "things.example.com".to_owned();
        let whole = Checked { name, installed: true, ..Checked::default() };
        assert!(definition_text(&whole).contains("can be replaced"));
        let missed = Checked { unchecked: vec![Gap::new("shop/a", "no permission")], ..whole };
        let text = definition_text(&missed);
        assert!(!text.contains("can be replaced") && text.contains("no permission"), "{text}");
    }

    #[test]
    fn the_way_to_a_definition_is_a_command_line_that_is_accepted_as_printed() {
        let definition = |version: &str| {
            let served =
                ["v1", "v2"].map(|name| json!({"name": name, "served": true, "storage": name == version}));
            let document = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "things.example.com"},
                "spec": {
                    "group": "example.com", "names": {"plural": "things", "kind": "Thing"},
                    "versions": served.iter().filter(|served| version == "v1" || served["storage"] == true).collect::<Vec<_>>(),
                },
            });
            Definition::new(document).unwrap()
        };
        let way = definition("v1").way_to(&definition("v2"));
        let line = way.split('`').nth(1).unwrap();
        assert!(line.ends_with(" --to v2"), "{way}");
        Cli::try_parse_from(line.trim_start_matches("kubectl ").split(' ')).map(drop).unwrap();
    }

    #[test]
    fn a_possible_loss_is_answered_with_the_flag_that_accepts_it() {
        let object = ObjectName { namespace: None, name: "a".into() };
        let path = "spec.rules[12].color".to_owned();
        let fields = vec![LostField { path, value: json!("red"), is_default: false }];
        let left = vec![ObjectFields { object, fields }];
        let migrated = Migrated {
            name: "things.example.com".into(),
            storage_version: "v1".into(),
            left,
            ..Migrated::default()
        };
        let migration = Migration { to: Some("v2".into()), ..Migration::default() };
        let text = strip_str(&migrated_text(&migrated, &migration)).to_string();
        assert!(text.contains("add the field to version v2 of the definition"), "{text}");
        assert!(text.contains("spec.rules[12].color   \"red\""), "{text}");
        assert!(text.contains("--drop 'spec.rules[].color'"), "{text}");
    }
}

//! `kubectl catena upgrade check`

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use catena_api::compatibility::Finding;
use catena_cluster::{Cluster, Gap, Options, Paint, Tone};
use clap::Args;
use serde::Serialize;

use super::{push_lost, push_refused};
use crate::{
    screen::{Cell, Interrupt, Output, Table, interrupted},
    upgrade::{
        Absent, Checked, Definition, Leftover, absent, check, definitions, remove_leftovers, scratch_id,
    },
};

/// Something could not be checked.
const INCOMPLETE: u8 = 1;
/// A rule is broken, but no object is affected.
const RULES_BROKEN: u8 = 3;
/// An object would be refused or lose a field, or the server would refuse a definition.
const OBJECTS_AFFECTED: u8 = 4;

/// The new definitions.
#[derive(Args)]
pub struct Arguments {
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
pub async fn run(options: &Options, output: Output, arguments: &Arguments) -> Result<ExitCode> {
    let definitions = definitions(&arguments.files)?;
    let cluster = options.connect().await?;
    let mut interrupt = Interrupt::new()?;
    let leftovers = remove_leftovers(&cluster).await?;
    let mut report =
        Report { definitions: Vec::new(), absent: absent(&cluster, &definitions).await?, leftovers };
    for definition in &definitions {
        let id = arguments.scratch_id.as_deref();
        match checked(&cluster, definition, id, &mut interrupt).await? {
            Some(checked) => report.definitions.push(checked),
            None => return Ok(interrupted()),
        }
    }
    output.print(&report, |paint| text(&report, paint))?;
    Ok(ExitCode::from(exit_code(&report, arguments.objects_only)))
}

/// The exit code for a printed report, which an error would follow as a second document.
fn exit_code(report: &Report, objects_only: bool) -> u8 {
    let breaks_a_rule = report.definitions.iter().any(|checked| !checked.findings.is_empty());
    let unchecked = report.definitions.iter().flat_map(|checked| &checked.unchecked).count();
    if report.definitions.iter().any(Checked::harms) || report.absent.iter().any(|absent| absent.deleted) {
        OBJECTS_AFFECTED
    } else if unchecked > 0 {
        eprintln!("the check is incomplete: {unchecked} could not be checked, as listed above");
        INCOMPLETE
    } else if !objects_only && (breaks_a_rule || !report.absent.is_empty()) {
        RULES_BROKEN
    } else {
        0
    }
}

/// Checks a definition, and removes its scratch definition however the check ends.
async fn checked(
    cluster: &Cluster,
    definition: &Definition,
    id: Option<&str>,
    interrupt: &mut Interrupt,
) -> Result<Option<Checked>> {
    let mut scratch = None;
    let checked = interrupt.or(Box::pin(check(cluster, definition, id, &mut scratch))).await;
    if let Some(scratch) = scratch {
        scratch.remove().await?;
    }
    checked.transpose()
}

fn text(report: &Report, paint: Paint) -> String {
    let leftovers = report.leftovers.iter().map(|leftover| {
        if leftover.removed {
            format!("removed {}, which a killed check had left\n", leftover.name)
        } else if !leftover.denied.is_empty() {
            format!("left {} alone, which a killed check had left: {}\n", leftover.name, leftover.denied)
        } else {
            format!(
                "left {} alone: another check uses it, or was killed; a check after {} removes it\n",
                leftover.name, leftover.in_use_until
            )
        }
    });
    let definitions = report.definitions.iter().map(|checked| of(checked, paint));
    let absent = report.absent.iter().map(|absent| absent_text(absent, paint));
    leftovers.chain(definitions).chain(absent).collect::<Vec<_>>().join("\n")
}

fn absent_text(Absent { name, objects, deleted }: &Absent, paint: Paint) -> String {
    let objects = match objects {
        None => "its objects, which you may not list,".to_owned(),
        Some(1) => "its object".to_owned(),
        Some(count) => format!("its {count} objects"),
    };
    let (tone, what) = if *deleted {
        (Tone::Bad, format!("helm deletes it with {objects}: save them before with"))
    } else {
        (Tone::Moving, format!("{objects} stay, and nothing new may be responsible for them: save them with"))
    };
    paint.tone(tone, &format!("{name} is installed, and not among the new definitions"))
        + &format!("\n{what} `kubectl catena backup DIR --all-namespaces --kind {name}`\n")
}

fn of(checked: &Checked, paint: Paint) -> String {
    let (name, objects) = (&checked.name, checked.objects);
    let mut text = if !checked.installed {
        format!("{name} is not installed: there is nothing to compare it with\n")
    } else if checked.harms() || !checked.findings.is_empty() {
        let verdict = format!(
            "{name}: {} of {objects} objects would be refused, and {} would lose fields",
            checked.refused.len(),
            checked.pruned.len()
        );
        let tone = if checked.harms() { Tone::Bad } else { Tone::Moving };
        paint.tone(tone, &verdict) + "\n"
    } else {
        let tried =
            format!("{name} can be replaced: all {objects} objects stay valid, and none loses a field");
        paint.tone(Tone::Good, &tried) + "\n"
    };
    if let Some(refusal) = &checked.refused_definition {
        let what = paint.tone(Tone::Bad, "the server would refuse the definition:");
        text += &["\n", &what, " ", refusal, "\n", &checked.first].concat();
    }
    let mut rules = Table::of(["RULE", "VERSION", "FIELD", "CHANGE"]);
    for Finding { rule, version, path, message } in &checked.findings {
        let rule = serde_json::to_value(rule).unwrap_or_default();
        let rule = Cell::toned(Tone::Moving, rule.as_str().unwrap_or_default());
        rules.push([rule, version.into(), path.into(), message.into()]);
    }
    let mut refused = Table::of(["REFUSED", "FIELD", "VALUE", "MESSAGE"]);
    push_refused(&mut refused, &checked.refused);
    let mut pruned = Table::of(["LOSES", "FIELD", "VALUE", "REASON"]);
    push_lost(&mut pruned, &checked.pruned, "");
    let mut unchecked = Table::of(["NOT CHECKED", "REASON"]);
    for Gap { what, why } in &checked.unchecked {
        unchecked.push([what.into(), why.into()]);
    }
    for table in [rules, refused, pruned, unchecked].iter().filter(|table| !table.is_empty()) {
        text += &["\n", &table.render(paint)].concat();
    }
    let defaults = checked.defaults_dropped.iter();
    let defaults = defaults
        .map(|(field, count)| format!("\n{field} is dropped; {count} objects hold only its default\n"));
    text + &defaults.collect::<String>()
}

#[cfg(test)]
mod tests {
    use catena_cluster::ObjectName;
    use serde_json::json;

    use super::*;
    use crate::upgrade::{LostField, ObjectFields};

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
        let text = of(&checked, Paint::OFF);
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
}

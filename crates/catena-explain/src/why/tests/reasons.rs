//! Every reason that a controller can report is explained, here and on the pages.

use std::{collections::HashSet, env, fs, path::Path};

use catena_api::reason;

use super::{
    WEB,
    scene::{ask, calm, refused},
};
use crate::why::reasons::{Row, describe, part, rows};

#[test]
fn every_reason_that_a_controller_reports_is_explained() {
    let unexplained: Vec<_> = [
        reason::ALL,
        operator_kit::report::Failures::REASONS,
        operator_templates::TemplateError::REASONS,
        operator_watch::ApiError::REASONS,
    ]
    .concat()
    .into_iter()
    .filter(|reason| {
        let cause = ask(WEB, &refused(reason, "as it says"), &calm()).root_cause.unwrap();
        cause.reason != *reason || cause.meaning == "is not ready" || cause.advice.is_empty()
    })
    .collect();
    assert!(unexplained.is_empty(), "without a row in catena-api/src/reasons.yaml: {unexplained:?}");
}

const PARTS: [&str; 10] =
    ["pods", "jobs", "volumes", "templates", "writes", "rollouts", "backups", "commands", "binding", "cases"];

#[test]
fn no_reason_has_two_rows_in_a_part() {
    for name in PARTS {
        let mut seen = HashSet::new();
        for reason in part(name).iter().flat_map(|row| &row.reasons) {
            assert!(seen.insert(reason), "{name}: {reason}");
        }
        assert!(!seen.is_empty(), "{name}");
    }
}

#[test]
fn no_case_is_left_in_the_table_that_nobody_reports() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/why");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let sources: String =
        files.filter(|path| path.is_file()).map(|path| fs::read_to_string(path).unwrap()).collect();
    for case in part("cases").iter().flat_map(|row| &row.reasons) {
        assert!(sources.contains(&format!("{case:?}")), "{case}");
    }
}

/// The pages with tables that are made from the rows, between a comment with the parts and another one.
const PAGES: [&str; 2] = ["docs/when-something-is-stuck.md", "charts/command-binder/README.md"];

#[test]
fn the_tables_of_the_pages_are_made_from_the_rows() {
    assert_ne!(rows().count(), 0, "reasons.yaml is malformed");
    for page in PAGES {
        let path = repository().join(page);
        let text = fs::read_to_string(&path).unwrap();
        let expected = with_tables(&text);
        assert_ne!(text.matches(BEGIN).count(), 0, "{page}");
        if env::var_os("UPDATE_PAGES").is_some() {
            fs::write(&path, &expected).unwrap();
        } else {
            assert!(text == expected, "make {page} again: UPDATE_PAGES=1 cargo test -p catena-explain pages");
        }
    }
}

#[test]
fn the_page_on_protection_names_reasons_that_exist() {
    let page = fs::read_to_string(repository().join("docs/protect-a-kind.md")).unwrap();
    let (_, table) = page.split_once("| reason of `Blocked` | remedy |").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for cell in table.lines().skip(2).filter_map(|line| line.split('|').nth(1)) {
        for reason in cell.split('`').skip(1).step_by(2) {
            assert!(describe(reason).is_some(), "{reason}");
        }
    }
}

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

const BEGIN: &str = "<!-- reasons: ";
const END: &str = "<!-- end of reasons -->";

fn with_tables(page: &str) -> String {
    let mut parts = page.split(BEGIN);
    let before = parts.next().unwrap().to_owned();
    let made = parts.map(|rest| {
        let (name, rest) = rest.split_once(" -->\n").unwrap();
        let (_, rest) = rest.split_once(END).unwrap();
        let rows: String = part(name).iter().map(line).collect();
        format!("{BEGIN}{name} -->\n\n{HEAD}{rows}\n{END}{rest}")
    });
    before + &made.collect::<String>()
}

const HEAD: &str = "| reason, or words of the message | the object … | remedy |\n|---|---|---|\n";

fn line(row: &Row) -> String {
    let reasons = row.reasons.iter().map(|reason| format!("`{reason}`"));
    let words = row.says.iter().map(|words| format!("`… {} …`", words.trim()));
    let first = reasons.chain(words).collect::<Vec<_>>().join(", ");
    let more = if row.more.is_empty() { String::new() } else { format!(". {}", row.more) };
    let remedy = row
        .remedy
        .replace("{namespace}", "")
        .replace("{object}", "KIND/NAME")
        .replace("{target}", "KIND/NAME")
        .replace("{name}", "NAME")
        .replace("{template}", "the pod template")
        .replace("{node}", "node/NODE")
        .replace('<', "&lt;");
    format!("| {first} | {}{more} | {remedy} |\n", row.meaning)
}

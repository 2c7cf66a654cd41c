//! No controller reports a reason that `why` cannot explain.

use std::{fs, path::Path};

use super::{
    WEB,
    scene::{ask, calm, refused},
};

/// Every reason that a controller can report, read from its source, is explained, with a remedy.
#[test]
fn every_reason_that_a_controller_reports_is_explained() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut reasons = Vec::new();
    for (file, before) in [
        ("operator-kit/src/watch/api_error/describe.rs", &["=> \""][..]),
        ("operator-kit/src/render/templates/error.rs", &["=> \""]),
        ("operator-kit/src/report/failure.rs", &["transient(\""]),
        ("operator-kit/src/write/repeated_writes.rs", &["transient(\""]),
        ("basic-deployment-controller/src/error.rs", &["=> \"", "transient(\""]),
        ("basic-deployment-controller/src/status.rs", &["say(\"", "= \"", "{ \"", "\n            \""]),
        (
            "basic-deployment-controller/src/command_status.rs",
            &["say(None, \"", "say(Some(false), \"", "(None, \"", "(Some(false), \"", "            \""],
        ),
        (
            "basic-deployment-controller/src/command_queue.rs",
            &["Hindered(\"", "Impossible(\"", "            \""],
        ),
        ("basic-replicaset-controller/src/error.rs", &["transient(\"", "DELETE_REFUSED: &str = \""]),
        ("basic-replicaset-controller/src/status.rs", &["=> (\"", "            \""]),
        ("backup-controller/src/error.rs", &["=> \""]),
        ("backup-controller/src/status.rs", &["(\"", "            \"", ", \""]),
        ("command-reaper/src/act.rs", &["stalled(\n                \""]),
        ("command-binder/src/decide/judge.rs", &["refused(\"", "waiting(\"", "            \""]),
        ("command-binder/src/place.rs", &["refused(\"", "            \""]),
    ] {
        let source = fs::read_to_string(crates.join(file)).unwrap();
        let source = source.split("#[cfg(test)]").next().unwrap();
        let found: Vec<&str> = before.iter().flat_map(|before| words_after(source, before)).collect();
        assert!(!found.is_empty(), "{file} reports nothing any more: is it called otherwise now?");
        reasons.extend(found.into_iter().map(|reason| (file, reason.to_owned())));
    }
    // Good news needs no explanation.
    let good = ["Complete", "Bound", "BackedUp", "ReleasedWithoutBackup", "ForceReleased"];
    let unexplained: Vec<_> = reasons
        .iter()
        .filter(|(_, reason)| !good.contains(&reason.as_str()))
        .filter(|(_, reason)| {
            let cause = ask(WEB, &refused(reason, "as it says"), &calm()).root_cause.unwrap();
            cause.reason != *reason || cause.meaning == "is not ready" || cause.advice.is_empty()
        })
        .collect();
    assert!(unexplained.is_empty(), "without a meaning or an advice in advice.rs: {unexplained:?}");
}

/// The `PascalCase` words in quotes after a text.
fn words_after<'s>(source: &'s str, before: &str) -> Vec<&'s str> {
    let parts = source.split(before).skip(1);
    let words = parts.filter_map(|part| part.split('"').next());
    let is_reason = |word: &&str| {
        word.len() > 3
            && word.starts_with(|first: char| first.is_ascii_uppercase())
            && word.chars().all(|character| character.is_ascii_alphabetic())
            && word.chars().any(|character| character.is_ascii_lowercase())
    };
    words.filter(is_reason).collect()
}

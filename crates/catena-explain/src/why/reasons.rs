//! The meaning and the remedy of each reason: the rows that the tables of the pages are made from, too.

use std::{collections::BTreeMap, sync::LazyLock};

use catena_api::{keys, reason::ROWS};
use catena_cluster::{CONTAINER_SAYS, Identity, is_missing_right};
use operator_watch::ApiError;
use serde::Deserialize;

/// All rows, by the objects and activities that they are about.
static TABLE: LazyLock<BTreeMap<String, Vec<Row>>> =
    LazyLock::new(|| serde_saphyr::from_str(ROWS).unwrap_or_default());

/// The part with reasons that mean something else for commands that are not bound.
const BINDING: &str = "binding";
/// The part with the words of cases, which are no reasons.
const CASES: &str = "cases";
/// Words of the kernel that a container's message may have.
const EXEC_FORMAT: &str = "exec format error";
/// Reasons that Kubernetes or this plugin gives to workloads.
const WORKLOAD_REASONS: [&str; 6] =
    ["FailedCreate", "Paused", "ProgressDeadlineExceeded", "Progressing", "Running", "Suspended"];

/// What some reasons mean.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[cfg_attr(test, serde(deny_unknown_fields))]
pub struct Row {
    /// The reasons themselves.
    pub reasons: Vec<String>,
    /// Words of Kubernetes in a message, which tell more than the reason.
    pub says: Vec<String>,
    /// The state of an object, to be read after its name.
    pub meaning: String,
    /// What to do.
    pub remedy: String,
    /// Whether nothing stands in the way.
    #[serde(rename = "progress")]
    pub is_progress: bool,
    /// For the pages.
    #[cfg(test)]
    pub more: String,
}

/// The rows of a part of the table.
pub fn part(name: &str) -> &'static [Row] {
    TABLE.get(name).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
pub fn rows() -> impl Iterator<Item = &'static Row> {
    TABLE.values().flatten()
}

/// The row of a reason; none for an unknown one, of which only the words of its reporter are left.
#[must_use]
pub fn describe(reason: &str) -> Option<&'static Row> {
    let mut others = TABLE.iter().filter(|(name, _)| ![BINDING, CASES].contains(&name.as_str()));
    others.find_map(|(_, rows)| find(rows, reason)).or_else(|| find(part(BINDING), reason))
}

/// The row of a reason for which a command is not bound.
pub fn describe_binding(reason: &str) -> Option<&'static Row> {
    find(part(BINDING), reason).or_else(|| describe(reason))
}

/// The row of a reason that command-runner reports of a command, of whatever group.
pub fn describe_command(reason: &str) -> Option<&'static Row> {
    find(part("commands"), reason).or_else(|| find(part(BINDING), reason))
}

/// The words of a case of a reason.
pub fn case(name: &str) -> Option<&'static Row> {
    find(part(CASES), name)
}

/// The row of a reason that an object reports of itself. Another project may mean something else by the same word, so that only
/// reasons of our kinds and of Kubernetes have one.
pub fn describe_of(object: &Identity, reason: &str) -> Option<&'static Row> {
    match (object.group(), object.kind.as_str()) {
        (keys::GROUP, _) => describe(reason),
        ("", "Pod") => find(part("pods"), reason),
        ("batch", "Job") if find(part("jobs"), reason).is_some() => find(part("jobs"), reason),
        ("apps" | "batch", _) if WORKLOAD_REASONS.contains(&reason) => describe(reason),
        _ => None,
    }
}

fn find<'r>(part: &'r [Row], reason: &str) -> Option<&'r Row> {
    part.iter().find(|row| row.reasons.iter().any(|known| known == reason))
}

/// The gatekeeper behind a refusal, and its name. A container may print the words of any, so that for a pod only the words of
/// its kubelet count.
pub fn gatekeeper(object: &Identity, message: &str) -> Option<(&'static Row, String)> {
    let by_words = |of: &'static str, message: &str| {
        part(of).iter().find_map(|row| {
            let name = row.says.iter().find_map(|words| named(words, message))?;
            Some((row, name.to_owned()))
        })
    };
    let of_pods = || {
        let of_kubelet = |line| match str::split_once(line, CONTAINER_SAYS) {
            Some((told, said)) if !said.contains(EXEC_FORMAT) => told,
            _ => line,
        };
        by_words("pods", &message.lines().map(of_kubelet).collect::<Vec<_>>().join("\n"))
    };
    if (object.group(), object.kind.as_str()) == ("", "Pod") {
        return of_pods();
    }
    let by_field =
        || Some((describe("UnknownField")?, ApiError::unknown_fields(message).into_iter().next()?));
    let by_right = || is_missing_right(message).then(|| Some((describe("RightMissing")?, String::new())))?;
    // Other projects may use the words of a kubelet for something else.
    let of_pods = || of_pods().filter(|_| matches!(object.group(), keys::GROUP | "apps" | "batch"));
    by_words("writes", message).or_else(of_pods).or_else(by_field).or_else(by_right)
}

/// The part of a message at NAME of these words; empty if they have no NAME. " … " stands for any words.
fn named<'m>(words: &str, message: &'m str) -> Option<&'m str> {
    if let Some((words, more)) = words.split_once(" … ") {
        let (first, second) = (named(words, message)?, named(more, message)?);
        return Some(if first.is_empty() { second } else { first });
    }
    match words.split_once("NAME") {
        Some((before, after)) => Some(message.split_once(before)?.1.split_once(after)?.0),
        None => message.contains(words).then_some(""),
    }
}

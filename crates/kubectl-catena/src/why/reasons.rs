//! The meaning and the remedy of each reason: the rows that the tables of the pages are made from, too.

use std::sync::LazyLock;

use catena_api::{keys, reason::ROWS};
use catena_cluster::{Identity, is_missing_right};
use operator_watch::ApiError;
use serde::Deserialize;

static TABLE: LazyLock<Table> = LazyLock::new(|| serde_saphyr::from_str(ROWS).unwrap_or_default());

/// Reasons that Kubernetes or this plugin gives to workloads.
const WORKLOAD_REASONS: [&str; 6] =
    ["FailedCreate", "Paused", "ProgressDeadlineExceeded", "Progressing", "Running", "Suspended"];

/// All rows, by the objects and activities that they are about.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, serde(deny_unknown_fields))]
struct Table {
    pods: Vec<Row>,
    volumes: Vec<Row>,
    templates: Vec<Row>,
    writes: Vec<Row>,
    rollouts: Vec<Row>,
    backups: Vec<Row>,
    commands: Vec<Row>,
    binding: Vec<Row>,
}

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

impl Table {
    fn parts(&self) -> [&[Row]; 8] {
        let Self { pods, volumes, templates, writes, rollouts, backups, commands, binding } = self;
        [pods, volumes, templates, writes, rollouts, backups, commands, binding]
    }
}

/// The row of a reason; none for an unknown one, of which only the words of its reporter are left.
pub fn describe(reason: &str) -> Option<&'static Row> {
    TABLE.parts().into_iter().find_map(|part| find(part, reason))
}

/// The row of a reason for which a command is not bound.
pub fn describe_binding(reason: &str) -> Option<&'static Row> {
    find(&TABLE.binding, reason).or_else(|| describe(reason))
}

/// The row of a reason that an object reports of itself. Another project may mean something else by the same word, so that only
/// reasons of our kinds and of Kubernetes have one.
pub fn describe_of(object: &Identity, reason: &str) -> Option<&'static Row> {
    match (object.group(), object.kind.as_str()) {
        (keys::GROUP, _) => describe(reason),
        ("", "Pod") => find(&TABLE.pods, reason),
        ("apps" | "batch", _) if WORKLOAD_REASONS.contains(&reason) => describe(reason),
        _ => None,
    }
}

fn find<'r>(part: &'r [Row], reason: &str) -> Option<&'r Row> {
    part.iter().find(|row| row.reasons.iter().any(|known| known == reason))
}

/// The gatekeeper behind a refusal, and its name.
pub fn gatekeeper(message: &str) -> Option<(&'static Row, String)> {
    let by_words = TABLE.writes.iter().chain(&TABLE.pods).find_map(|row| {
        let name = row.says.iter().find_map(|words| named(words, message))?;
        Some((row, name.to_owned()))
    });
    let by_field =
        || Some((describe("UnknownField")?, ApiError::unknown_fields(message).into_iter().next()?));
    let by_right = || is_missing_right(message).then(|| Some((describe("RightMissing")?, String::new())))?;
    by_words.or_else(by_field).or_else(by_right)
}

/// The part of a message at NAME of these words; empty if they have no NAME.
fn named<'m>(words: &str, message: &'m str) -> Option<&'m str> {
    match words.split_once("NAME") {
        Some((before, after)) => Some(message.split_once(before)?.1.split_once(after)?.0),
        None => message.contains(words).then_some(""),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The rows of a part of the table, by its name.
    pub fn part(name: &str) -> &'static [Row] {
        let names = ["pods", "volumes", "templates", "writes", "rollouts", "backups", "commands", "binding"];
        TABLE.parts()[names.iter().position(|known| *known == name).unwrap()]
    }
}

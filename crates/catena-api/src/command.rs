//! The fields and conditions that all commands share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{keys, schema};

/// Condition of a command: whether its target owns it. Written by command-binder alone.
pub const BOUND: &str = "Bound";
/// Condition of a command: `Unknown` until the command has finished, and final from then on.
pub const SUCCEEDED: &str = "Succeeded";

/// Number of commands that a target remembers.
const MEMORY: usize = 8;

/// The last commands that were carried out on a target, the oldest first: the value of the annotation
/// [`COMMANDS`](keys::COMMANDS).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecentCommands(Vec<RecentCommand>);

/// A command that was carried out. The order of commands is that of their creation. Within one second, one that ends all older ones
/// is the newer one; otherwise, it is that of their uids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RecentCommand {
    /// When it was created.
    pub created: Time,
    /// Whether it ends all older commands, to which those of its own second belong.
    #[serde(default, skip_serializing_if = "schema::is_false")]
    pub supersedes: bool,
    /// Its uid.
    pub uid: String,
}

impl RecentCommands {
    /// Those that are recorded on a target; none if the record cannot be read.
    #[must_use]
    pub fn on(target: &ObjectMeta) -> Self {
        let recorded = target.annotations.as_ref().and_then(|all| all.get(keys::COMMANDS));
        recorded.and_then(|recorded| serde_json::from_str(recorded).ok()).unwrap_or_default()
    }

    /// The same and one more. The oldest one is forgotten if they are too many.
    #[must_use]
    pub fn with(&self, command: RecentCommand) -> Self {
        let mut commands = self.0.clone();
        commands.push(command);
        commands.sort();
        commands.dedup();
        commands.drain(..commands.len().saturating_sub(MEMORY));
        Self(commands)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &RecentCommand> {
        self.0.iter()
    }

    /// Whether a command is among them.
    #[must_use]
    pub fn has(&self, uid: &str) -> bool {
        self.0.iter().any(|command| command.uid == uid)
    }

    /// The newest of them that ends an older command.
    #[must_use]
    pub fn superseding(&self, command: &RecentCommand) -> Option<&RecentCommand> {
        let newest = self.0.iter().rev().find(|recent| recent.supersedes)?;
        (newest > command).then_some(newest)
    }

    /// Whether a command may have been forgotten: it must not be carried out.
    #[must_use]
    pub fn may_have_forgotten(&self, command: &RecentCommand) -> bool {
        self.0.len() >= MEMORY && self.0.first().is_some_and(|oldest| command < oldest)
    }

    /// The value of the annotation.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// A reference to the target of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Name of the target.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the target. It defaults to the namespace of the command, and any other namespace is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// The report of command-runner in the annotation [`keys::RUN`] of a command whose status has no room for it. That on a copy is about
/// another command, and is none.
#[must_use]
pub fn run_record(metadata: &ObjectMeta) -> Option<Value> {
    let record: Value = serde_json::from_str(metadata.annotations.as_ref()?.get(keys::RUN)?).ok()?;
    (record["uid"] == metadata.uid.as_deref()?).then_some(record)
}

/// The state of a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandStatus {
    /// Generation of the spec that this status refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Time at which the command started to take effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Time>,
    /// Time at which the command finished, successfully or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Time>,
    /// Replicas that are done out of those desired, for example `2/5`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Conditions. `Bound`: the target owns the command. `Succeeded`: the outcome, which is Unknown until the command has
    /// finished and final from then on; its reason says what the command waits for. `Reconciling` is true until then and false afterwards, and `Stalled` is present only after a failure: kstatus
    /// computes `InProgress`, `Failed` or `Current` from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[x_kube(merge_strategy = ListMerge::Map(vec!["type".into()]))]
    pub conditions: Vec<Condition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(second: usize, uid: &str) -> RecentCommand {
        let created = format!("\"2026-01-01T00:00:{second:02}Z\"");
        RecentCommand {
            created: serde_json::from_str(&created).unwrap(),
            uid: uid.to_owned(),
            supersedes: false,
        }
    }

    #[test]
    fn a_command_that_ends_others_ends_only_the_older_ones() {
        let ends = RecentCommand { supersedes: true, ..command(5, "m") };
        let recent = RecentCommands::default().with(command(3, "a")).with(ends.clone()).with(command(7, "z"));
        for (older, is_ended) in [
            (command(4, "b"), true),
            (command(5, "a"), true),
            (command(5, "n"), true),
            (command(6, "b"), false),
        ] {
            assert_eq!(recent.superseding(&older), is_ended.then_some(&ends), "{older:?}");
        }
        assert!(recent.to_json().contains(r#""supersedes":true,"uid":"m"}"#));
    }

    #[test]
    fn a_target_forgets_the_oldest_command_and_knows_that_it_may_have() {
        let mut recent = RecentCommands::default();
        for second in [9, 8, 7, 6, 5, 4, 3] {
            recent = recent.with(command(second, "x"));
        }
        assert!(!recent.may_have_forgotten(&command(1, "y")), "there was room for it");
        recent = recent.with(command(3, "z")).with(command(10, "x"));
        assert_eq!(recent.iter().count(), MEMORY);
        assert!(recent.has("z") && recent.may_have_forgotten(&command(3, "x")));
        assert!(!recent.may_have_forgotten(&command(3, "zz")));
    }

    #[test]
    fn the_record_is_read_from_the_annotation_and_an_odd_one_is_none() {
        let recent = RecentCommands::default().with(command(1, "a"));
        assert_eq!(recent.to_json(), r#"[{"created":"2026-01-01T00:00:01Z","uid":"a"}]"#);
        let on = |value: &str| {
            let annotations = [(keys::COMMANDS.to_owned(), value.to_owned())].into();
            RecentCommands::on(&ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() })
        };
        assert_eq!(on(&recent.to_json()), recent);
        assert_eq!(on("{"), RecentCommands::default());
    }
}

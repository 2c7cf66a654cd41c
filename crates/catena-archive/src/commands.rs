//! Which commands of a backup are created again, so that none runs twice. Pure.
//!
//! A command cannot be created together with its outcome. So one that has ended is created while its target is not there yet,
//! and the outcome is written before the target comes.

use std::collections::HashSet;

use catena_api::{command::RecentCommands, keys};
use catena_cluster::{Identity, Kind};

use super::Manifest;

/// The reason to leave out a command of another project.
pub const COMMAND_OF_OTHERS: &str =
    "commands of others: only their own controller knows whether they have run";
/// The reason to leave out a request of another project.
pub const REQUEST_OF_OTHERS: &str = "its operator would carry it out again, because it comes without its status, and makes it \
    anew if need be: --dependents brings it back nevertheless";

/// How a command is brought back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// With its outcome, before its target.
    AsEnded,
    /// After its target, which will carry it out for the first time.
    AsWaiting,
    /// Not at all.
    NotAtAll(&'static str),
}

/// The way of a command. A live target carries out commands; one that is not there, or that a restoration holds, does not.
/// `carried_out` are the uids of commands that their targets in the backup record.
pub fn way(command: &Manifest, is_target_live: bool, carried_out: &HashSet<String>) -> Way {
    let has_begun = command.has_begun() || carried_out.contains(&command.identity().uid);
    match (command.has_ended(), is_target_live) {
        (true, false) => Way::AsEnded,
        (true, true) => Way::NotAtAll(
            "it has ended, and its target is there, which could carry it out again before that is recorded",
        ),
        (false, _) if has_begun => Way::NotAtAll(
            "it had begun, but not ended: its effect comes back with its target, and it would take effect again",
        ),
        // A backup is older than what is there now.
        (false, true) => Way::NotAtAll(
            "its target is there, and may have carried it out since: issue it again if it did not",
        ),
        (false, false) => Way::AsWaiting,
    }
}

/// Whether a kind, in whatever version, is one of commands of another project, of the kinds that are declared as commands.
pub fn is_of_others(kind: &Kind, declared: &[Kind]) -> bool {
    kind.resource.group != keys::GROUP && kind.is_among(declared)
}

/// Whether an object may be a request that an operator made for one of its own objects: its kind is of another project, and
/// its controller, which is no object of ours, is in the backup, or of a kind that no backup has.
pub fn is_request_of_others(object: &Manifest, is_there: impl Fn(&Identity) -> bool) -> bool {
    let identity = object.identity();
    let group = identity.group();
    let is_of_kubernetes = !group.contains('.') || group.ends_with(".k8s.io");
    let is_foreign = |owner: &Identity| owner.group() != keys::GROUP && is_there(owner);
    group != keys::GROUP && !is_of_kubernetes && object.controller().as_ref().is_some_and(is_foreign)
}

/// The object that a command names: it takes effect on no other one.
pub fn target(command: &Manifest) -> Identity {
    let Identity { api_version, namespace, .. } = command.identity();
    let name = command.text("/spec/targetRef/name");
    Identity::new(&api_version, "BasicDeployment", namespace.as_deref(), name)
}

/// The uids of the commands that targets record.
pub fn carried_out(manifests: &[Manifest]) -> HashSet<String> {
    let recorded = manifests.iter().filter_map(|manifest| manifest.mark(keys::COMMANDS));
    let recent: Vec<RecentCommands> =
        recorded.filter_map(|recorded| serde_json::from_str(recorded).ok()).collect();
    recent.iter().flat_map(RecentCommands::iter).map(|command| command.uid.clone()).collect()
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::kinds;
    use serde_json::{Value, json};

    use super::*;
    use crate::manifest::tests::manifest;

    #[test]
    fn only_a_kind_of_others_that_is_declared_as_one_is_a_command_of_others() {
        let kinds = kinds();
        let kind = |word: &str| kinds.find(word).unwrap();
        let declared = [kind("reindexes.acme.dev").clone(), kind("basicdeploymentrestarts").clone()];
        assert!(is_of_others(kind("reindex"), &declared) && !is_of_others(kind("bdr"), &declared));
        assert!(!is_of_others(kind("reindex"), &[]));
    }

    fn restart(status: &Value) -> Manifest {
        manifest(
            "BasicDeploymentRestart",
            "again",
            &json!({"spec": {"targetRef": {"name": "web"}}, "status": status}),
        )
    }

    #[test]
    fn no_command_takes_effect_twice() {
        let none = HashSet::new();
        let begun = json!({"startTime": "2026-01-01T00:00:00Z"});
        let ended = json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [{"type": "Succeeded", "status": "True"}]});
        assert_eq!(way(&restart(&ended), false, &none), Way::AsEnded);
        assert!(matches!(way(&restart(&ended), true, &none), Way::NotAtAll(_)));
        assert_eq!(way(&restart(&json!({})), false, &none), Way::AsWaiting);
        // It may have been carried out after the backup, and have gone since.
        let Way::NotAtAll(why) = way(&restart(&json!({})), true, &none) else { panic!() };
        assert!(why.contains("may have carried it out since"), "{why}");
        for is_target_live in [false, true] {
            assert!(matches!(way(&restart(&begun), is_target_live, &none), Way::NotAtAll(_)));
            // The record on the target is written before the status.
            let recent = r#"[{"created": "2026-01-01T00:00:00Z", "uid": "uid-of-again"}]"#;
            let target_of = |recent: &str| {
                manifest("BasicDeployment", "web", &json!({"annotations": {keys::COMMANDS: recent}}))
            };
            let recorded = carried_out(&[target_of("odd"), target_of(recent)]);
            assert!(matches!(way(&restart(&json!({})), is_target_live, &recorded), Way::NotAtAll(_)));
        }
    }

    #[test]
    fn a_command_waits_only_for_a_target_that_is_restored() {
        let command = restart(&json!({}));
        let restored = |name: &str| Identity {
            uid: "new".into(),
            ..manifest("BasicDeployment", name, &json!({})).identity()
        };
        let is_target = |name: &str| restored(name).is_named_by(&target(&command));
        assert!(is_target("web") && !is_target("api"));
    }
}

//! Objects that may be commands of other projects: created again, they would run again. Pure.

use catena_api::keys;

use crate::kinds::Kind;

/// The reason to leave out such a command.
pub const COMMAND_OF_OTHERS: &str =
    "commands of others: only their own controller knows whether they have run";
/// The groups of the API server beside those without a dot, which no definition can have.
const BUILT_IN: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Whether a kind may be one of commands of another project, as long as its definition is unknown.
pub fn may_be_command(kind: &Kind) -> bool {
    let group = kind.resource.group.as_str();
    group.contains('.') && group != keys::GROUP && !BUILT_IN.contains(&group)
}

/// Whether a kind, in whatever version, is one of commands of another project.
pub fn is_command(kind: &Kind, commands: &[Kind]) -> bool {
    let place = |kind: &Kind| (kind.resource.group.clone(), kind.resource.plural.clone());
    kind.resource.group != keys::GROUP && commands.iter().any(|command| place(command) == place(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::kinds;

    #[test]
    fn only_kinds_of_others_may_be_commands_of_others() {
        let kinds = kinds();
        let kind = |word: &str| kinds.find(word).unwrap();
        assert!(may_be_command(kind("reindexes.acme.dev")));
        for word in ["pods", "deployments.apps", "basicdeploymentrestarts", "crd"] {
            assert!(!may_be_command(kind(word)), "{word}");
        }
        let labelled = [kind("reindexes.acme.dev").clone(), kind("basicdeploymentrestarts").clone()];
        assert!(is_command(kind("reindex"), &labelled) && !is_command(kind("bdr"), &labelled));
        assert!(!is_command(kind("reindex"), &[]));
    }
}

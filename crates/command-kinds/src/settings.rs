//! The kinds of commands in the settings of a controller.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use operator_kit::run::Validate;
use serde::Deserialize;

use crate::{
    expiry::{Expiry, Marks},
    kind::{CommandKind, KindFile},
};

/// The kinds of commands in the settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "KindsFile")]
pub struct Kinds {
    /// Those that are listed.
    pub listed: Vec<Arc<CommandKind>>,
    /// Whether kinds are also discovered by the label on their definitions.
    pub are_discovered: bool,
    /// The marks of commands of any kind that something would create again. Only command-reaper reads them.
    pub declared_by: Marks,
    /// The mistakes in the list.
    pub problems: Vec<String>,
}

/// The kinds, as they are configured.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KindsFile {
    kinds: Vec<KindFile>,
    #[serde(default)]
    discovery: Discovery,
    #[serde(default)]
    declared_by: Marks,
}

/// Whether kinds are discovered, as it is configured.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Discovery {
    enabled: bool,
}

impl From<KindsFile> for Kinds {
    /// Compiles the kinds. A mistake in one does not affect the others.
    fn from(KindsFile { kinds, discovery, declared_by }: KindsFile) -> Self {
        let (mut listed, mut problems) = (Vec::new(), duplicates(&kinds));
        for kind in kinds {
            match CommandKind::compile(kind) {
                Ok(kind) => listed.push(Arc::new(kind)),
                Err(problem) => problems.push(problem),
            }
        }
        Self { listed, are_discovered: discovery.enabled, declared_by, problems }
    }
}

impl Kinds {
    /// When commands of a kind are deleted; `None` if they are not.
    #[must_use]
    pub fn expiry(&self, kind: &CommandKind) -> Option<Expiry> {
        let expiry = kind.expiry.clone()?;
        Some(Expiry { declared_by: self.declared_by.and(&expiry.declared_by), ..expiry })
    }

    /// Whether none is there, and none can come.
    #[must_use]
    pub fn are_none(&self) -> bool {
        self.listed.is_empty() && self.problems.is_empty() && !self.are_discovered
    }
}

impl Validate for Kinds {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.clone()) }
    }
}

/// The entries with the id or the resource of another one.
fn duplicates(kinds: &[KindFile]) -> Vec<String> {
    let mut problems = Vec::new();
    let (mut ids, mut resources) = (HashSet::new(), HashMap::new());
    for KindFile { id, group, resource, .. } in kinds {
        if !ids.insert(id) {
            problems.push(format!("kinds: the id {id} is used twice; change one of them"));
        }
        if let Some(other) = resources.insert((group, resource), id) {
            problems.push(format!(
                "kinds: {other} and {id} are for the same resource {resource}.{group}; merge them, because one entry can choose among several target kinds with target.kind"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// An entry for the resource, with the name expression for its target.
    fn entry(id: &str, resource: &str, name: &str) -> Value {
        json!({
            "id": id, "group": "ops.example", "version": "v1", "resource": resource, "kind": "Task",
            "target": {
                "name": name,
                "kinds": [{"group": "apps.example", "version": "v1", "resource": "shops", "kind": "Shop"}],
            },
        })
    }

    fn read(kinds: &Value) -> Kinds {
        serde_json::from_value(json!({ "kinds": kinds })).unwrap()
    }

    #[test]
    fn one_refusal_names_the_mistakes_of_all_kinds_and_the_duplicates() {
        let kinds = json!([
            entry("restarts", "restarts", "objct.spec.target"),
            entry("drains", "drains", "object.spec."),
            entry("drains", "moves", "object.spec.target"),
            entry("more", "moves", "object.spec.target"),
        ]);
        let refusal = read(&kinds).validate().unwrap_err().join("; ");
        for expected in [
            "kinds[restarts].target.name: ",
            "kinds[drains].target.name: ",
            "kinds: the id drains is used twice; ",
            "kinds: drains and more are for the same resource moves.ops.example; ",
        ] {
            assert!(refusal.contains(expected), "{expected} is not in {refusal}");
        }
    }

    #[test]
    fn a_command_that_is_carried_out_is_not_chosen_by_its_status() {
        let problems = |more: Value, runs: bool| {
            let mut kind = entry("drains", "drains", "object.spec.target");
            kind.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            if runs {
                let patch = "spec: {at: {{ command.metadata.creationTimestamp }}}";
                kind["run"] = json!({"patch": patch, "succeeded": "target.status.ready"});
            }
            read(&json!([kind])).problems
        };
        let by_status = json!({"filter": "object.status.?approved.orValue(false)"});
        let refused = problems(by_status.clone(), true).join("; ");
        assert!(refused.starts_with("kinds[drains].run: ") && refused.contains("object.status"), "{refused}");
        assert!(!problems(json!({"filter": "object.?status.hasValue()"}), true).is_empty());
        let by_spec = json!({"filter": "object.spec.status == 'approved'"});
        for (more, runs) in [(by_status, false), (by_spec, true), (json!({}), true)] {
            assert_eq!(problems(more, runs), Vec::<String>::new());
        }
    }

    #[test]
    fn kinds_that_differ_in_id_and_resource_are_no_duplicates() {
        let name = "object.spec.target";
        let mut other_group = entry("foreign", "restarts", name);
        other_group["group"] = json!("apps.example");
        let kinds = read(&json!([entry("restarts", "restarts", name), other_group]));
        assert_eq!((kinds.listed.len(), kinds.problems), (2, Vec::new()));
    }

    #[test]
    fn a_command_is_declared_by_the_marks_of_its_kind_and_of_all_kinds() {
        let mut expiring = entry("a", "as", "'x'");
        let expire = json!({"finishedAt": "null", "ttlSeconds": "60", "declaredBy": {"labels": ["mine"]}});
        expiring["expire"] = expire;
        let kinds: Kinds = serde_json::from_value(json!({
            "declaredBy": {"labels": ["all"]},
            "kinds": [expiring, entry("b", "bs", "'x'")],
        }))
        .unwrap();
        let [a, b] = &kinds.listed[..] else { panic!("{kinds:?}") };
        let marks: Marks = serde_json::from_value(json!({"labels": ["all", "mine"]})).unwrap();
        assert_eq!(kinds.expiry(a).unwrap().declared_by, marks);
        assert!(kinds.expiry(b).is_none(), "it does not say when its commands expire");
    }

    #[test]
    fn nothing_to_do_is_worth_a_warning() {
        assert!(read(&json!([])).are_none());
        assert!(!read(&json!([entry("restarts", "restarts", "object.spec.target")])).are_none());
        let discovered: Kinds =
            serde_json::from_value(json!({"kinds": [], "discovery": {"enabled": true}})).unwrap();
        assert!(!discovered.are_none());
    }
}

//! The settings, with their validation.

use std::collections::{HashMap, HashSet};

use operator_kit::run::Validate;
use serde::Deserialize;

use crate::kind::{CommandKind, KindFile};

/// The settings.
#[derive(Debug, Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The kinds of commands.
    pub kinds: Vec<CommandKind>,
    /// Whether kinds are also discovered by the label on their definitions.
    pub discovers: bool,
    problems: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kinds: Vec<KindFile>,
    #[serde(default)]
    discovery: Discovery,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Discovery {
    enabled: bool,
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        let (mut kinds, mut problems) = (Vec::new(), duplicates(&file.kinds));
        for kind in file.kinds {
            match CommandKind::compile(kind) {
                Ok(kind) => kinds.push(kind),
                Err(problem) => problems.push(problem),
            }
        }
        Self { kinds, discovers: file.discovery.enabled, problems }
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

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.clone()) }
    }

    fn warnings(&self) -> Vec<String> {
        let is_idle = self.kinds.is_empty() && self.problems.is_empty() && !self.discovers;
        let warning = "kinds: is empty and discovery is not enabled, so that nothing is ever bound";
        is_idle.then(|| warning.into()).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use operator_kit::testing;
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

    fn read(kinds: &Value) -> anyhow::Result<Settings> {
        testing::settings(&json!({ "kinds": kinds }).to_string())
    }

    #[test]
    fn one_refusal_names_the_mistakes_of_all_kinds_and_the_duplicates() {
        let kinds = json!([
            entry("restarts", "restarts", "objct.spec.target"),
            entry("drains", "drains", "object.spec."),
            entry("drains", "moves", "object.spec.target"),
            entry("more", "moves", "object.spec.target"),
        ]);
        let refusal = read(&kinds).unwrap_err().to_string();
        for expected in [
            "the settings in settings.yaml are not valid: ",
            "kinds[restarts].target.name: ",
            "kinds[drains].target.name: ",
            "kinds: the id drains is used twice; ",
            "kinds: drains and more are for the same resource moves.ops.example; ",
        ] {
            assert!(refusal.contains(expected), "{expected} is not in {refusal}");
        }
    }

    #[test]
    fn kinds_that_differ_in_id_and_resource_are_no_duplicates() {
        let name = "object.spec.target";
        let mut other_group = entry("foreign", "restarts", name);
        other_group["group"] = json!("apps.example");
        let settings = read(&json!([entry("restarts", "restarts", name), other_group])).unwrap();
        assert_eq!((settings.kinds.len(), settings.warnings()), (2, Vec::new()));
    }

    #[test]
    fn nothing_to_do_is_worth_a_warning() {
        assert_eq!(read(&json!([])).unwrap().warnings().len(), 1);
    }
}

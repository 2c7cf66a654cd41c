//! The settings, with their validation.

use std::{collections::HashSet, sync::Arc};

use kube::core::{ApiResource, GroupVersionKind};
use operator_kit::run::Validate;
use operator_templates::{Expression, ExpressionError};
use serde::Deserialize;

use crate::marks::Marks;

/// The settings.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The kinds of commands.
    pub kinds: Vec<Kind>,
    problems: Vec<String>,
}

/// A kind of commands.
#[derive(Clone)]
pub struct Kind {
    /// Its name among the kinds.
    pub id: Arc<str>,
    /// The kind.
    pub resource: ApiResource,
    /// The label selector of its objects; all without one.
    pub selector: Option<String>,
    /// The expressions for its objects.
    pub reading: Reading,
    /// All that its watch depends on.
    pub fingerprint: String,
}

/// The expressions for commands of a kind.
#[derive(Clone)]
pub struct Reading {
    /// The time of its end; null before the end.
    pub finished_at: Expression,
    /// The seconds from its end to its deletion; null means forever.
    pub ttl_seconds: Expression,
    /// The marks of commands that something would create again.
    pub declared_by: Marks,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    declared_by: Marks,
    kinds: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Entry {
    id: String,
    #[serde(default)]
    group: String,
    version: String,
    resource: String,
    kind: String,
    finished_at: String,
    ttl_seconds: String,
    #[serde(default)]
    selector: String,
    #[serde(default)]
    declared_by: Marks,
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        let (mut kinds, mut problems) = (Vec::new(), Vec::new());
        let mut ids = HashSet::new();
        for (place, entry) in file.kinds.into_iter().enumerate() {
            let field = format!("kinds[{place}]");
            if !ids.insert(entry.id.clone()) {
                problems.push(format!("{field}.id: {:?} is used twice; change one of them", entry.id));
            }
            match entry.compile(&field, &file.declared_by) {
                Ok(kind) => kinds.push(kind),
                Err(error) => problems.push(error.to_string()),
            }
        }
        Self { kinds, problems }
    }
}

impl Entry {
    fn compile(self, field: &str, declared_by: &Marks) -> Result<Kind, ExpressionError> {
        let expression = |name: &str, source: &str| {
            Expression::compile(format!("{field}.{name} ({})", self.id), source, &["object"])
        };
        let reading = Reading {
            finished_at: expression("finishedAt", &self.finished_at)?,
            ttl_seconds: expression("ttlSeconds", &self.ttl_seconds)?,
            declared_by: declared_by.and(&self.declared_by),
        };
        let fingerprint = format!("{self:?} {:?}", reading.declared_by);
        let kind = GroupVersionKind::gvk(&self.group, &self.version, &self.kind);
        Ok(Kind {
            id: self.id.into(),
            resource: ApiResource::from_gvk_with_plural(&kind, &self.resource),
            selector: Some(self.selector).filter(|selector| !selector.is_empty()),
            reading,
            fingerprint,
        })
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.clone()) }
    }

    fn warnings(&self) -> Vec<String> {
        let is_idle = self.kinds.is_empty() && self.problems.is_empty();
        is_idle.then(|| "kinds: is empty, so that nothing is ever deleted".into()).into_iter().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// The default settings of the chart.
    pub fn shipped() -> Settings {
        let values: Value =
            serde_saphyr::from_str(include_str!("../../../charts/command-reaper/values.yaml")).unwrap();
        parse(&json!({"kinds": values["kinds"], "declaredBy": values["declaredBy"]}))
    }

    fn parse(settings: &Value) -> Settings {
        serde_json::from_value(settings.clone()).unwrap()
    }

    fn entry(id: &str) -> Value {
        json!({
            "id": id, "group": "example.com", "version": "v1", "resource": "tasks", "kind": "Task",
            "finishedAt": "object.status.finishedAt", "ttlSeconds": "60",
        })
    }

    #[test]
    fn the_shipped_settings_are_valid() {
        let shipped = shipped();
        assert_eq!(shipped.validate(), Ok(()));
        assert_eq!(shipped.warnings(), Vec::<String>::new());
        assert_eq!(shipped.kinds.len(), 2);
    }

    #[test]
    fn a_mistake_names_its_field_and_its_kind() {
        let mut broken = entry("b");
        broken["ttlSeconds"] = json!("object.spec.");
        let problems = parse(&json!({"kinds": [entry("a"), broken, entry("a")]})).validate().unwrap_err();
        assert_eq!(problems.len(), 2, "{problems:?}");
        assert!(problems[0].contains("kinds[1].ttlSeconds (b)"), "{problems:?}");
        assert!(problems[1].contains("kinds[2].id"), "{problems:?}");
    }

    #[test]
    fn a_watch_starts_anew_only_when_something_that_it_depends_on_changed() {
        let fingerprint = |settings: Value| parse(&settings).kinds.remove(0).fingerprint;
        let before = fingerprint(json!({"kinds": [entry("a")]}));
        assert_eq!(before, fingerprint(json!({"kinds": [entry("a"), entry("b")]})));
        let mut other = entry("a");
        other["ttlSeconds"] = json!("61");
        assert_ne!(before, fingerprint(json!({"kinds": [other]})));
        let marks = json!({"labels": ["tool/instance"]});
        assert_ne!(before, fingerprint(json!({"kinds": [entry("a")], "declaredBy": marks})));
    }

    #[test]
    fn nothing_to_do_is_worth_a_warning() {
        assert_eq!(parse(&json!({"kinds": []})).warnings().len(), 1);
    }
}

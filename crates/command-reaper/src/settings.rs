//! The settings, with their validation.

use command_kinds::{
    CommandKind, KindFile, Kinds,
    expiry::{Expiry, Marks},
    settings::Discovery,
};
use operator_kit::run::Validate;
use serde::Deserialize;

/// The settings.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The kinds of commands.
    pub kinds: Kinds,
    /// The marks of commands of any kind that something would create again.
    pub declared_by: Marks,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    #[serde(default)]
    declared_by: Marks,
    kinds: Vec<KindFile>,
    #[serde(default)]
    discovery: Discovery,
}

impl From<File> for Settings {
    fn from(File { declared_by, kinds, discovery }: File) -> Self {
        Self { kinds: Kinds::compile(kinds, &discovery), declared_by }
    }
}

impl Settings {
    /// When commands of a kind are deleted; `None` if they are not.
    #[must_use]
    pub fn expiry(&self, kind: &CommandKind) -> Option<Expiry> {
        let expiry = kind.expiry.clone()?;
        Some(Expiry { declared_by: self.declared_by.and(&expiry.declared_by), ..expiry })
    }
}

impl AsRef<Kinds> for Settings {
    fn as_ref(&self) -> &Kinds {
        &self.kinds
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        self.kinds.validate()
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
        serde_json::from_value(json!({"kinds": values["kinds"], "declaredBy": values["declaredBy"]})).unwrap()
    }

    #[test]
    fn the_shipped_settings_are_valid() {
        let shipped = shipped();
        assert_eq!(shipped.validate(), Ok(()));
        assert!(!shipped.kinds.are_none());
        assert_eq!(shipped.kinds.listed.len(), 2);
    }

    #[test]
    fn only_kinds_that_say_when_their_commands_expire_are_read() {
        let entry = |id: &str, part: &str, value: Value| json!({"id": id, "version": "v1", "resource": id, "kind": "Task", part: value});
        let expire = json!({"finishedAt": "null", "ttlSeconds": "60", "declaredBy": {"labels": ["mine"]}});
        let target = json!({"name": "'x'", "kinds": [{"version": "v1", "resource": "pods", "kind": "Pod"}]});
        let settings: Settings = serde_json::from_value(json!({
            "declaredBy": {"labels": ["all"]},
            "kinds": [entry("a", "expire", expire), entry("b", "target", target)],
        }))
        .unwrap();
        let [a, b] = &settings.kinds.listed[..] else { panic!("{:?}", settings.kinds) };
        let marks: Marks = serde_json::from_value(json!({"labels": ["all", "mine"]})).unwrap();
        assert_eq!(settings.expiry(a).unwrap().declared_by, marks);
        assert!(settings.expiry(b).is_none());
    }
}

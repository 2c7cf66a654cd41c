//! The settings, with their validation.

use std::collections::HashMap;

use operator_kit::run::Validate;
use serde::Deserialize;

use crate::kind::{CommandKind, KindFile};

/// The settings.
#[derive(Debug, Deserialize)]
#[serde(try_from = "File")]
pub struct Settings {
    /// The kinds of commands.
    pub kinds: Vec<CommandKind>,
    /// Whether kinds are also discovered by the label on their definitions.
    pub discovers: bool,
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

impl TryFrom<File> for Settings {
    type Error = String;

    fn try_from(file: File) -> Result<Self, String> {
        let (kinds, problems): (Vec<_>, Vec<_>) =
            file.kinds.into_iter().map(CommandKind::compile).partition(Result::is_ok);
        let problems: Vec<_> = problems.into_iter().filter_map(Result::err).collect();
        if problems.is_empty() {
            let kinds = kinds.into_iter().filter_map(Result::ok).collect();
            Ok(Self { kinds, discovers: file.discovery.enabled })
        } else {
            Err(problems.join("; "))
        }
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let (mut ids, mut resources) = (HashMap::new(), HashMap::new());
        for kind in &self.kinds {
            let resource = &kind.resource;
            if ids.insert(&*kind.id, ()).is_some() {
                problems.push(format!("kinds: the id {} is used twice; change one of them", kind.id));
            }
            if let Some(other) = resources.insert((&resource.group, &resource.plural), &kind.id) {
                problems.push(format!(
                    "kinds: {other} and {} are for the same resource {}.{}; merge them, because one entry can choose among several target kinds with target.kind",
                    kind.id, resource.plural, resource.group
                ));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn warnings(&self) -> Vec<String> {
        if self.kinds.is_empty() && !self.discovers {
            vec!["kinds: is empty and discovery is not enabled, so that nothing is ever bound".into()]
        } else {
            Vec::new()
        }
    }
}

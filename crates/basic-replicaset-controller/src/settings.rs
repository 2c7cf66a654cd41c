use std::collections::BTreeMap;

use operator_kit::{Templates, Validate};
use serde::Deserialize;

/// What can be configured.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The templates of pods, by the name that `spec.template` asks for.
    pub templates: Templates,
    is_empty: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    templates: BTreeMap<String, String>,
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        Self { templates: Templates::compile(&file.templates), is_empty: file.templates.is_empty() }
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.is_empty {
            Err(vec!["templates: there is none; add one, by convention under the name default".into()])
        } else {
            Ok(())
        }
    }

    fn warnings(&self) -> Vec<String> {
        self.templates.problems("v1", "Pod").iter().map(ToString::to_string).collect()
    }
}

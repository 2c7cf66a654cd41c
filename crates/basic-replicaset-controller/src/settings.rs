//! The settings, with their validation.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::discovery::ApiResource;
use operator_kit::{
    render::{Declarations, Templates},
    run::{Sample, Validate},
};
use serde::Deserialize;

/// The settings.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The templates of pods, by the name that `spec.template` refers to.
    pub templates: Templates,
    is_empty: bool,
    mistakes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    templates: BTreeMap<String, String>,
    #[serde(default)]
    parameters: Declarations,
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        let mut templates = Templates::compile(&file.templates);
        let mistakes = templates.declare(file.parameters);
        Self { templates, is_empty: file.templates.is_empty(), mistakes }
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        let mut problems = self.mistakes.clone();
        if self.is_empty {
            problems.push("templates: is empty; add a template, by convention under the name default".into());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn warnings(&self) -> Vec<String> {
        self.templates.problems_of_many("v1", "Pod").iter().map(ToString::to_string).collect()
    }

    fn samples(&self) -> Vec<Sample> {
        Sample::of_all(&self.templates, &[ApiResource::erase::<Pod>(&())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_whose_name_lacks_the_suffix_is_told_and_keeps_no_other_from_working() {
        let template =
            |name: &str| format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {{{{ {name} }}}}}}}}");
        let templates = [("default", template("name ~ '-' ~ suffix")), ("fixed", template("name"))];
        let templates = templates.map(|(name, text)| (name.to_owned(), text)).into();
        let settings = Settings::from(File { templates, parameters: Declarations::new() });
        assert!(settings.validate().is_ok());
        let warnings = settings.warnings();
        assert!(matches!(&warnings[..], [only] if only.contains("\"fixed\"") && only.contains("suffix")));
    }
}

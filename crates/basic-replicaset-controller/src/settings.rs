//! The settings, with their validation.

use std::collections::BTreeMap;

use catena_api::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::discovery::ApiResource;
use operator_kit::run::{TemplateSample, Validate};
use operator_templates::{ParameterSpec, Templates};
use serde::Deserialize;

use crate::revision::POD;

/// The settings.
#[derive(Deserialize)]
#[serde(from = "File")]
pub struct Settings {
    /// The templates of pods, by the name that `spec.template` refers to.
    pub templates: Templates,
    /// The key of the label that tells the revisions of pods apart.
    pub revision_label: String,
    mistakes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    templates: BTreeMap<String, String>,
    #[serde(default)]
    parameters: BTreeMap<String, Vec<ParameterSpec>>,
    revision_label: Option<String>,
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        let mut templates = Templates::compile(&file.templates, keys::GROUP).for_many();
        let mut mistakes = templates.declare(file.parameters);
        if file.templates.is_empty() {
            mistakes.push("templates: is empty; add a template, by convention under the name default".into());
        }
        let revision_label = file.revision_label.unwrap_or_else(|| keys::REVISION.to_owned());
        Self { templates, revision_label, mistakes }
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        if self.mistakes.is_empty() { Ok(()) } else { Err(self.mistakes.clone()) }
    }

    fn warnings(&self) -> Vec<String> {
        self.templates.problems(&[POD]).iter().map(ToString::to_string).collect()
    }

    fn samples(&self) -> Vec<TemplateSample> {
        TemplateSample::of_all(&self.templates, &[ApiResource::erase::<Pod>(&())])
    }
}

#[cfg(test)]
mod tests {
    use operator_templates::Expression;
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_label_that_no_server_takes_is_refused_by_the_chart() {
        let schema = include_str!("../../../charts/basic-replicaset-controller/schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let pattern = &schema["properties"]["revisionLabel"]["pattern"];
        let matches = Expression::compile("pattern", "key.matches(pattern)", &["key", "pattern"]).unwrap();
        let is_taken = |key: &str| matches.bool(&[("key", &key.into()), ("pattern", pattern)]).unwrap();
        assert!(["catena.dev/revision", "pod-template-hash"].into_iter().all(is_taken));
        assert!(!["", "a b", "a/b/c", "/x", "x/", "-x"].into_iter().any(is_taken));
    }

    #[test]
    fn templates_are_needed_and_the_label_has_a_default() {
        let settings: Settings = serde_json::from_value(serde_json::json!({"templates": {}})).unwrap();
        assert_eq!(settings.revision_label, keys::REVISION);
        assert!(settings.validate().unwrap_err()[0].starts_with("templates: is empty"));
    }

    #[test]
    fn a_template_whose_name_lacks_the_suffix_is_told_and_keeps_no_other_from_working() {
        let template =
            |name: &str| format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {{{{ {name} }}}}}}}}");
        let templates = [("default", template("name ~ '-' ~ suffix")), ("fixed", template("name"))];
        let templates = templates.map(|(name, text)| (name.to_owned(), text)).into();
        let settings = Settings::from(File { templates, parameters: BTreeMap::new(), revision_label: None });
        assert!(settings.validate().is_ok());
        let warnings = settings.warnings();
        assert!(matches!(&warnings[..], [only] if only.contains("\"fixed\"") && only.contains("suffix")));
    }
}

//! The settings, with their validation.

use std::collections::BTreeMap;

use catena_api::keys;
use k8s_openapi::api::core::v1::Pod;
use kube::discovery::ApiResource;
use operator_kit::{
    render::{Declarations, Templates},
    run::{Sample, Validate},
};
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
    is_empty: bool,
    mistakes: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    templates: BTreeMap<String, String>,
    #[serde(default)]
    parameters: Declarations,
    #[serde(default = "revision_label")]
    revision_label: String,
}

fn revision_label() -> String {
    keys::REVISION.to_owned()
}

impl From<File> for Settings {
    fn from(file: File) -> Self {
        let mut templates = Templates::compile(&file.templates, keys::GROUP).for_many();
        let mistakes = templates.declare(file.parameters);
        let (revision_label, is_empty) = (file.revision_label, file.templates.is_empty());
        Self { templates, revision_label, is_empty, mistakes }
    }
}

impl Validate for Settings {
    fn validate(&self) -> Result<(), Vec<String>> {
        let mut problems = self.mistakes.clone();
        if self.is_empty {
            problems.push("templates: is empty; add a template, by convention under the name default".into());
        }
        if !is_label_key(&self.revision_label) {
            problems.push(format!(
                "revisionLabel: {:?} is no key of a label; use one such as {}",
                self.revision_label,
                keys::REVISION
            ));
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    fn warnings(&self) -> Vec<String> {
        self.templates.problems(&[POD]).iter().map(ToString::to_string).collect()
    }

    fn samples(&self) -> Vec<Sample> {
        Sample::of_all(&self.templates, &[ApiResource::erase::<Pod>(&())])
    }
}

/// Whether a text looks like the key of a label: a name, after a domain and a slash if it has one.
fn is_label_key(key: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_alphanumeric();
    let is_part = |part: &str| {
        let may_stand = |character: char| is_plain(character) || "-_.".contains(character);
        part.starts_with(is_plain) && part.ends_with(is_plain) && part.chars().all(may_stand)
    };
    key.split('/').count() <= 2 && key.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_no_server_takes_is_a_mistake() {
        let label = |key: &str| {
            let text = serde_json::json!({"templates": {"default": "x"}, "revisionLabel": key});
            serde_json::from_value::<Settings>(text).unwrap().validate().is_ok()
        };
        assert!(["catena.dev/revision", "pod-template-hash"].into_iter().all(label));
        assert!(!["", "a b", "a/b/c", "/x", "x/", "-x"].into_iter().any(label));
        let default: Settings = serde_json::from_value(serde_json::json!({"templates": {}})).unwrap();
        assert_eq!(default.revision_label, keys::REVISION);
    }

    #[test]
    fn a_template_whose_name_lacks_the_suffix_is_told_and_keeps_no_other_from_working() {
        let template =
            |name: &str| format!("{{apiVersion: v1, kind: Pod, metadata: {{name: {{{{ {name} }}}}}}}}");
        let templates = [("default", template("name ~ '-' ~ suffix")), ("fixed", template("name"))];
        let templates = templates.map(|(name, text)| (name.to_owned(), text)).into();
        let revision_label = revision_label();
        let settings = Settings::from(File { templates, parameters: Declarations::new(), revision_label });
        assert!(settings.validate().is_ok());
        let warnings = settings.warnings();
        assert!(matches!(&warnings[..], [only] if only.contains("\"fixed\"") && only.contains("suffix")));
    }
}

//! The fields of a patch, whose values are those of authors.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use regex::{Captures, Regex};
use serde_json::{Map, Value};

use super::{Input, Parameters, TemplateError, TemplateValue, Templates, tree::Kept};
use crate::Yaml;

/// Maximum length of a value, in bytes.
const LONGEST_VALUE: usize = 32 * 1024;

/// What is not text of a template: comments, blocks and values.
static NO_TEXT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?s)\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}").ok());

impl Templates {
    /// The keys at the top of a template's text, whatever its conditions are; `None` if they depend on more than the text.
    #[must_use]
    pub fn top_keys(source: &str) -> Option<Vec<String>> {
        let sample = |found: &Captures<'_>| if found[0].starts_with("{{") { "0" } else { "" };
        let text: Cow<'_, str> = NO_TEXT.as_ref()?.replace_all(source, sample);
        match Yaml::read(&text).ok()? {
            Value::Object(fields) => Some(fields.into_iter().map(|(key, _)| key).collect()),
            _ => None,
        }
    }

    /// The templates that are broken.
    pub fn broken(&self) -> impl Iterator<Item = &TemplateError> {
        self.broken.values()
    }

    /// Renders the fields of a patch from `more`, each value by its name. What is written into it are single values of at most
    /// 32 KiB: an author can neither change its structure nor make it large.
    ///
    /// # Errors
    /// When the template is broken or cannot be rendered, when a value is not a single one or too long, or when the result is
    /// no map.
    pub fn render_fields(
        &self,
        name: &str,
        more: &[(&str, &Value)],
    ) -> Result<Map<String, Value>, TemplateError> {
        let given = BTreeMap::new();
        let others = more.iter().map(|(name, value)| (*name, TemplateValue::from_serialize(value))).collect();
        let parameters = Parameters::new(given.clone(), false);
        let input = Input { given: &given, parameters, others, has_objects: true };
        match self.fill_checked(name, &input, too_much)? {
            Value::Object(fields) => Ok(fields),
            _ => Err(TemplateError::refused(name, "renders no map; write the fields that are to be changed")),
        }
    }
}

/// Why a value may not be written, if so.
fn too_much(kept: &Kept) -> Option<&'static str> {
    match &kept.value {
        Value::Object(_) => Some("writes a map, but only single values are taken; name one of its fields"),
        Value::Array(_) => Some("writes a list, but only single values are taken; name one of its items"),
        _ if kept.length > LONGEST_VALUE => Some("writes a value of more than 32 KiB; shorten it"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_of_a_text_are_known_and_a_comment_has_none() {
        for (source, expected) in [
            ("spec: {at: {{ command.at }}}\n# metadata: {}", Some(vec!["spec"])),
            ("{metadata: {annotations: {a: {{ a }}}}}", Some(vec!["metadata"])),
            (
                "{% set a = 1 %}\n{# spec: {} #}\nmetadata:\n  labels: {spec: \"{{ a }}\"}",
                Some(vec!["metadata"]),
            ),
            ("{% if a %}\nspec: {b: 1}\n{% endif %}\nmetadata: {}", Some(vec!["metadata", "spec"])),
            ("{% if a %}\nspec: {b: 1}\n{% else %}\nspec: {b: 2}\n{% endif %}", None),
            ("{{ a }}", None),
        ] {
            let expected = expected.map(|keys| keys.into_iter().map(str::to_owned).collect());
            assert_eq!(Templates::top_keys(source), expected, "{source}");
        }
    }
}

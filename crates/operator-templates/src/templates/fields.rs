//! The fields of a patch, whose values are those of authors.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Input, Parameters, TemplateError, TemplateValue, Templates, values::Kept};

/// Maximum length of a value, in bytes.
const LONGEST_VALUE: usize = 32 * 1024;

impl Templates {
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

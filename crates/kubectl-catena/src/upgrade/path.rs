//! The place of a value in an object, in the form of the server's messages: `spec.containers[0].image`.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

/// The way from an object to one of its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Step {
    Field(String),
    Item(usize),
}

/// A field that would be lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostField {
    /// Its place, such as `spec.rules[0].color`.
    pub path: String,
    /// Its value.
    pub value: Value,
}

impl Path {
    /// The place of a field of the value here.
    pub fn field(&self, name: &str) -> Self {
        self.with(Step::Field(name.to_owned()))
    }

    /// The place of an item of the list here.
    pub fn item(&self, index: usize) -> Self {
        self.with(Step::Item(index))
    }

    /// The place that the server names in a message such as `unknown field "spec.rules[0].color"`.
    pub fn named(text: &str) -> Self {
        let steps = text.split('.').flat_map(|part| {
            let mut parts = part.split('[');
            let field = parts.next().filter(|name| !name.is_empty()).map(|name| Step::Field(name.to_owned()));
            let items = parts.filter_map(|index| index.trim_end_matches(']').parse().ok().map(Step::Item));
            field.into_iter().chain(items).collect::<Vec<_>>()
        });
        Self(steps.collect())
    }

    /// The value here; null if there is none.
    pub fn value<'v>(&self, object: &'v Value) -> &'v Value {
        self.0.iter().fold(object, |value, step| match step {
            Step::Field(name) => &value[name],
            Step::Item(index) => &value[*index],
        })
    }

    fn with(&self, step: Step) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }

    /// The field without the positions in lists, which differ between objects: `spec.rules[].color`.
    pub fn general(&self) -> String {
        self.written(|_| "[]".to_owned())
    }

    /// The schema of the value.
    pub fn schema<'s>(&self, root: &'s Value) -> &'s Value {
        self.0.iter().fold(root, |schema, step| match step {
            Step::Field(name) => schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]),
            Step::Item(_) => &schema["items"],
        })
    }

    fn written(&self, item: impl Fn(usize) -> String) -> String {
        let mut text = String::new();
        for step in &self.0 {
            match step {
                Step::Field(name) if text.is_empty() => text.push_str(name),
                Step::Field(name) => {
                    text.push('.');
                    text.push_str(name);
                }
                Step::Item(index) => text.push_str(&item(*index)),
            }
        }
        text
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written(|index| format!("[{index}]")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_is_written_as_in_the_messages_of_the_server() {
        let path = Path::default().field("spec").field("rules").item(2).field("color");
        assert_eq!(
            (path.to_string(), path.general()),
            ("spec.rules[2].color".into(), "spec.rules[].color".into())
        );
        let schema = json!({"properties": {"spec": {"properties": {"rules": {"items": {
            "additionalProperties": {"type": "string"}}}}}}});
        assert_eq!(path.schema(&schema), &json!({"type": "string"}));
    }

    #[test]
    fn the_value_is_found_that_the_server_names() {
        let object = json!({"spec": {"rules": [{}, {"color": "red"}]}});
        let path = Path::named("spec.rules[1].color");
        assert_eq!((path.to_string().as_str(), path.value(&object)), ("spec.rules[1].color", &json!("red")));
        assert_eq!(Path::named("spec.rules[9].color").value(&object), &Value::Null);
    }
}

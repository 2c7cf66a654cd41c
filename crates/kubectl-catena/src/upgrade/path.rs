//! The place of a value in an object, in the form of the server's messages: `spec.containers[0].image`; and the values that one
//! form of an object holds and another one lacks. Pure.

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
    /// Its place without positions in lists.
    #[serde(skip)]
    pub general: String,
}

impl LostField {
    /// A value at a place.
    pub fn at(path: &Path, value: Value) -> Self {
        Self { path: path.to_string(), value, general: path.general() }
    }
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

    /// Whether a value is the default of its schema, so that a reader of that version sees it in any case.
    pub fn is_default(&self, value: &Value, schema: &Value) -> bool {
        self.schema(schema).get("default") == Some(value)
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

/// Parts that the server writes anew, or that no schema of a definition describes.
const NOT_COMPARED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// The fields of `before` that `after` lacks, with their values. Nulls are no values: the server drops them.
pub fn lost(before: &Value, after: &Value) -> Vec<(Path, Value)> {
    let mut fields = Vec::new();
    for (name, value) in before.as_object().into_iter().flatten() {
        if !NOT_COMPARED.contains(&name.as_str()) {
            find(Path::default().field(name), value, after.get(name), &mut fields);
        }
    }
    fields
}

fn find(path: Path, before: &Value, after: Option<&Value>, fields: &mut Vec<(Path, Value)>) {
    match (before, after) {
        (Value::Null, _) => {}
        (Value::Object(before), Some(after @ Value::Object(_))) => {
            for (name, value) in before {
                find(path.field(name), value, after.get(name), fields);
            }
        }
        (Value::Array(before), Some(Value::Array(after))) => {
            for (index, value) in before.iter().enumerate() {
                find(path.item(index), value, after.get(index), fields);
            }
        }
        (before, Some(after)) if before == after => {}
        (before, _) => fields.push((path, before.clone())),
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

    fn told(before: &Value, after: &Value) -> Vec<String> {
        lost(before, after).iter().map(|(path, value)| format!("{path}={value}")).collect()
    }

    #[test]
    fn each_missing_field_is_named_with_its_value() {
        let before = json!({
            "kind": "A", "metadata": {"uid": "u"},
            "spec": {"size": 1, "color": "red", "rules": [{"a": 1}, {"a": 2, "b": {"c": 3}}], "none": null},
            "status": {"old": true},
        });
        let after = json!({"kind": "B", "spec": {"size": 1, "rules": [{"a": 1}, {"a": 2}], "new": 1}});
        assert_eq!(
            told(&before, &after),
            ["spec.color=\"red\"", "spec.rules[1].b={\"c\":3}", "status={\"old\":true}"]
        );
        assert!(told(&before, &before).is_empty());
    }

    #[test]
    fn a_default_is_known_by_its_schema() {
        let schema = json!({"properties": {"spec": {"properties": {"size": {"default": 3}, "plain": {}}}}});
        let spec = Path::default().field("spec");
        assert!(spec.field("size").is_default(&json!(3), &schema));
        assert!(!spec.field("size").is_default(&json!(4), &schema));
        assert!(!spec.field("plain").is_default(&json!(3), &schema));
    }
}

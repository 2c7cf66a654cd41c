//! The values that one form of an object holds and another one lacks, with their places in the form of the server's messages:
//! `spec.containers[0].image`. Pure.

use serde::Serialize;
use serde_json::Value;

/// Parts that the server writes anew, or that no schema of a definition describes.
const NOT_COMPARED: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A field that would be lost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LostField {
    /// Its place, such as `spec.rules[0].color`.
    pub path: String,
    /// Its value.
    pub value: Value,
    /// Whether it only holds the default of its schema, so that a reader of that version sees it in any case.
    #[serde(skip)]
    pub is_default: bool,
}

impl LostField {
    fn new(path: &str, value: &Value, schema: &Value) -> Self {
        let is_default = !value.is_null() && default_of(schema) == *value;
        Self { path: path.to_owned(), value: value.clone(), is_default }
    }

    /// The field that the server names in a message such as `unknown field "spec.rules[0].color"`, in an object with a schema.
    #[must_use]
    pub fn named(path: &str, object: &Value, schema: &Value) -> Self {
        let (mut value, mut here) = (object, schema);
        for step in path.split(['.', '[']) {
            let index = step.strip_suffix(']').and_then(|index| index.parse::<usize>().ok());
            (value, here) = match index {
                Some(index) => (&value[index], &here["items"]),
                None => (&value[step], property(here, step)),
            };
        }
        Self::new(path, value, here)
    }

    /// Its place without positions in lists, which differ between objects: `spec.rules[].color`.
    #[must_use]
    pub fn general(&self) -> String {
        let mut parts = self.path.split('[');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + "[" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    }
}

/// The fields of `before`, which has a schema, that `after` lacks. Nulls are no values: the server drops them.
#[must_use]
pub fn lost(before: &Value, after: &Value, schema: &Value) -> Vec<LostField> {
    let mut fields = Vec::new();
    for (name, value) in before.as_object().into_iter().flatten() {
        if !NOT_COMPARED.contains(&name.as_str()) {
            find(name, property(schema, name), value, after.get(name), &mut fields);
        }
    }
    fields
}

fn find(path: &str, schema: &Value, before: &Value, after: Option<&Value>, fields: &mut Vec<LostField>) {
    match (before, after) {
        (Value::Null, _) => {}
        (Value::Object(before), Some(after @ Value::Object(_))) => {
            for (name, value) in before {
                let path = format!("{path}.{name}");
                find(&path, property(schema, name), value, after.get(name), fields);
            }
        }
        (Value::Array(before), Some(Value::Array(after))) => {
            for (index, value) in before.iter().enumerate() {
                let path = format!("{path}[{index}]");
                find(&path, &schema["items"], value, after.get(index), fields);
            }
        }
        (before, Some(after)) if before == after => {}
        (before, after) => {
            let mut field = LostField::new(path, before, schema);
            field.is_default &= after.is_none();
            fields.push(field);
        }
    }
}

/// The value of an absent field, by its schema; null without a default.
#[must_use]
pub fn default_of(schema: &Value) -> Value {
    let mut value = schema["default"].clone();
    fill_in(&mut value, schema);
    value
}

/// Adds the defaults of the fields of a value, as the API server does: also to a value that is a default itself.
fn fill_in(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let is_absent = |value: &Value| value.is_null() && property["nullable"] != true;
                if let Some(default) = property.get("default")
                    && fields.get(name).is_none_or(is_absent)
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                fill_in(value, property(schema, name));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, &schema["items"])),
        _ => {}
    }
}

/// The schema of a field.
fn property<'s>(schema: &'s Value, name: &str) -> &'s Value {
    schema["properties"].get(name).unwrap_or(&schema["additionalProperties"])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_value_is_found_that_the_server_names() {
        let object = json!({"spec": {"rules": [{}, {"color": "red"}]}});
        let color = |path: &str| LostField::named(path, &object, &Value::Null);
        assert_eq!(color("spec.rules[1].color").value, "red");
        assert_eq!(color("spec.rules[1].color").general(), "spec.rules[].color");
        assert_eq!(color("spec.rules[9].color").value, Value::Null);
    }

    fn told(before: &Value, after: &Value) -> Vec<String> {
        let fields = lost(before, after, &Value::Null);
        fields.iter().map(|field| format!("{}={}", field.path, field.value)).collect()
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
        let rules = json!({"items": {"additionalProperties": {"type": "string", "default": "red"}}});
        let fields = json!({"size": {"default": 3}, "plain": {}, "rules": rules});
        let schema = json!({"properties": {"spec": {"properties": fields}}});
        let object = json!({"spec": {"size": 3, "plain": 3, "rules": [{"a.b": "red"}, {"c": "blue"}]}});
        let after = json!({"spec": {"rules": [{}, {}]}});
        let is_default: Vec<_> =
            lost(&object, &after, &schema).into_iter().map(|field| (field.path, field.is_default)).collect();
        let expected = [
            ("spec.plain", false),
            ("spec.rules[0].a.b", true),
            ("spec.rules[1].c", false),
            ("spec.size", true),
        ];
        assert_eq!(is_default, expected.map(|(path, is)| (path.to_owned(), is)));
        assert!(LostField::named("spec.size", &object, &schema).is_default);
    }

    #[test]
    fn a_default_has_the_defaults_of_its_own_fields() {
        let policy = json!({"default": {}, "properties": {"mode": {"default": "Fast"}}});
        let schema = json!({"properties": {"spec": {"properties": {"policy": policy}}}});
        let is_default = |mode: &str| {
            let before = json!({"spec": {"policy": {"mode": mode}}});
            lost(&before, &json!({"spec": {}}), &schema)[0].is_default
        };
        assert!(is_default("Fast") && !is_default("Slow"));
    }

    #[test]
    fn a_value_that_becomes_another_one_is_lost_although_it_was_the_default() {
        let schema = json!({"properties": {"spec": {"properties": {"mode": {"default": "Fast"}}}}});
        let [fast, slow] = ["Fast", "Slow"].map(|mode| json!({"spec": {"mode": mode}}));
        assert!(!lost(&fast, &slow, &schema)[0].is_default);
    }
}

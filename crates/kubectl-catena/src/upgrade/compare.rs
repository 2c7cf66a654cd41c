//! What one form of an object holds and another one lacks. Pure.

use serde_json::Value;

use super::path::Path;

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

/// Whether a value is the default of its schema, so that a reader of that version sees it in any case.
pub fn is_default(path: &Path, value: &Value, schema: &Value) -> bool {
    path.schema(schema).get("default") == Some(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert!(is_default(&spec.field("size"), &json!(3), &schema));
        assert!(!is_default(&spec.field("size"), &json!(4), &schema));
        assert!(!is_default(&spec.field("plain"), &json!(3), &schema));
    }
}

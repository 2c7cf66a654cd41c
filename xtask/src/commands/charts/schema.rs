//! The schema of a chart's values: the common part, and the chart's own part.

use anyhow::{Result, bail};
use serde_json::{Map, Value};

/// Joins both schemas: objects are merged and lists concatenated. Neither can contradict the other.
pub fn join(shared: &Value, own: Value) -> Result<Value> {
    let mut joined = shared.clone();
    add(&mut joined, own, "")?;
    Ok(joined)
}

fn add(to: &mut Value, from: Value, path: &str) -> Result<()> {
    match (to, from) {
        (Value::Object(to), Value::Object(from)) => add_fields(to, from, path),
        (Value::Array(to), Value::Array(from)) => {
            if let Some(twice) = from.iter().find(|item| to.contains(item)) {
                bail!("{path} lists {twice}, which all charts have");
            }
            to.extend(from);
            Ok(())
        }
        _ => bail!("{path} is what all charts share"),
    }
}

fn add_fields(to: &mut Map<String, Value>, from: Map<String, Value>, path: &str) -> Result<()> {
    for (key, value) in from {
        match to.get_mut(&key) {
            Some(shared) => add(shared, value, &format!("{path}/{key}"))?,
            None => drop(to.insert(key, value)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_chart_adds_properties_also_within_a_shared_one() {
        let shared = json!({"required": ["rbac"], "properties": {"rbac": {"properties": {"create": {"type": "boolean"}}}}});
        let own = json!({"required": ["kinds"], "properties": {
            "kinds": {"type": "array"},
            "rbac": {"properties": {"users": {"type": "boolean"}}},
        }});
        let joined = join(&shared, own).unwrap();
        assert_eq!(
            joined,
            json!({"required": ["rbac", "kinds"], "properties": {
                "kinds": {"type": "array"},
                "rbac": {"properties": {"create": {"type": "boolean"}, "users": {"type": "boolean"}}},
            }})
        );
    }

    #[test]
    fn a_chart_cannot_say_anything_else_about_what_all_share() {
        let shared = json!({"required": ["rbac"], "properties": {"replicas": {"maximum": 10}}});
        let why = |own| join(&shared, own).unwrap_err().to_string();
        let maximum = why(json!({"properties": {"replicas": {"maximum": 1}}}));
        assert!(maximum.starts_with("/properties/replicas/maximum"), "{maximum}");
        assert!(why(json!({"required": ["rbac"]})).contains("\"rbac\""));
    }
}

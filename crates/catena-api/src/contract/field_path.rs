use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The path of a field in an object, written with dots: `status.active`. A name with other characters stands in quotes:
/// `metadata.annotations['example.org/token']`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FieldPath(Vec<String>);

impl FromStr for FieldPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        names(text).map(Self).ok_or_else(|| {
            format!(
                "{text:?} is not a field path: separate the names of the fields by dots, as in status.active, and quote one with other characters, as in metadata.annotations['example.org/token']"
            )
        })
    }
}

impl TryFrom<String> for FieldPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<FieldPath> for String {
    fn from(path: FieldPath) -> Self {
        path.to_string()
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, name) in self.0.iter().enumerate() {
            match place {
                _ if !is_plain(name) => write!(f, "['{name}']")?,
                0 => f.write_str(name)?,
                _ => write!(f, ".{name}")?,
            }
        }
        Ok(())
    }
}

impl FieldPath {
    pub(super) fn of<const N: usize>(names: [&str; N]) -> Self {
        Self(names.map(str::to_owned).to_vec())
    }

    /// The names on the way from the object to the field.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// The value of the field, or `None` if the field or one of its parents is missing.
    #[must_use]
    pub fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |value, name| value.get(name)).filter(|value| !value.is_null())
    }

    /// Sets the field and creates its missing parents. A parent that is not an object is replaced by one.
    pub fn set(&self, object: &mut Value, value: Value) {
        let mut place = object;
        for name in &self.0 {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[name.as_str()];
        }
        *place = value;
    }

    /// Removes the field, if it exists.
    pub fn remove(&self, object: &mut Value) {
        let Some((last, way)) = self.0.split_last() else { return };
        let parent = way.iter().try_fold(object, |value, name| value.get_mut(name));
        if let Some(fields) = parent.and_then(Value::as_object_mut) {
            fields.remove(last);
        }
    }
}

/// The names in a path; `None` if it is not one.
fn names(text: &str) -> Option<Vec<String>> {
    let (mut names, mut rest) = (Vec::new(), text);
    while !rest.is_empty() || names.is_empty() {
        if let Some(quoted) = rest.strip_prefix("['") {
            let (name, after) = quoted.split_once("']")?;
            (!name.is_empty() && !name.contains('\'')).then(|| names.push(name.to_owned()))?;
            rest = after;
        } else {
            let plain = if names.is_empty() { rest } else { rest.strip_prefix('.')? };
            let (name, after) = plain.split_at(plain.find(['.', '[']).unwrap_or(plain.len()));
            is_plain(name).then(|| names.push(name.to_owned()))?;
            rest = after;
        }
    }
    Some(names)
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_reads_sets_and_removes_the_same_field() {
        let path: FieldPath = "spec.replicas".parse().unwrap();
        let mut object = json!({"kind": "X"});
        assert_eq!(path.get(&object), None);
        path.set(&mut object, json!(3));
        assert_eq!(object, json!({"kind": "X", "spec": {"replicas": 3}}));
        assert_eq!(path.get(&object), Some(&json!(3)));
        path.remove(&mut object);
        assert_eq!(object, json!({"kind": "X", "spec": {}}));
    }

    #[test]
    fn a_name_with_other_characters_is_quoted() {
        let text = "spec.template.metadata.annotations['example.org/restarted.at'].value";
        let path: FieldPath = text.parse().unwrap();
        assert_eq!(path.to_string(), text);
        let mut object = json!({});
        path.set(&mut object, json!("now"));
        let annotations = &object["spec"]["template"]["metadata"]["annotations"];
        assert_eq!(annotations["example.org/restarted.at"]["value"], "now");
        assert_eq!("['a.b']".parse::<FieldPath>().unwrap().to_string(), "['a.b']");
        let names = ["spec", "template", "metadata", "annotations", "example.org/restarted.at", "value"];
        assert_eq!(path.names(), names);
    }

    #[test]
    fn a_null_field_counts_as_missing() {
        let path: FieldPath = "status.active".parse().unwrap();
        assert_eq!(path.get(&json!({"status": {"active": null}})), None);
    }

    #[test]
    fn an_empty_name_in_a_path_is_refused_with_an_example() {
        for text in
            ["", "spec.", ".spec", "a..b", "status[0]", "a[''].b", "a['b", "a['b']c", "a.['b']", "a.`b-c`"]
        {
            let error = text.parse::<FieldPath>().unwrap_err();
            assert!(error.contains("as in status.active"), "{error}");
        }
    }
}

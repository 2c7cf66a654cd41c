use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The path of a field in an object, written with dots: `status.active`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FieldPath(Vec<String>);

/// The text is not a [`FieldPath`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidFieldPath(String);

impl fmt::Display for InvalidFieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a field path: separate the names of the fields by dots, as in status.active",
            self.0
        )
    }
}

impl std::error::Error for InvalidFieldPath {}

impl FromStr for FieldPath {
    type Err = InvalidFieldPath;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names: Vec<String> = text.split('.').map(str::to_owned).collect();
        let valid = |name: &String| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        };
        if names.iter().all(valid) { Ok(Self(names)) } else { Err(InvalidFieldPath(text.to_owned())) }
    }
}

impl TryFrom<String> for FieldPath {
    type Error = InvalidFieldPath;

    fn try_from(text: String) -> Result<Self, Self::Error> {
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
        f.write_str(&self.0.join("."))
    }
}

impl FieldPath {
    pub(super) fn of<const N: usize>(names: [&str; N]) -> Self {
        Self(names.map(str::to_owned).to_vec())
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
    fn a_null_field_counts_as_missing() {
        let path: FieldPath = "status.active".parse().unwrap();
        assert_eq!(path.get(&json!({"status": {"active": null}})), None);
    }

    #[test]
    fn an_empty_name_in_a_path_is_refused_with_an_example() {
        for text in ["", "spec.", ".spec", "a..b", "status[0]"] {
            let error = text.parse::<FieldPath>().unwrap_err().to_string();
            assert!(error.contains("as in status.active"), "{error}");
        }
    }
}

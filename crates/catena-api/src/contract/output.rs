use std::fmt;

use serde::{Deserialize, Serialize};

use super::FieldPath;

/// The place of an output of a contract in an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Output {
    /// A field has it.
    Field(FieldPath),
    /// It is computed from the whole object.
    Computed(Computed),
}

/// An output that is computed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Computed {
    /// A CEL expression over `object`.
    pub cel: String,
}

impl Output {
    pub(super) fn field<const N: usize>(names: [&str; N]) -> Self {
        Self::Field(FieldPath::of(names))
    }
}

impl fmt::Display for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(path) => path.fmt(f),
            Self::Computed(Computed { cel }) => f.write_str(cel),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_is_a_path_or_an_expression() {
        let read = |value| serde_json::from_value::<Output>(value).unwrap();
        assert_eq!(read(json!("status.active")), Output::field(["status", "active"]));
        assert_eq!(read(json!({"cel": "1"})), Output::Computed(Computed { cel: "1".into() }));
        assert!(serde_json::from_value::<Output>(json!({"jq": ".a"})).is_err());
    }
}

use std::fmt;

use serde::Serialize;

/// A part of a definition that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The version of the definition; empty if the finding is about the definition as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The field of the objects, such as `spec.containers[].image`, or the part of the definition if there is no version.
    /// `[]` stands for the items of a list, and `*` for the values of a map.
    pub path: String,
    /// The rule.
    pub rule: Rule,
    /// What changed.
    pub message: String,
}

/// A rule for definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Rule {
    /// No field is removed or renamed: its values would be dropped.
    FieldRemoved,
    /// Fields beyond the schema that were kept are not dropped.
    UnknownFieldsDropped,
    /// A type accepts all values that it accepted before.
    TypeNarrowed,
    /// A format accepts all values that it accepted before.
    FormatNarrowed,
    /// No value of an enumeration is removed, and none is introduced for a field that had none.
    EnumNarrowed,
    /// No bound is introduced or tightened.
    BoundTightened,
    /// No pattern is introduced or changed.
    PatternChanged,
    /// No validation rule is introduced or changed.
    ValidationAdded,
    /// No field becomes required, unless it has a default.
    FieldRequired,
    /// Lists and maps are merged as before.
    ListTypeChanged,
    /// The default of a field stays: objects without a value would change their meaning.
    DefaultChanged,
    /// A version stays served until it was deprecated.
    ServedVersionRemoved,
    /// A deprecated version may go in the end.
    DeprecatedVersionRemoved,
    /// The version in which objects are stored stays in the definition.
    StorageVersionRemoved,
    /// Versions are converted as before.
    ConversionChanged,
    /// The server converts without a webhook.
    ConversionByWebhook,
    /// Every version has the same fields: a conversion without a webhook drops those that a version lacks.
    VersionsDiffer,
    /// A deprecated version has a warning.
    DeprecationUnexplained,
    /// The group, the names and the scope of a kind stay.
    KindChanged,
    /// No subresource is removed.
    SubresourceRemoved,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.version.is_empty() {
            write!(f, "{} ", self.version)?;
        }
        write!(f, "{}: {}", self.path, self.message)
    }
}

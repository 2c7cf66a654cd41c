//! The schema of a kind, from the server's `OpenAPI` document.

use catena_api::contract::FieldPath;
use serde_json::Value;

/// The schema of a kind.
#[derive(Debug)]
pub struct Schema {
    document: Value,
    root: Value,
}

/// A part of a schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A field of this type.
    Typed(String),
    /// Any value is allowed.
    Anything,
    /// It does not exist; these are its neighbours.
    Missing {
        /// The path of the last existing field on the way.
        parent: String,
        /// The names of its fields.
        siblings: Vec<String>,
    },
}

impl Schema {
    /// The schema of a kind in the document of its group and version.
    pub fn of(document: &Value, group: &str, version: &str, kind: &str) -> Option<Self> {
        let all = document.pointer("/components/schemas")?.as_object()?;
        let is_it = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds
                .into_iter()
                .flatten()
                .any(|gvk| gvk["group"] == group && gvk["version"] == version && gvk["kind"] == kind)
        };
        let root = all.values().find(is_it)?.clone();
        Some(Self { document: document.clone(), root })
    }

    /// The schema of the status; null if the kind has none.
    pub(super) fn status(&self) -> &Value {
        self.resolve(&self.root["properties"]["status"])
    }

    /// The part at a path.
    pub(super) fn find(&self, path: &FieldPath) -> Found {
        let mut here = &self.root;
        for (depth, name) in path.names().iter().enumerate() {
            match here["properties"].get(name) {
                Some(next) => here = self.resolve(next),
                None if here["additionalProperties"].is_object() => {
                    here = self.resolve(&here["additionalProperties"]);
                }
                None if is_open(here) => return Found::Anything,
                None => {
                    let siblings =
                        here["properties"].as_object().map(|fields| fields.keys().cloned().collect());
                    let parent = path.names()[..depth].join(".");
                    return Found::Missing { parent, siblings: siblings.unwrap_or_default() };
                }
            }
        }
        match here["type"].as_str() {
            Some(type_) => Found::Typed(type_.to_owned()),
            None if here["properties"].is_object() => Found::Typed("object".to_owned()),
            None => Found::Anything,
        }
    }

    /// Follows references; those of Kubernetes are the only member of an `allOf`.
    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let reference = schema["$ref"].as_str().or_else(|| schema.pointer("/allOf/0/$ref")?.as_str());
        let target = reference.and_then(|reference| self.document.pointer(reference.strip_prefix('#')?));
        target.unwrap_or(schema)
    }
}

/// Whether the server keeps fields that are not among the properties.
fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

//! The schema of a kind, from the server's `OpenAPI` document.

use catena_api::contract::FieldPath;
use serde_json::Value;

/// The schema of a kind.
pub struct Schema {
    document: Value,
    root: Value,
}

impl Schema {
    /// The schema of a kind in the document of its group and version.
    #[must_use]
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

    /// Whether a field exists with a type, and the deviation.
    pub(super) fn judge(&self, path: &FieldPath, type_: &str) -> (bool, String) {
        let anything =
            || (true, "the schema allows any field there, so that this field cannot be checked".to_owned());
        let mut here = &self.root;
        for (depth, name) in path.names().iter().enumerate() {
            here = match here["properties"].get(name) {
                Some(next) => self.resolve(next),
                None if here["additionalProperties"].is_object() => {
                    self.resolve(&here["additionalProperties"])
                }
                // The server keeps fields that are not among the properties.
                None if here["x-kubernetes-preserve-unknown-fields"] == true => return anything(),
                None => return (false, lacking(here, &path.names()[..depth].join("."), path)),
            };
        }
        let object = here["properties"].is_object().then_some("object");
        match here["type"].as_str().or(object) {
            None => anything(),
            Some(found) if found == type_ => (true, String::new()),
            Some(found) => (false, format!("its type is {found}, but {type_} is required")),
        }
    }

    /// Follows references; those of Kubernetes are the only member of an `allOf`.
    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let reference = schema["$ref"].as_str().or_else(|| schema.pointer("/allOf/0/$ref")?.as_str());
        let target = reference.and_then(|reference| self.document.pointer(reference.strip_prefix('#')?));
        target.unwrap_or(schema)
    }
}

/// That a part of a schema lacks the rest of a path, and which of its fields may be meant.
fn lacking(here: &Value, parent: &str, path: &FieldPath) -> String {
    let name = path.names().last().map_or("", String::as_str);
    let siblings = here["properties"].as_object().into_iter().flat_map(|fields| fields.keys());
    let near = siblings.filter(|sibling| is_synonym(sibling, name)).map(|near| format!("{parent}.{near}"));
    let near = near.collect::<Vec<_>>().join(" or ");
    let place = if parent.is_empty() { "the object" } else { parent };
    if near.is_empty() {
        return format!("{place} has no such field");
    }
    format!("{place} has no such field; if {near} has the same meaning, map it: --path {name}={near}")
}

/// Names of other kinds for the same field.
fn is_synonym(name: &str, wanted: &str) -> bool {
    let usual: &[&str] = match wanted {
        "active" => &["readyReplicas", "availableReplicas", "ready", "readyInstances", "numberReady"],
        "replicas" => &["size", "instances", "nodes", "members"],
        "updated" => &["updatedReplicas", "updatedNumberScheduled"],
        "selector" => &["labelSelector"],
        _ => &[],
    };
    usual.contains(&name)
}

//! A kind as the server describes it: its schema in the `OpenAPI` document, the labels of its definition, and whether it is one of
//! commands.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use catena_api::{contract::FieldPath, keys::COMMAND_KIND};
use catena_cluster::{Cluster, Kind, configured_commands, errors, is_our_command};
use serde_json::{Value, json};

/// The schema of a kind.
pub struct Schema {
    document: Value,
    root: Value,
}

impl Schema {
    /// The schema of a kind, which everybody may read who may list the kinds.
    ///
    /// # Errors
    /// When the server does not answer, or publishes none.
    pub async fn read(cluster: &Cluster, kind: &Kind) -> Result<Self> {
        let resource = &kind.resource;
        let place = if resource.group.is_empty() { "api" } else { "apis" };
        let url = format!("/openapi/v3/{place}/{}", resource.api_version);
        let none = || {
            format!("the server publishes no schema for {}; that of a new kind takes a moment", resource.kind)
        };
        let request = http::Request::get(&url).body(Vec::new())?;
        let document: Value = match cluster.client.request(request).await {
            // The page of a schema is no object, so that its absence has no reason.
            Err(kube::Error::Api(status)) if status.code == 404 => bail!("{}", none()),
            answer => answer.map_err(|error| errors::refused(("schema", &url), "", None, "get", error))?,
        };
        Self::of(&document, &resource.group, &resource.version, &resource.kind).with_context(none)
    }

    /// The schema of a kind in the document of its group and version.
    pub(super) fn of(document: &Value, group: &str, version: &str, kind: &str) -> Option<Self> {
        let all = document.pointer("/components/schemas")?.as_object()?;
        let wanted = json!({"group": group, "version": version, "kind": kind});
        let is_it = |schema: &&Value| {
            schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&wanted))
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

/// The labels of the kind's CRD; none without a CRD, or if it may not be read.
pub async fn labels(cluster: &Cluster, kind: &Kind) -> Option<BTreeMap<String, String>> {
    let definition = cluster.at(&Kind::definitions(), None, &kind.full_name()).find().await.ok()??;
    Some(definition.metadata.labels.unwrap_or_default())
}

/// Whether a kind is one of commands: ours, by the label of its CRD, or by the values of command-binder.
pub async fn is_command(cluster: &Cluster, kind: &Kind, labels: Option<&BTreeMap<String, String>>) -> bool {
    let label = labels.and_then(|labels| labels.get(COMMAND_KIND));
    is_our_command(kind)
        || label.is_some_and(|label| label == "true")
        || configured_commands(cluster).await.is_ok_and(|kinds| kind.is_among(&kinds))
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::serving;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_kind_of_commands_is_known_by_the_values_of_command_binder_alone() {
        let (cluster, _) = serving(|uri| {
            let data = json!({"settings.yaml": "kinds: [{group: acme.dev, resource: reindexes}]"});
            let map = json!({"metadata": {"name": "b", "namespace": "catena-system"}, "data": data});
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": [map]});
            uri.starts_with("/api/v1/configmaps?").then_some(list)
        });
        for (word, expected) in [("reindexes", true), ("bdr", true), ("deployments", false)] {
            let kind = cluster.kinds.find(word).unwrap();
            assert_eq!(is_command(&cluster, kind, None).await, expected, "{word}");
        }
    }
}

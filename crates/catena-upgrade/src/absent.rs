//! Installed definitions that the new ones do not replace, although they came with those that are replaced.

use std::collections::HashSet;

use anyhow::Result;
use catena_api::keys;
use catena_cluster::{Cluster, Kind};
use kube::{api::ListParams, core::ObjectMeta};
use serde::Serialize;
use serde_json::Value;

use super::Definition;

/// Where Helm says to which release an object belongs, and whether the object stays without it.
const RELEASE: [&str; 2] = ["meta.helm.sh/release-namespace", "meta.helm.sh/release-name"];
const POLICY: &str = "helm.sh/resource-policy";

/// An installed definition with objects that is not among the new ones.
#[derive(Debug, Serialize)]
pub struct Absent {
    /// Its name.
    pub name: String,
    /// The number of its objects; none if they cannot be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub objects: Option<u64>,
    /// Whether Helm deletes it, and its objects with it.
    pub deleted: bool,
}

/// The installed definitions with objects of the same groups and releases as the new ones, but not among them.
///
/// # Errors
/// When definitions cannot be listed.
pub async fn absent(cluster: &Cluster, new: &[Definition]) -> Result<Vec<Absent>> {
    let kind = Kind::definitions();
    let listed = cluster.metadata(&kind, None, ListParams::default()).await;
    let listed = listed.map_err(|error| cluster.refused(&kind, "", "list", error))?;
    let is_new = |metadata: &ObjectMeta| {
        new.iter().any(|definition| Some(definition.name()) == metadata.name.as_deref())
    };
    let (replaced, others): (Vec<_>, Vec<_>) = listed.into_iter().partition(is_new);
    let sources: HashSet<_> = replaced.iter().map(source).collect();
    let mut absent = Vec::new();
    // The label alone proves nothing, so that one that is replaced counts.
    let is_scratch = |metadata: &&ObjectMeta| {
        metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(keys::SCRATCH))
    };
    let related = |metadata: &&ObjectMeta| sources.contains(&source(metadata)) && !is_scratch(metadata);
    for metadata in others.iter().filter(related) {
        let is_released = source(metadata).1.is_some();
        let deleted = is_released && annotation(metadata, POLICY) != Some("keep");
        let name = metadata.name.clone().unwrap_or_default();
        let objects = count(cluster, &name).await;
        if objects != Some(0) {
            absent.push(Absent { name, objects, deleted });
        }
    }
    Ok(absent)
}

/// The group of a definition, and the namespace and name of the release that it came with.
fn source(metadata: &ObjectMeta) -> (Option<&str>, Option<[&str; 2]>) {
    let [namespace, name] = RELEASE.map(|key| annotation(metadata, key));
    let group = metadata.name.as_deref().and_then(|name| name.split_once('.')).map(|(_, group)| group);
    (group, namespace.zip(name).map(<[&str; 2]>::from))
}

fn annotation<'m>(metadata: &'m ObjectMeta, key: &str) -> Option<&'m str> {
    metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The number of objects of a definition.
async fn count(cluster: &Cluster, definition: &str) -> Option<u64> {
    let kind = cluster.kinds.defined_by(definition)?;
    let mut pages = cluster.pages(kind, None, ListParams::default().limit(1));
    let first: Vec<Value> = pages.next().await.ok()??;
    Some(first.len() as u64 + pages.remaining.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use catena_cluster::testing::serving;
    use serde_json::json;

    use super::*;
    use crate::definition::tests::definition;

    #[tokio::test]
    async fn kinds_with_objects_that_came_with_the_replaced_ones_are_told() {
        let installed = |name: &str, release: &str, policy: &str| {
            let annotations = json!({RELEASE[0]: "shop", RELEASE[1]: release, POLICY: policy});
            json!({"metadata": {"name": name, "annotations": annotations}})
        };
        let mut definitions = [
            installed("basicdeployments.catena.dev", "a", "keep"),
            installed("basicreplicasets.catena.dev", "a", "delete"),
            installed("basicdeploymentrestarts.catena.dev", "b", "delete"),
            installed("reindexes.acme.dev", "a", "delete"),
            installed("scratch.catena.dev", "a", "delete"),
            installed("unserved.catena.dev", "a", "delete"),
        ];
        for labelled in [0, 4] {
            definitions[labelled]["metadata"]["labels"] = json!({keys::SCRATCH: "true"});
        }
        let (cluster, _) = serving(move |uri| {
            let list = |items: &[Value], remaining: u64| json!({"kind": "List", "apiVersion": "v1", "items": items, "metadata": {"remainingItemCount": remaining}});
            Some(if uri.contains("/customresourcedefinitions") {
                list(&definitions, 0)
            } else {
                list(&[json!({"metadata": {"name": "web"}})], 2)
            })
        });
        let mut new = definition(&json!({}));
        new["metadata"]["name"] = "basicdeployments.catena.dev".into();
        let absent = absent(&cluster, &[Definition::new(new).unwrap()]).await.unwrap();
        let told: Vec<_> =
            absent.iter().map(|absent| (&*absent.name, absent.objects, absent.deleted)).collect();
        let expected = [("basicreplicasets.catena.dev", Some(3), true), ("unserved.catena.dev", None, true)];
        assert_eq!(told, expected);
    }
}

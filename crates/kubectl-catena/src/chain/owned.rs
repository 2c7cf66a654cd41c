//! Lists the owned objects of a kind that may have very many others.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Resource, ResourceExt,
    api::ListParams,
    core::{DynamicObject, ObjectMeta, Request},
};
use serde::Deserialize;

use super::dependents::DependentList;
use crate::connection::Cluster;

/// The decoded part of the response: decoding the rest of ten thousand objects takes seconds.
#[derive(Deserialize)]
struct Listed {
    /// Null when there are none.
    items: Option<Vec<Item>>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: Option<String>,
    uid: String,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
    labels: Option<std::collections::BTreeMap<String, String>>,
}

/// The objects that have an owner, or a label with the uid of their target, with the fields for fetching them.
pub async fn owned(
    cluster: &Cluster,
    list: &DependentList,
    labels: Option<&str>,
) -> kube::Result<Vec<DynamicObject>> {
    let namespace = list.namespace.as_deref().filter(|_| list.kind.is_namespaced);
    let path = DynamicObject::url_path(&list.kind.resource, namespace);
    // From the server's cache and in one response: a page costs a round trip.
    let params =
        ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default() }.match_any();
    let request = Request::new(path).list_metadata(&params).map_err(kube::Error::BuildRequest)?;
    let listed: Listed = cluster.client.request(request).await?;
    let objects = listed.items.into_iter().flatten().map(|item| bare(item.metadata));
    Ok(objects
        .filter(|object| {
            !object.owner_references().is_empty() || super::tree::labelled_target(object).is_some()
        })
        .collect())
}

fn bare(metadata: Metadata) -> DynamicObject {
    let metadata = ObjectMeta {
        name: Some(metadata.name),
        namespace: metadata.namespace,
        uid: Some(metadata.uid),
        owner_references: Some(metadata.owner_references),
        labels: metadata.labels,
        ..ObjectMeta::default()
    };
    DynamicObject { types: None, metadata, data: serde_json::Value::Null }
}

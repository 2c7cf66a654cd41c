//! Lists the owned objects of a kind that may have very many others.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{
    Resource, ResourceExt,
    api::ListParams,
    core::{DynamicObject, ObjectMeta, Request},
};
use serde::Deserialize;

use super::dependents::DependentList;
use crate::{access::types, connection::Cluster, kinds::Kind, pages::Pages};

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
    let params = ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default() };
    let namespace = list.namespace.as_deref().filter(|_| list.kind.is_namespaced);
    if namespace.is_none() {
        return in_pages(cluster, list, params).await;
    }
    let path = DynamicObject::url_path(&list.kind.resource, namespace);
    // From the server's cache and in one response: a page costs a round trip.
    let request = Request::new(path).list_metadata(&params.match_any()).map_err(kube::Error::BuildRequest)?;
    let listed: Listed = cluster.client.request(request).await?;
    Ok(belonging(listed.items.into_iter().flatten(), &list.kind).collect())
}

/// The objects of a whole cluster are too many for one response.
async fn in_pages(
    cluster: &Cluster,
    list: &DependentList,
    params: ListParams,
) -> kube::Result<Vec<DynamicObject>> {
    let mut pages = Pages::metadata(&cluster.api::<DynamicObject>(&list.kind, None), params);
    let mut objects = Vec::new();
    while let Some(page) = pages.next::<Item>().await? {
        objects.extend(belonging(page, &list.kind));
    }
    Ok(objects)
}

fn belonging(items: impl IntoIterator<Item = Item>, kind: &Kind) -> impl Iterator<Item = DynamicObject> {
    let objects = items.into_iter().map(|item| bare(item.metadata, kind));
    objects.filter(|object| {
        !object.owner_references().is_empty() || super::tree::labelled_target(object).is_some()
    })
}

fn bare(metadata: Metadata, kind: &Kind) -> DynamicObject {
    let metadata = ObjectMeta {
        name: Some(metadata.name),
        namespace: metadata.namespace,
        uid: Some(metadata.uid),
        owner_references: Some(metadata.owner_references),
        labels: metadata.labels,
        ..ObjectMeta::default()
    };
    DynamicObject { types: Some(types(kind)), metadata, data: serde_json::Value::Null }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{chain::dependents::Selector, connection::tests::serving};

    #[tokio::test]
    async fn the_objects_of_a_whole_cluster_are_read_page_by_page() {
        let (cluster, requests) = serving(|uri| {
            let owner = json!({"apiVersion": "acme.dev/v1", "kind": "Site", "name": "s", "uid": "s"});
            let is_second = uri.contains("continue=more");
            let name = if is_second { "b" } else { "a" };
            let items = json!([{"metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]}}]);
            let more = if is_second { "" } else { "more" };
            Some(json!({"kind": "List", "apiVersion": "v1", "metadata": {"continue": more}, "items": items}))
        });
        let list = |namespace: Option<&str>| DependentList {
            kind: cluster.kinds.find("pods").unwrap().clone(),
            namespace: namespace.map(str::to_owned),
            selector: Selector::Metadata,
        };
        let found = owned(&cluster, &list(None), Some("a=b")).await.unwrap();
        assert_eq!(found.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["a", "b"]);
        let paged = |uri: &String| {
            uri.contains("/pods?&labelSelector=a%3Db&limit=500") && !uri.contains("resourceVersion=")
        };
        assert!(requests.lock().unwrap().iter().all(paged), "{requests:?}");
        // In a namespace, one response from the cache is faster.
        owned(&cluster, &list(Some("shop")), None).await.unwrap();
        let newest = requests.lock().unwrap().last().cloned().unwrap();
        assert!(newest.contains("resourceVersion=0") && !newest.contains("limit="), "{newest}");
    }
}

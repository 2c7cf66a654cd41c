//! The input for applying the rules of a controller from outside: its settings, and an object as it watches it.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, ObjectMeta},
    discovery::ApiResource,
};
use operator_kit::{run::Validate, watch::TrimmedObject};
use serde::de::DeserializeOwned;

use crate::{connection::Cluster, pages};

/// The settings of a controller, in each of its installations. Those with a mistake are not in force.
pub async fn settings<S: DeserializeOwned + Validate>(
    cluster: &Cluster,
    controller: &str,
) -> kube::Result<Vec<S>> {
    let labels = format!("app.kubernetes.io/part-of=catena,app.kubernetes.io/component={controller}");
    let found = Api::<ConfigMap>::all(cluster.client.clone());
    let found = pages::all(&found, ListParams::default().labels(&labels)).await?;
    let texts = found.into_iter().filter_map(|settings| settings.data?.remove("settings.yaml"));
    let read = |text: String| serde_saphyr::from_str::<S>(&text).ok().filter(|read| read.validate().is_ok());
    Ok(texts.filter_map(read).collect())
}

/// An object in the version in which a controller watches its kind; `None` where the controller does not look at it.
pub async fn as_watched(
    cluster: &Cluster,
    resource: &ApiResource,
    selector: Option<&str>,
    ObjectMeta { name, namespace, uid, .. }: &ObjectMeta,
) -> kube::Result<Option<TrimmedObject>> {
    let Some(served) = cluster.kinds.served(resource) else { return Ok(None) };
    let this = format!("metadata.name={}", name.as_deref().unwrap_or_default());
    let params =
        ListParams { label_selector: selector.map(str::to_owned), ..ListParams::default().fields(&this) };
    let found = pages::all(&cluster.api::<TrimmedObject>(served, namespace.as_deref()), params).await?;
    Ok(found.into_iter().find(|object| object.metadata.uid == *uid))
}

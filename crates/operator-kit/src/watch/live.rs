//! Live reads: what is decided on them must not come from a cache that is behind.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Client, Resource,
    api::{DynamicObject, GetParams},
    core::Request,
    discovery::ApiResource,
};

use crate::watch::Trimmed;

/// The metadata of an object, without `managedFields`. `namespace` is empty for a cluster-wide one.
pub async fn metadata(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> kube::Result<ObjectMeta> {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let request = Request::new(DynamicObject::url_path(resource, namespace))
        .get_metadata(name, &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    client.request::<Trimmed>(request).await.map(|found| found.metadata)
}

/// The same; `None` if there is no such object.
pub async fn metadata_opt(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> kube::Result<Option<ObjectMeta>> {
    match metadata(client, resource, namespace, name).await {
        Ok(found) => Ok(Some(found)),
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

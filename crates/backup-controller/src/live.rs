//! Live reads: what is decided on them must not come from a cache that is behind.

use jiff::Timestamp;
use kube::{
    Client, Resource,
    api::{DynamicObject, GetParams},
    core::Request,
    discovery::ApiResource,
};
use operator_kit::{Bounded, ReadError, Unmanaged};
use serde_json::Value;

/// Reads an object from the API server, as deep as anybody asks for its fields; `None` if it is not there.
pub async fn get(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, ReadError> {
    Ok(get_bounded(client, resource, namespace, name).await?.map(|object| object.value))
}

/// The same, for what must know whether that is all of it.
pub async fn get_bounded(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> Result<Option<Bounded>, ReadError> {
    let read_error = |error: kube::Error| ReadError::of(&error, &resource.kind, name);
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let request = Request::new(DynamicObject::url_path(resource, namespace))
        .get(name, &GetParams::default())
        .map_err(|error| read_error(kube::Error::BuildRequest(error)))?;
    match client.request(request).await {
        Ok(Unmanaged(object)) => Ok(Some(object)),
        // Of a group that is not served, the answer is no Status and has no reason.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(read_error(error)),
    }
}

/// A text of an object's metadata; empty if there is none.
pub fn text<'o>(object: &'o Value, field: &str) -> &'o str {
    metadata(object, field).and_then(Value::as_str).unwrap_or_default()
}

/// A time of an object's metadata. The API server takes later ones than can be told here; they are the latest.
pub fn time(object: &Value, field: &str) -> Option<Timestamp> {
    Some(metadata(object, field)?.as_str()?.parse().unwrap_or(Timestamp::MAX))
}

/// A label or an annotation.
pub fn entry<'o>(object: &'o Value, map: &str, key: &str) -> Option<&'o str> {
    metadata(object, map)?.get(key)?.as_str()
}

/// The finalizers of an object.
pub fn finalizers(object: &Value) -> Vec<String> {
    let list = metadata(object, "finalizers").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
}

fn metadata<'o>(object: &'o Value, field: &str) -> Option<&'o Value> {
    object.get("metadata")?.get(field)
}

use std::time::Duration;

use kube::{
    Client, Resource,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::Request,
    discovery::ApiResource,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::{
    WriteCause, WriteError, Written,
    strict::strictly,
    writer::{Built, as_yaml},
};
use crate::{
    object::Named,
    watch::{Bounded, Trimmed},
};

/// Time within which the server has to answer a trial of a creation, for which somebody waits.
const CREATE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time within which it has to answer a trial of an apply: a webhook may take up to 30 s before the server goes on without it.
const APPLY_TIMEOUT: Duration = Duration::from_secs(35);

/// Has the server check the creation of an object, in this namespace if it is not empty. Nothing is stored.
///
/// # Errors
/// Like the creation: [`WriteCause::is_unknown_field`](super::WriteCause::is_unknown_field) tells a field that the
/// server does not know. A server that does not answer within ten seconds leaves it unknown.
pub async fn try_create(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    object: &Value,
) -> Written<()> {
    let mut object = object.clone();
    let named = Named::new(&*resource.kind, object["metadata"]["name"].as_str().unwrap_or_default());
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    object["metadata"]["namespace"] = namespace.into();
    let params = PostParams { dry_run: true, field_manager: None };
    let request = Request::new(DynamicObject::url_path(resource, namespace));
    let built = request.create(&params, serde_json::to_vec(&object).unwrap_or_default());
    let _: Trimmed = answer(client, built, named, CREATE_TIMEOUT).await?;
    Ok(())
}

/// Has the server try an apply to an existing object, as this field manager, and returns the object as it would be stored: its
/// defaults, and the fields of others that the apply would leave. Nothing is stored.
///
/// # Errors
/// Like the apply. A webhook with side effects that does not know dry runs refuses each of them.
pub async fn try_apply(
    client: &Client,
    resource: &ApiResource,
    manager: &str,
    object: &Value,
) -> Written<Value> {
    let text = |field| object["metadata"][field].as_str().unwrap_or_default();
    let (namespace, name) = (Some(text("namespace")).filter(|text| !text.is_empty()), text("name"));
    let params = PatchParams { dry_run: true, ..PatchParams::apply(manager).force() };
    let request = Request::new(DynamicObject::url_path(resource, namespace));
    let built = request.patch(name, &params, &Patch::Apply(object)).map(as_yaml);
    let named = Named::new(&*resource.kind, name);
    let applied: Bounded = answer(client, built, named, APPLY_TIMEOUT).await?;
    Ok(applied.value)
}

async fn answer<T: DeserializeOwned>(
    client: &Client,
    built: Built,
    named: Named,
    limit: Duration,
) -> Written<T> {
    let tried = match built {
        Ok(mut request) => {
            strictly(&mut request);
            let Ok(answer) = timeout(limit, client.request::<T>(request)).await else {
                let message = format!("the API server did not answer within {limit:?}");
                return Err(WriteError { object: named, cause: WriteCause::Unknown { code: 0, message } });
            };
            answer
        }
        Err(error) => Err(kube::Error::BuildRequest(error)),
    };
    tried.map_err(|error| WriteError::of(error, named))
}

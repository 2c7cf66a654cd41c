use std::time::Duration;

use kube::{
    Client, Resource,
    api::{DynamicObject, PostParams},
    core::Request,
    discovery::ApiResource,
};
use serde_json::Value;

use super::strict::strictly;
use crate::{
    object::Named,
    watch::{ApiError, Trimmed, Verb, live::within},
};

/// Time within which the server has to answer a trial, for which somebody waits.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

/// Has the server check the creation of an object, in this namespace if it is not empty. Nothing is stored.
///
/// # Errors
/// Like the creation: [`Cause::UnknownField`](crate::watch::Cause::UnknownField) tells a field that the server does not
/// know. A server that does not answer within ten seconds leaves it unknown.
pub async fn try_create(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    object: &Value,
) -> Result<(), ApiError> {
    let mut object = object.clone();
    let named = Named::new(&*resource.kind, object["metadata"]["name"].as_str().unwrap_or_default());
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    object["metadata"]["namespace"] = namespace.into();
    let params = PostParams { dry_run: true, field_manager: None };
    let request = Request::new(DynamicObject::url_path(resource, namespace));
    let tried = async {
        let body = serde_json::to_vec(&object).unwrap_or_default();
        let mut request = request.create(&params, body).map_err(kube::Error::BuildRequest)?;
        strictly(&mut request);
        within(TRIAL_TIMEOUT, client.request::<Trimmed>(request)).await
    };
    tried.await.map(drop).map_err(|error| ApiError::of(Verb::Write, &error, named))
}

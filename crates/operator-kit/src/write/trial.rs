use std::time::Duration;

use kube::{
    Client, Resource,
    api::{DynamicObject, PostParams},
    core::Request,
    discovery::ApiResource,
};
use serde_json::Value;
use tokio::time::timeout;

use super::{WriteCause, WriteError, Written, strict::strictly};
use crate::{object::Named, watch::Trimmed};

/// Time within which the server has to answer a trial, for which somebody waits.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

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
    let tried = match built {
        Ok(mut request) => {
            strictly(&mut request);
            let Ok(answer) = timeout(TRIAL_TIMEOUT, client.request::<Trimmed>(request)).await else {
                let message = format!("the API server did not answer within {TRIAL_TIMEOUT:?}");
                return Err(WriteError { object: named, cause: WriteCause::Unknown { code: 0, message } });
            };
            answer
        }
        Err(error) => Err(kube::Error::BuildRequest(error)),
    };
    tried.map(|_| ()).map_err(|error| WriteError::of(error, named))
}

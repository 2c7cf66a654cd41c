//! Dry runs.

use std::time::Duration;

use kube::{Client, api::PostParams, discovery::ApiResource};
use operator_watch::{Live, Trimmed, WatchedResource};
use serde_json::Value;

use super::{Writer, Written, send::strictly, target::Target};

/// Time within which the server has to answer a trial, for which somebody waits.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(10);

impl Writer {
    /// Has the server check the creation of an object, in this namespace if it is not empty. Nothing is stored.
    ///
    /// # Errors
    /// Like the creation: [`Cause::UnknownField`](operator_watch::Cause::UnknownField) tells a field that the server does not
    /// know. A server that does not answer within ten seconds leaves it unknown.
    pub async fn dry_run_create(
        client: &Client,
        resource: &ApiResource,
        namespace: &str,
        object: &Value,
    ) -> Written<()> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = Some(namespace).filter(|namespace| !namespace.is_empty()).into();
        let kind = WatchedResource::unwatched(resource.clone());
        let target = Target::of(&kind, &object);
        let params = PostParams { dry_run: true, field_manager: None };
        let tried = async {
            let body = serde_json::to_vec(&object).unwrap_or_default();
            let mut request = target.request().create(&params, body).map_err(kube::Error::BuildRequest)?;
            strictly(&mut request);
            Live::within(TRIAL_TIMEOUT, client.request::<Trimmed>(request)).await
        };
        tried.await.map(drop).map_err(|error| target.error(&error))
    }
}

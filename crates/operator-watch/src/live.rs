//! Live reads, for decisions that must not rely on a stale cache.

use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Client, Resource,
    api::{DynamicObject, GetParams},
    core::{Request, request},
    discovery::ApiResource,
};
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::time::timeout;

use crate::{ApiError, Cause, ObjectId, Pruned, PrunedObject, Verb};

/// Time within which the API server has to answer a request: a webhook may take up to 30 s before the server goes on
/// without it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(35);

/// The failure of a request that took longer than this.
#[derive(Debug, Error)]
#[error("the API server did not answer within {} s", .0.as_secs())]
pub struct Silence(pub Duration);

/// Reads that bypass the caches.
pub struct Live;

impl Live {
    /// Gives up a request that is not answered in time. Nothing else ends a pass soon.
    pub fn in_time<T>(
        request: impl Future<Output = kube::Result<T>>,
    ) -> impl Future<Output = kube::Result<T>> {
        Self::within(REQUEST_TIMEOUT, request)
    }

    /// Gives up a request that is not answered within this time. An `async fn` would hold the request twice.
    pub fn within<T>(
        limit: Duration,
        request: impl Future<Output = kube::Result<T>>,
    ) -> impl Future<Output = kube::Result<T>> {
        let silent = move |_| Err(kube::Error::Service(Silence(limit).into()));
        timeout(limit, request).map(move |answered| answered.unwrap_or_else(silent))
    }

    /// Refuses what cannot be the name of an object. Any text may stand in a reference, and the client puts names into URLs as
    /// they are: `?watch=true` would be a request without an end.
    pub fn check_names(namespace: Option<&str>, name: &str) -> kube::Result<()> {
        match namespace.into_iter().chain([name]).find(|name| !ObjectId::is_name(name)) {
            None => Ok(()),
            Some(name) => {
                let error = request::Error::Validation(format!("{name:?} is not an object name"));
                Err(kube::Error::BuildRequest(error))
            }
        }
    }

    /// The metadata of an object, without `managedFields`; `None` if there is no such object. `namespace` is empty for a
    /// cluster-scoped one.
    ///
    /// # Errors
    /// [`Cause::KindNotServed`] if the server does not know the path. What is no name is refused without a request.
    pub async fn metadata(
        client: &Client,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<ObjectMeta>, ApiError> {
        let found: Option<Pruned> = read(client, resource, namespace, name, Request::get_metadata).await?;
        Ok(found.map(|found| found.metadata))
    }

    /// An object, without `managedFields`; `None` if there is no such object. `namespace` is empty for a cluster-scoped one.
    ///
    /// # Errors
    /// [`Cause::KindNotServed`] if the server does not know the path. What is no name is refused without a request.
    pub async fn object(
        client: &Client,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<PrunedObject>, ApiError> {
        read(client, resource, namespace, name, Request::get).await
    }
}

type Built = Result<http::Request<Vec<u8>>, request::Error>;

async fn read<T: DeserializeOwned>(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
    build: fn(&Request, &str, &GetParams) -> Built,
) -> Result<Option<T>, ApiError> {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    let found = async {
        Live::check_names(namespace, name)?;
        let request = Request::new(DynamicObject::url_path(resource, namespace));
        let request = build(&request, name, &GetParams::default()).map_err(kube::Error::BuildRequest)?;
        Live::in_time(client.request(request)).await
    };
    match found.await.map_err(|error| ApiError::of(Verb::Read, &error, (&*resource.kind, name))) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.cause == Cause::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Answer, answering};

    #[tokio::test(start_paused = true)]
    async fn a_read_without_an_answer_ends_in_time_and_says_so() {
        let (client, _log) = answering(|_| Answer::Silence);
        let maps = ApiResource::erase::<ConfigMap>(&());
        let began = Instant::now();
        let failures = [
            Live::metadata(&client, &maps, "shop", "web").await.unwrap_err().to_string(),
            Live::object(&client, &maps, "shop", "web").await.unwrap_err().to_string(),
        ];
        for text in failures {
            assert!(text.contains("did not answer within 35 s"), "{text}");
        }
        assert_eq!(began.elapsed().as_secs(), 2 * REQUEST_TIMEOUT.as_secs());
    }

    #[tokio::test]
    async fn what_is_no_name_is_never_asked_for() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        let service = move |_: Request<Body>| {
            count.fetch_add(1, Ordering::Relaxed);
            async { anyhow::Ok(Response::new(Body::from(br#"{"metadata": {"name": "web"}}"#.to_vec()))) }
        };
        let client = Client::new(tower::service_fn(service), "default");
        let maps = ApiResource::erase::<ConfigMap>(&());
        for (namespace, name) in [("shop", "?watch=true"), ("shop", ""), ("shop/configmaps", "web")] {
            let error = Live::metadata(&client, &maps, namespace, name).await.unwrap_err();
            assert!(error.to_string().contains("is not an object name"), "{namespace} {name}: {error}");
            assert_eq!(Live::object(&client, &maps, namespace, name).await.unwrap_err(), error);
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for namespace in ["shop", ""] {
            assert!(Live::metadata(&client, &maps, namespace, "web").await.is_ok());
        }
    }
}

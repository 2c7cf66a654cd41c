//! Live reads, for decisions that must not rely on a stale cache.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client, Resource,
    api::{DynamicObject, GetParams, ListParams},
    core::{Request, request},
    discovery::ApiResource,
};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::{
    render::is_object_name,
    watch::{Trimmed, TrimmedObject, lenient::Lenient, stream},
};

/// Time within which the API server has to answer a request: a webhook may take up to 30 s before the server goes on
/// without it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(35);

/// Gives up a request that is not answered in time. Nothing else ends a pass soon.
pub async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    timeout(REQUEST_TIMEOUT, request).await.unwrap_or_else(|_| {
        let silent = format!("the API server did not answer within {} s", REQUEST_TIMEOUT.as_secs());
        Err(kube::Error::Service(silent.into()))
    })
}

/// Refuses what cannot be the name of an object. Any text may stand in a reference, and the client puts names into URLs as
/// they are: `?watch=true` would be a request without an end.
pub fn check_names(namespace: Option<&str>, name: &str) -> kube::Result<()> {
    match namespace.into_iter().chain([name]).find(|name| !is_object_name(name)) {
        None => Ok(()),
        Some(name) => {
            let error = request::Error::Validation(format!("{name:?} is not an object name"));
            Err(kube::Error::BuildRequest(error))
        }
    }
}

/// The metadata of an object, without `managedFields`. `namespace` is empty for a cluster-wide one. What is no name is
/// refused without a request.
pub async fn metadata(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> kube::Result<ObjectMeta> {
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    check_names(namespace, name)?;
    let request = Request::new(DynamicObject::url_path(resource, namespace))
        .get_metadata(name, &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    in_time(client.request::<Trimmed>(request)).await.map(|found| found.metadata)
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

/// An object, without `managedFields`; `None` if there is no such object. `namespace` is empty for a cluster-wide one.
pub async fn object(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> kube::Result<Option<TrimmedObject>> {
    let client = client.clone();
    let api: Api<TrimmedObject> = match namespace {
        "" => Api::all_with(client, resource),
        namespace => Api::namespaced_with(client, namespace, resource),
    };
    in_time(api.get_opt(name)).await
}

/// One page of the objects with these labels, and the token of the next one. An object that cannot be read is left out.
pub async fn page<K>(
    api: &Api<K>,
    labels: &str,
    limit: u32,
    token: Option<String>,
) -> kube::Result<(Vec<K>, Option<String>)>
where
    K: Resource + Clone + DeserializeOwned + 'static,
{
    let params = ListParams { continue_token: token, ..ListParams::default().labels(labels).limit(limit) };
    let request = Request::new(api.resource_url()).list(&params).map_err(kube::Error::BuildRequest)?;
    let (client, mut objects) = (api.clone().into_client(), Vec::new());
    let list = stream::page(&client, request, |object: Lenient<K>| objects.extend(object.0));
    let list = in_time(list).await?;
    Ok((objects, list.continue_.filter(|token| !token.is_empty())))
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use axum::http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;
    use tokio::time::Instant;

    use super::*;
    use crate::testing::{Answer, answering};

    #[tokio::test(start_paused = true)]
    async fn a_read_without_an_answer_ends_in_time_and_says_so() {
        let (client, _log) = answering(|_| Answer::Silence);
        let (maps, api) =
            (ApiResource::erase::<ConfigMap>(&()), Api::<ConfigMap>::default_namespaced(client.clone()));
        let began = Instant::now();
        let failures = [
            metadata(&client, &maps, "shop", "web").await.err(),
            object(&client, &maps, "shop", "web").await.err(),
            page(&api, "", 1, None).await.err(),
        ];
        for failure in failures {
            let text = failure.unwrap().to_string();
            assert!(text.contains("did not answer within 35 s"), "{text}");
        }
        assert_eq!(began.elapsed().as_secs(), 3 * REQUEST_TIMEOUT.as_secs());
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
            let found = metadata_opt(&client, &maps, namespace, name).await;
            assert!(matches!(found, Err(kube::Error::BuildRequest(_))), "{namespace} {name}: {found:?}");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        for namespace in ["shop", ""] {
            assert!(metadata(&client, &maps, namespace, "web").await.is_ok());
        }
    }
}

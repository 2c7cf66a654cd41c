//! Live reads, for decisions that must not rely on a stale cache.

use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::{Timestamp, fmt::rfc2822};
use kube::{
    Client, Resource,
    api::{DynamicObject, GetParams},
    client::Body,
    core::{Request, response::Status},
    discovery::ApiResource,
};
use operator_watch::{ApiError, Cause, Live, Pruned, Verb};
use serde_json::{Value, json};

/// The API server's answer to a read.
pub struct Answer {
    /// The object, or its metadata alone; `None` if it does not exist.
    pub object: Option<Value>,
    /// Why its metadata is all that can be read.
    pub unreadable: Option<ApiError>,
    /// Whether the server knows the kind in this version.
    pub is_served: bool,
    /// The time of the answer by the server's clock, because its times are not compared with another clock.
    pub at: Timestamp,
}

impl Answer {
    /// The whole object; `None` if it does not exist.
    pub fn whole(self) -> Result<Option<Value>, ApiError> {
        self.unreadable.map_or(Ok(self.object), Err)
    }
}

/// Reads an object from the API server.
pub async fn read(
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> Result<Answer, ApiError> {
    let answer = read_up_to(usize::MAX, client, resource, namespace, name).await?;
    let object = (&*resource.kind, name);
    answer.ok_or_else(|| ApiError::new(Verb::Read, object, Cause::Failed, "the response is too large"))
}

/// Reads an object from the API server; `None` if the response has more than `limit` bytes, of which no more are kept.
pub async fn read_up_to(
    limit: usize,
    client: &Client,
    resource: &ApiResource,
    namespace: &str,
    name: &str,
) -> Result<Option<Answer>, ApiError> {
    let named = (&*resource.kind, name);
    let read_error = |error: kube::Error| ApiError::of(Verb::Read, &error, named);
    let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
    Live::check_names(namespace, name).map_err(read_error)?;
    let request = Request::new(DynamicObject::url_path(resource, namespace))
        .get(name, &GetParams::default())
        .map_err(|error| read_error(kube::Error::BuildRequest(error)))?;
    let answer = async {
        let (head, body) = client.send(request.map(Body::from)).await?.into_parts();
        match Limited::new(body, limit).collect().await {
            Ok(body) => Ok((head, Some(body.to_bytes()))),
            Err(error) if error.is::<LengthLimitError>() => Ok((head, None)),
            Err(error) => Err(kube::Error::Service(error)),
        }
    };
    let (head, Some(body)) = Live::in_time(answer).await.map_err(read_error)? else { return Ok(None) };
    let mut unreadable = None;
    let (object, is_served) = match head.status.as_u16() {
        200..300 => match serde_json::from_slice(&body) {
            Ok(object) => (Some(object), true),
            Err(error) => {
                // An object may be nested deeper than anything but its metadata can be decoded.
                let Ok(Pruned { metadata }) = serde_json::from_slice(&body) else {
                    return Err(read_error(kube::Error::SerdeError(error)));
                };
                let problem = error.to_string();
                unreadable = Some(ApiError::new(Verb::Read, named, Cause::Unreadable, problem));
                (Some(json!({"metadata": metadata})), true)
            }
        },
        code => match read_error(refusal(code, &body)) {
            error if error.cause == Cause::NotFound => (None, true),
            error if error.cause == Cause::KindNotServed => (None, false),
            error => return Err(error),
        },
    };
    let date = head.headers.get("date").and_then(|date| date.to_str().ok());
    let at = date.and_then(|date| rfc2822::parse(date).ok()).ok_or_else(|| {
        let lack = "the response has no Date header, so that deadlines cannot be determined; have proxies pass the header on";
        ApiError::new(Verb::Read, named, Cause::Failed, lack)
    })?;
    Ok(Some(Answer { object, unreadable, is_served, at: at.timestamp() }))
}

/// The error in an answer, which need not be a Status.
fn refusal(code: u16, body: &[u8]) -> kube::Error {
    let status = serde_json::from_slice::<Status>(body)
        .unwrap_or_else(|_| Status::failure(String::from_utf8_lossy(body).trim(), "Unknown"));
    kube::Error::Api(status.with_code(code).boxed())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use operator_watch::Failure;

    use super::*;
    use crate::mock_server::{DATE, server};

    async fn read_web(date: Option<&'static str>, code: u16, body: Value) -> Result<Answer, ApiError> {
        let client = server(date, move |_| (code, body.clone()));
        read(&client, &ApiResource::erase::<ConfigMap>(&()), "shop", "web").await
    }

    #[tokio::test]
    async fn the_time_is_the_servers_own() {
        let noon = "2026-06-01T12:00:00Z".parse().unwrap();
        let found = read_web(Some(DATE), 200, json!({"metadata": {"name": "web"}})).await.unwrap();
        assert_eq!((&found.object.unwrap()["metadata"]["name"], found.at), (&json!("web"), noon));
        let none = read_web(Some(DATE), 404, json!("404 page not found")).await.unwrap();
        assert_eq!((none.object, none.is_served, none.at), (None, false, noon));
        let status = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": "web"}});
        let none = read_web(Some(DATE), 404, status).await.unwrap();
        assert_eq!((none.object, none.is_served), (None, true));
    }

    #[tokio::test]
    async fn of_an_object_that_is_nested_too_deep_only_the_metadata_is_read() {
        let deep = (0..300).fold(json!(1), |inner, _| json!([inner]));
        let metadata = json!({
            "name": "web", "uid": "u", "deletionTimestamp": "2026-06-01T12:00:00Z",
            "finalizers": ["catena.dev/backup"], "annotations": {"catena.dev/force-release": "why"},
        });
        let answer = read_web(Some(DATE), 200, json!({"metadata": metadata, "spec": deep})).await.unwrap();
        assert_eq!((&answer.object, answer.is_served), (&Some(json!({"metadata": metadata})), true));
        let error = answer.whole().unwrap_err();
        let failure = Failure::from(error);
        assert_eq!((failure.reason, failure.is_stalled), ("Unreadable", true));
    }

    #[tokio::test]
    async fn without_a_time_there_is_no_answer() {
        let error = read_web(None, 200, json!({})).await.err().unwrap();
        assert!(error.to_string().contains("no Date header"), "{error}");
    }

    #[tokio::test]
    async fn what_the_server_refuses_is_told_in_its_words() {
        let status = json!({
            "kind": "Status", "status": "Failure", "message": "may not", "reason": "Forbidden", "code": 403,
        });
        let error = read_web(Some(DATE), 403, status).await.err().unwrap();
        assert_eq!(error.reason(), "Forbidden");
        assert!(error.to_string().contains("may not"), "{error}");
        let error = read_web(Some(DATE), 502, json!("no gateway")).await.err().unwrap();
        assert_eq!(error.reason(), "LookUpFailed");
        assert!(error.to_string().contains("no gateway"), "{error}");
    }
}

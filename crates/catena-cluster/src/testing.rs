//! Servers for tests, and what they were asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, Request, Response, StatusCode};
use kube::{Client, client::Body, core::discovery::v2::APIGroupDiscovery};
use serde_json::{Value, json};
use tower::service_fn;

use super::{Cluster, Kinds};

/// A server with some kinds and no objects, and the requests that it was sent.
#[must_use]
pub fn cluster() -> (Cluster, Requests) {
    serving(|_| None)
}

/// The requests that a server was sent.
pub type Requests = Arc<Mutex<Vec<String>>>;
/// The answer of a server.
pub type Answer = (StatusCode, Value);

/// A refusal.
#[must_use]
pub fn status(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    (StatusCode::from_u16(code).unwrap_or_default(), status)
}

/// A server with some kinds that answers these paths, and the requests that it was sent.
#[must_use]
pub fn serving(answer: impl Fn(&str) -> Option<Value> + Send + 'static) -> (Cluster, Requests) {
    answering(move |_, uri, _| match answer(uri) {
        Some(answer) => (StatusCode::OK, answer),
        None => status(404, "NotFound", "not found"),
    })
}

/// A server with some kinds that answers method, URI and body, and the requests that it was sent.
#[must_use]
pub fn answering(
    answer: impl FnMut(&Method, &str, &Value) -> Answer + Send + 'static,
) -> (Cluster, Requests) {
    let requests = Requests::default();
    let (log, answer) = (requests.clone(), Arc::new(Mutex::new(answer)));
    let service = service_fn(move |request: Request<Body>| {
        let (log, answer) = (log.clone(), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let uri = parts.uri.to_string();
            let body = body.collect_bytes().await?;
            locked(&log).push(format!("{} {uri}", parts.method));
            let body = serde_json::from_slice(&body).unwrap_or_default();
            let (code, mut answer) = (locked(&answer))(&parts.method, &uri, &body);
            if code == StatusCode::NOT_FOUND && answer.is_object() && answer["details"].is_null() {
                answer["details"] = json!({"name": parts.uri.path().rsplit('/').next()});
            }
            // As it stands, because an event of a watch has its type first.
            let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
            let body = Body::from(text.into_bytes());
            let mut response = Response::new(body);
            *response.status_mut() = code;
            Ok::<_, kube::Error>(response)
        }
    });
    (Cluster { client: Client::new(service, "shop"), namespace: "shop".into(), kinds: kinds() }, requests)
}

fn locked<T: ?Sized>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A server with some kinds.
#[must_use]
pub fn kinds() -> Kinds {
    let resource = |plural: &str, kind: &str, short: &str| {
        json!({
            "resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced",
            "singularResource": kind.to_lowercase(), "verbs": ["get", "list", "create"], "shortNames": short.split(',').collect::<Vec<_>>(),
        })
    };
    let group = |name: &str, version: &str, resources: &[Value]| -> APIGroupDiscovery {
        let group =
            json!({"metadata": {"name": name}, "versions": [{"version": version, "resources": resources}]});
        serde_json::from_value(group).unwrap_or_default()
    };
    let mut definitions = resource("customresourcedefinitions", "CustomResourceDefinition", "crd");
    let mut namespaces = resource("namespaces", "Namespace", "ns");
    let mut volumes = resource("persistentvolumes", "PersistentVolume", "pv");
    for wide in [&mut definitions, &mut namespaces, &mut volumes] {
        wide["scope"] = "Cluster".into();
    }
    let groups = [
        group("apiextensions.k8s.io", "v1", &[definitions]),
        group(
            "",
            "v1",
            &[
                resource("pods", "Pod", "po"),
                resource("secrets", "Secret", ""),
                resource("services", "Service", "svc"),
                resource("persistentvolumeclaims", "PersistentVolumeClaim", "pvc"),
                namespaces,
                volumes,
            ],
        ),
        group("acme.dev", "v1", &[resource("reindexes", "Reindex", "")]),
        group(
            "apps",
            "v1",
            &[
                resource("deployments", "Deployment", "deploy"),
                resource("statefulsets", "StatefulSet", "sts"),
                resource("controllerrevisions", "ControllerRevision", ""),
            ],
        ),
        group(
            "catena.dev",
            "v1alpha1",
            &[
                resource("basicdeployments", "BasicDeployment", "bd,bdep"),
                resource("basicreplicasets", "BasicReplicaSet", "brs"),
                resource("basicdeploymentrestarts", "BasicDeploymentRestart", "bdr"),
            ],
        ),
    ];
    Kinds::of_groups(&groups)
}

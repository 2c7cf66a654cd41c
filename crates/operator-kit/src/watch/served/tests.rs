use std::{
    future::pending,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use axum::{
    Router,
    http::{Request, Response, StatusCode},
    routing::get,
};
use kube::{Config, client::Body, core::GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::service_fn;

use super::*;
use crate::report::health::{Need, WatchFailure};

fn resources(version: &str, plurals: &[&str], is_namespaced: bool) -> String {
    let resource = |plural: &&str| json!({"name": plural, "singularName": "", "namespaced": is_namespaced, "kind": "Move", "verbs": ["list"]});
    let resources: Vec<_> = plurals.iter().map(resource).collect();
    json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("x.dev/{version}"),
        "resources": resources,
    })
    .to_string()
}

/// A cluster that serves `moves` in v2 and v3, v3 being preferred, and something else in v1.
async fn cluster() -> Client {
    let version = |name: &str| json!({"groupVersion": format!("x.dev/{name}"), "version": name});
    let groups = json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{
        "name": "x.dev", "versions": [version("v3"), version("v2"), version("v1")],
        "preferredVersion": version("v3"),
    }]});
    let unknown = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
        "message": "the server could not find the requested resource",
    });
    let api = Router::new()
        .route("/apis", get(async move || groups.to_string()))
        .route("/apis/x.dev/v1", get(async || resources("v1", &["others"], true)))
        .route("/apis/x.dev/v2", get(async || resources("v2", &["moves"], true)))
        .route("/apis/x.dev/v3", get(async || resources("v3", &["moves", "moves/status"], false)))
        .fallback(async move || (StatusCode::NOT_FOUND, unknown.to_string()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async { axum::serve(listener, api).await });
    Client::try_from(Config::new(url.parse().unwrap())).unwrap()
}

#[tokio::test]
async fn the_wanted_version_is_taken_if_it_is_served_and_else_the_preferred_one() {
    let served = ServedKinds::new(cluster().await);
    let kind = |group: &str, version: &str| {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, "Move"), "moves")
    };
    for (wanted, expected, is_namespaced) in [("v2", "v2", true), ("v1", "v3", false), ("v0", "v3", false)] {
        let found = served.find(&kind("x.dev", wanted)).await.unwrap();
        let expected = ServedKind { resource: kind("x.dev", expected), is_namespaced };
        assert_eq!(found, Some(expected), "{wanted}");
    }
    assert_eq!(served.find(&kind("y.dev", "v1")).await, Ok(None));
    let another = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("x.dev", "v1", "Hop"), "hops");
    assert_eq!(served.find(&another).await, Ok(None));
}

fn moves(version: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("x.dev", version, "Move"), "moves")
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_gives_no_answer_is_not_waited_for_and_not_asked_by_everybody() {
    let requests = Arc::new(AtomicU32::new(0));
    let counted = requests.clone();
    let silent = service_fn(move |_: Request<Body>| {
        counted.fetch_add(1, Relaxed);
        pending::<Result<Response<Body>, std::convert::Infallible>>()
    });
    let served = ServedKinds::new(Client::new(silent, "default"));
    let ask = async || {
        let answer = timeout(Duration::from_secs(60), served.find_again(&moves("v1"))).await;
        (answer.expect("it is waited for").is_err(), requests.load(Relaxed))
    };
    assert_eq!(ask().await, (true, 1));
    assert_eq!(ask().await, (true, 1), "the failure is known");
    sleep(UNSERVED_INTERVAL).await;
    assert_eq!(ask().await, (true, 2));
}

/// A cluster that serves `moves` in v2, and in v1 while this is set.
fn changing_cluster(serves_v1: Arc<AtomicBool>) -> Client {
    let answer = move |path: &str| -> Option<Value> {
        let versions: &[&str] = if serves_v1.load(Relaxed) { &["v2", "v1"] } else { &["v2"] };
        let version = |name: &&str| json!({"groupVersion": format!("x.dev/{name}"), "version": name});
        if path == "/apis" {
            return Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [{
                "name": "x.dev", "versions": versions.iter().map(version).collect::<Vec<_>>(),
                "preferredVersion": version(&"v2"),
            }]}));
        }
        let asked = path.strip_prefix("/apis/x.dev/").filter(|asked| versions.contains(asked))?;
        serde_json::from_str(&resources(asked, &["moves"], true)).ok()
    };
    let service = service_fn(move |request: Request<Body>| {
        let found = answer(request.uri().path());
        let code = if found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
        let body = found.unwrap_or_else(|| json!({"kind": "Status", "status": "Failure", "code": 404}));
        let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
        std::future::ready(response)
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn the_wanted_version_is_watched_again_once_it_is_served_and_counts_as_not_served_until_then() {
    let serves_v1 = Arc::new(AtomicBool::new(false));
    let served = ServedKinds::new(changing_cluster(serves_v1.clone()));
    let (health, metrics) = (Arc::<Health>::default(), Arc::<Metrics>::default());
    let kind = WatchedKind::new("moves", moves("v1"), "", |_| ());
    let of_v1 = health.watch(&kind.for_people(), Need::Never);
    of_v1.failed(WatchFailure::NotServed("no v1".into()));
    let (_wanted, wanted) = channel(vec![kind.clone()]);
    let mut followed = follow(served, health.clone(), metrics.clone(), wanted);
    let mut watched = async || {
        let changed = timeout(2 * ANSWER_LIFETIME, followed.changed()).await;
        changed.expect("it stays in the version that is watched").unwrap();
        followed.borrow_and_update()[0].resource().version.clone()
    };
    let not_served = || metrics.encode().unwrap().contains("catena_kinds_not_served 1");

    assert_eq!(watched().await, "v2");
    of_v1.ended();
    health.watch(&kind.for_people(), Need::Never).synced();
    sleep(3 * WATCH_CHECK_INTERVAL).await;
    assert!(not_served(), "{}", metrics.encode().unwrap());
    serves_v1.store(true, Relaxed);
    assert_eq!(watched().await, "v1");
    sleep(3 * WATCH_CHECK_INTERVAL).await;
    assert!(!not_served());
}

use std::{
    convert::Infallible,
    future::pending,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use axum::{
    Router,
    http::{Request, Response, StatusCode},
    routing::get,
};
use futures::stream;
use kube::{Config, client::Body, core::GroupVersionKind};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tower::service_fn;

use super::*;
use crate::{PrunedObject, Watch, Watches};

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
    let served = Discovery::new(cluster().await);
    let kind = |group: &str, version: &str| {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, "Move"), "moves")
    };
    for (wanted, expected, scope) in
        [("v2", "v2", Scope::Namespaced), ("v1", "v3", Scope::Cluster), ("v0", "v3", Scope::Cluster)]
    {
        let found = served.find(&kind("x.dev", wanted)).await.unwrap();
        assert_eq!(found, Some((kind("x.dev", expected), scope)), "{wanted}");
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
        pending::<Result<Response<Body>, Infallible>>()
    });
    let served = Discovery::new(Client::new(silent, "default"));
    let ask = async || {
        let answer = timeout(Duration::from_secs(60), served.find_again(&moves("v1"))).await;
        (answer.expect("it is waited for").is_err(), requests.load(Relaxed))
    };
    assert_eq!(ask().await, (true, 1));
    assert_eq!(ask().await, (true, 1), "the failure is known");
    sleep(UNSERVED_INTERVAL).await;
    assert_eq!(tokio::join!(ask(), ask()), ((true, 2), (true, 2)), "one asks for both");
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
        let asked = path.strip_prefix("/apis/x.dev/")?;
        if let Some(asked) = asked.strip_suffix("/moves").filter(|asked| versions.contains(asked)) {
            let item = json!({"metadata": {"name": asked, "uid": "u"}});
            return Some(json!({"metadata": {"resourceVersion": "5"}, "items": [item]}));
        }
        let asked = versions.contains(&asked).then_some(asked)?;
        serde_json::from_str(&resources(asked, &["moves"], true)).ok()
    };
    let service = service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let found = answer(request.uri().path());
        let code = if found.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
        let body = match found {
            Some(_) if is_watch => {
                axum::body::Body::from_stream(stream::pending::<Result<String, Infallible>>())
            }
            Some(found) => found.to_string().into(),
            None => json!({"kind": "Status", "status": "Failure", "code": 404}).to_string().into(),
        };
        std::future::ready(Response::builder().status(code).body(body))
    });
    Client::new(service, "default")
}

#[tokio::test(start_paused = true)]
async fn the_wanted_version_is_watched_again_once_it_is_served_and_counts_as_not_served_until_then() {
    let serves_v1 = Arc::new(AtomicBool::new(true));
    let client = changing_cluster(serves_v1.clone());
    let (watches, served) = (Watches::default(), Discovery::new(client.clone()));
    let listed = Arc::<Mutex<Vec<String>>>::default();
    let names = listed.clone();
    let watch = Watch::all(&client, &moves("v1")).metadata_only().in_any_version(&served);
    let watch = watches.watch_changes(watch, move |object: &PrunedObject| {
        names.lock().extend(object.metadata.name.clone());
    });
    let version = || watch.substitute().map_or_else(|| "v1".to_owned(), |other| other.version.clone());
    let until = async |wanted: &str, limit: Duration| {
        let look = async {
            while watch.problem().is_some() || version() != wanted {
                sleep(Duration::from_millis(100)).await;
            }
        };
        timeout(limit, look).await.unwrap_or_else(|_| panic!("{wanted} is not watched"));
    };

    until("v1", Duration::from_secs(1)).await;
    assert_eq!(watches.unserved(), 0);
    serves_v1.store(false, Relaxed);
    until("v2", Duration::from_secs(100)).await;
    sleep(ANSWER_LIFETIME).await;
    assert_eq!((watch.problem(), watches.unserved()), (None, 1));
    serves_v1.store(true, Relaxed);
    until("v1", 2 * ANSWER_LIFETIME).await;
    assert_eq!(watches.unserved(), 0);
    assert_eq!(*listed.lock(), ["v1", "v2", "v1"]);
}

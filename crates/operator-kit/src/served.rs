//! In which version the cluster serves a kind, and whether in namespaces: asked of the cluster, so that a version which is
//! not served any more stops nothing.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::{
    Client,
    core::GroupVersion,
    discovery::{self, ApiGroup, ApiResource, Scope},
    error::DiscoveryError,
};
use tokio::{
    select,
    sync::watch::{Receiver, channel},
    time::{Instant, sleep},
};

use crate::{ReadError, WatchedKind, health::Health, metrics::Metrics};

/// How long an answer is relied on while nothing speaks against it.
const RELIED_ON: Duration = Duration::from_secs(300);
/// How long it is relied on although a request was answered as for a kind that is not served.
const DOUBTED: Duration = Duration::from_secs(5);
/// How long many objects share the answer that their kind is not served.
const SHARED: Duration = Duration::from_secs(1);
/// How often the cluster is asked for a kind that it does not serve while only its watch wants to know.
const UNSERVED: Duration = Duration::from_secs(30);
/// How often watches are looked at whose kind may not be served any more. No request comes from it.
const LOOK: Duration = Duration::from_secs(1);

/// A kind as the cluster serves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedKind {
    /// The kind, in a version that is served.
    pub resource: ApiResource,
    /// Whether it lives in namespaces.
    pub is_namespaced: bool,
}

/// Asks the cluster how it serves kinds, and remembers the answers for a while.
#[derive(Clone)]
pub struct ServedKinds {
    client: Client,
    known: Arc<Mutex<HashMap<ApiResource, Answer>>>,
}

#[derive(Clone)]
struct Answer {
    kind: Option<ServedKind>,
    since: Instant,
}

impl ServedKinds {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    /// A kind in the wanted version if that is served, else in the preferred one; `None` when it is served in none.
    pub async fn find(&self, wanted: &ApiResource) -> Result<Option<ServedKind>, ReadError> {
        self.answer(wanted, RELIED_ON, SHARED).await
    }

    /// The same, after a request was answered as for a kind that is not served.
    pub async fn find_again(&self, wanted: &ApiResource) -> Result<Option<ServedKind>, ReadError> {
        self.answer(wanted, DOUBTED, UNSERVED).await
    }

    /// An answer that is not older than this, by whether the kind is served.
    async fn answer(
        &self,
        wanted: &ApiResource,
        if_served: Duration,
        if_not: Duration,
    ) -> Result<Option<ServedKind>, ReadError> {
        if let Some(Answer { kind, since }) = self.known().get(wanted)
            && since.elapsed() < if kind.is_some() { if_served } else { if_not }
        {
            return Ok(kind.clone());
        }
        let kind = ask(&self.client, wanted)
            .await
            .map_err(|error| ReadError::of(&error, "the API group", &wanted.group))?;
        self.known().insert(wanted.clone(), Answer { kind: kind.clone(), since: Instant::now() });
        Ok(kind)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ApiResource, Answer>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(client: &Client, wanted: &ApiResource) -> kube::Result<Option<ServedKind>> {
    let version = GroupVersion::gv(&wanted.group, &wanted.version);
    let group = present(discovery::pinned_group(client, &version).await)?;
    if let Some(found) = group.and_then(|group| in_version(&group, &wanted.version, wanted)) {
        return Ok(Some(found));
    }
    let Some(group) = present(discovery::group(client, &wanted.group).await)? else { return Ok(None) };
    let mut versions = group.preferred_version().into_iter().chain(group.versions());
    Ok(versions.find_map(|version| in_version(&group, version, wanted)))
}

/// `None` for what the cluster does not have.
fn present(group: kube::Result<ApiGroup>) -> kube::Result<Option<ApiGroup>> {
    match group {
        Ok(group) => Ok(Some(group)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(
            DiscoveryError::MissingApiGroup(_) | DiscoveryError::EmptyApiGroup(_),
        )) => Ok(None),
        Err(error) => Err(error),
    }
}

fn in_version(group: &ApiGroup, version: &str, wanted: &ApiResource) -> Option<ServedKind> {
    let is_wanted = |found: &ApiResource| (&found.plural, &found.kind) == (&wanted.plural, &wanted.kind);
    let found = group.versioned_resources(version).into_iter().find(|(found, _)| is_wanted(found));
    found.map(|(resource, capabilities)| ServedKind {
        resource,
        is_namespaced: capabilities.scope == Scope::Namespaced,
    })
}

/// The kinds that are wanted, in versions that the cluster serves: another than the wanted one only while a watch finds
/// that this is not served.
pub(crate) fn follow<R: 'static>(
    served: ServedKinds,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    mut wanted: Receiver<Vec<WatchedKind<R>>>,
) -> Receiver<Vec<WatchedKind<R>>> {
    let (sender, receiver) = channel(wanted.borrow_and_update().clone());
    tokio::spawn(async move {
        let mut others = HashMap::new();
        loop {
            select! {
                changed = wanted.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
                () = sleep(LOOK) => {}
            }
            let mut kinds = wanted.borrow_and_update().clone();
            let unserved = kinds.iter().filter(|kind| health.is_unserved(&kind.for_people()));
            let unserved: Vec<ApiResource> = unserved.map(|kind| kind.resource().as_ref().clone()).collect();
            metrics.unserved(unserved.len());
            for resource in unserved {
                // Its watch tells why it fails.
                if let Ok(Some(found)) = served.find_again(&resource).await {
                    choose(&mut others, resource, found.resource);
                }
            }
            for kind in &mut kinds {
                if let Some(other) = others.get(kind.resource().as_ref()) {
                    *kind = kind.clone().served_as(other.clone());
                }
            }
            sender.send_if_modified(|before| {
                let is_same = before.len() == kinds.len()
                    && before.iter().zip(&kinds).all(|(before, kind)| before.is_same(kind));
                *before = kinds;
                !is_same
            });
        }
    });
    receiver
}

fn choose(others: &mut HashMap<ApiResource, ApiResource>, wanted: ApiResource, found: ApiResource) {
    if wanted == found {
        others.remove(&wanted);
    } else if others.get(&wanted) != Some(&found) {
        tracing::warn!(
            kind = wanted.kind,
            "{} is not served (any more), so that {} is used; name a version in the settings that is served",
            wanted.api_version,
            found.api_version
        );
        others.insert(wanted, found);
    }
}

#[cfg(test)]
mod tests {
    use axum::{Router, http::StatusCode, routing::get};
    use kube::{Config, core::GroupVersionKind};
    use serde_json::json;

    use super::*;

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
        for (wanted, expected, is_namespaced) in
            [("v2", "v2", true), ("v1", "v3", false), ("v0", "v3", false)]
        {
            let found = served.find(&kind("x.dev", wanted)).await.unwrap();
            let expected = ServedKind { resource: kind("x.dev", expected), is_namespaced };
            assert_eq!(found, Some(expected), "{wanted}");
        }
        assert_eq!(served.find(&kind("y.dev", "v1")).await, Ok(None));
        let another = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("x.dev", "v1", "Hop"), "hops");
        assert_eq!(served.find(&another).await, Ok(None));
    }
}

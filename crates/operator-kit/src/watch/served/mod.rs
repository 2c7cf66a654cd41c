//! In which version the cluster serves a kind, and whether in namespaces: asked of the cluster, so that a version which is
//! not served any more stops nothing.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};

use futures::future::join_all;
use kube::{
    Client,
    core::GroupVersion,
    discovery::{self, ApiGroup, ApiResource, Scope},
    error::DiscoveryError,
};
use tokio::{
    select,
    sync::watch::{Receiver, channel},
    time::{Instant, sleep, timeout},
};

use crate::{
    report::{health::Health, metrics::Metrics},
    watch::{ReadError, WatchedKind},
};

/// How long an answer is relied on while nothing speaks against it.
const ANSWER_LIFETIME: Duration = Duration::from_secs(300);
/// How long it is relied on although a request was answered as for a kind that is not served.
const DOUBTED_LIFETIME: Duration = Duration::from_secs(5);
/// How long many objects share an answer that must be new, or that their kind is not served.
const SHARED_LIFETIME: Duration = Duration::from_secs(1);
/// How often the cluster is asked for a kind that it does not serve while objects wait for it.
const AWAITED_INTERVAL: Duration = Duration::from_secs(5);
/// How often the cluster is asked for a kind that it does not serve while only its watch wants to know.
const UNSERVED_INTERVAL: Duration = Duration::from_secs(30);
/// How long the cluster may take to say how it serves a kind. The client waits for an answer without end.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);
/// How often watches are looked at whose kind may not be served any more. No request comes from it.
const WATCH_CHECK_INTERVAL: Duration = Duration::from_secs(1);

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
    kind: Result<Option<ServedKind>, ReadError>,
    since: Instant,
}

impl ServedKinds {
    /// Nothing is known at first.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    /// A kind in the wanted version if that is served, else in the preferred one; `None` when it is served in none.
    pub async fn find(&self, wanted: &ApiResource) -> Result<Option<ServedKind>, ReadError> {
        self.answer(wanted, ANSWER_LIFETIME, SHARED_LIFETIME).await
    }

    /// The same, after a request was answered as for a kind that is not served.
    pub async fn find_again(&self, wanted: &ApiResource) -> Result<Option<ServedKind>, ReadError> {
        self.answer(wanted, DOUBTED_LIFETIME, UNSERVED_INTERVAL).await
    }

    /// The same, as it is now: for what cannot be taken back. Only questions of the same second share an answer.
    pub async fn find_now(&self, wanted: &ApiResource) -> Result<Option<ServedKind>, ReadError> {
        self.answer(wanted, SHARED_LIFETIME, SHARED_LIFETIME).await
    }

    /// The same, for a kind that was not served, as long as objects wait for it.
    pub async fn find_awaited(&self, wanted: &ApiResource) -> Result<Option<ServedKind>, ReadError> {
        self.answer(wanted, ANSWER_LIFETIME, AWAITED_INTERVAL).await
    }

    /// The same, for a watch that is looked at again and again: whether it fails because its kind is not served, or is in
    /// another version than the wanted one.
    pub async fn find_for_watch(
        &self,
        wanted: &ApiResource,
        is_unserved: bool,
    ) -> Result<Option<ServedKind>, ReadError> {
        self.answer(wanted, if is_unserved { DOUBTED_LIFETIME } else { ANSWER_LIFETIME }, UNSERVED_INTERVAL)
            .await
    }

    /// An answer that is not older than this, by whether the kind is served. That there was none is known as long as
    /// that the kind is not served.
    async fn answer(
        &self,
        wanted: &ApiResource,
        if_served: Duration,
        if_not: Duration,
    ) -> Result<Option<ServedKind>, ReadError> {
        if let Some(Answer { kind, since }) = self.known().get(wanted)
            && since.elapsed() < if matches!(kind, Ok(Some(_))) { if_served } else { if_not }
        {
            return kind.clone();
        }
        let kind = match timeout(DISCOVERY_TIMEOUT, ask(&self.client, wanted)).await {
            Ok(answer) => answer.map_err(|error| ReadError::of(&error, "the API group", &wanted.group)),
            Err(_) => Err(ReadError::unanswered(
                "the API group",
                &wanted.group,
                format!("the API server did not answer within {DISCOVERY_TIMEOUT:?}"),
            )),
        };
        self.known().insert(wanted.clone(), Answer { kind: kind.clone(), since: Instant::now() });
        kind
    }

    fn known(&self) -> MutexGuard<'_, HashMap<ApiResource, Answer>> {
        self.known.lock()
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
                () = sleep(WATCH_CHECK_INTERVAL) => {}
            }
            let mut kinds = wanted.borrow_and_update().clone();
            others.retain(|wanted, _| kinds.iter().any(|kind| **kind.resource() == *wanted));
            let doubted = doubted(&kinds, &others, &health);
            metrics.unserved(doubted.len());
            let found = join_all(doubted.into_iter().map(|(resource, is_unserved)| {
                let served = &served;
                async move {
                    let found = served.find_for_watch(&resource, is_unserved).await;
                    (resource, found)
                }
            }));
            for (resource, found) in found.await {
                // Its watch tells why it fails.
                if let Ok(Some(found)) = found {
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

/// The kinds that are not served as they are wanted, and whether their watch fails for it: one that is watched in another
/// version is asked for, too, so that the wanted one is watched again when it is served again.
fn doubted<R>(
    kinds: &[WatchedKind<R>],
    others: &HashMap<ApiResource, ApiResource>,
    health: &Health,
) -> Vec<(ApiResource, bool)> {
    let kinds = kinds.iter().map(|kind| (kind.resource().as_ref(), health.is_unserved(&kind.for_people())));
    let doubted = kinds.filter(|(resource, is_unserved)| *is_unserved || others.contains_key(resource));
    doubted.map(|(resource, is_unserved)| (resource.clone(), is_unserved)).collect()
}

fn choose(others: &mut HashMap<ApiResource, ApiResource>, wanted: ApiResource, found: ApiResource) {
    if wanted == found {
        others.remove(&wanted);
    } else if others.get(&wanted) != Some(&found) {
        tracing::warn!(
            kind = wanted.kind,
            "{} is not served, so {} is used instead; set a served version in the settings",
            wanted.api_version,
            found.api_version
        );
        others.insert(wanted, found);
    }
}

#[cfg(test)]
mod tests;

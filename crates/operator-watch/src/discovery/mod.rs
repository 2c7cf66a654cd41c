//! Looks up the served version and the scope of a kind in the cluster, so that a version that is no longer served does
//! not stop a controller.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;

use kube::{
    Client,
    core::GroupVersion,
    discovery::{self, ApiGroup, ApiResource, Scope},
    error::DiscoveryError,
};
use tokio::time::Instant;

use crate::{ApiError, Live, Verb};

/// Lifetime of an answer that nothing contradicts.
const ANSWER_LIFETIME: Duration = Duration::from_secs(300);
/// Lifetime of an answer after a request was answered as if the kind were not served.
const DOUBTED_LIFETIME: Duration = Duration::from_secs(5);
/// Time between look-ups of a kind that is not served while objects wait for it.
const AWAITED_INTERVAL: Duration = Duration::from_secs(5);
/// Time between look-ups of a kind that is not served while requests are answered so, too.
const UNSERVED_INTERVAL: Duration = Duration::from_secs(30);
/// Number of cached answers: an owner reference, which may name any version, leads to a look-up, too.
const MAX_ANSWERS: usize = 1000;
/// Time limit of a look-up. The client itself would wait forever.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(10);

/// Looks up the served versions of kinds, and caches the answers for a while.
#[derive(Clone)]
pub struct Discovery {
    client: Client,
    known: Arc<Mutex<HashMap<ApiResource, LastAnswer>>>,
}

/// The last answer about a kind. Whoever looks the kind up holds it, and all others wait for the new one.
type LastAnswer = Arc<tokio::sync::Mutex<Option<Answer>>>;

struct Answer {
    kind: Result<Option<(ApiResource, Scope)>, ApiError>,
    since: Instant,
}

impl Discovery {
    /// Begins with an empty cache.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    /// A kind in the wanted version if that is served, otherwise in the preferred one, and its scope; `None` if it is served in
    /// no version. An empty plural stands for any.
    pub async fn find(&self, wanted: &ApiResource) -> Result<Option<(ApiResource, Scope)>, ApiError> {
        self.answer(wanted, ANSWER_LIFETIME, AWAITED_INTERVAL).await
    }

    /// Like [`Self::find`], after a request was answered as if the kind were not served.
    pub async fn find_again(&self, wanted: &ApiResource) -> Result<Option<(ApiResource, Scope)>, ApiError> {
        self.answer(wanted, DOUBTED_LIFETIME, UNSERVED_INTERVAL).await
    }

    /// An answer within its lifetime, which depends on whether the kind is served. A failed look-up has the same
    /// lifetime as the answer that the kind is not served.
    async fn answer(
        &self,
        wanted: &ApiResource,
        if_served: Duration,
        if_not: Duration,
    ) -> Result<Option<(ApiResource, Scope)>, ApiError> {
        let last = {
            let mut known = self.known.lock();
            if known.len() >= MAX_ANSWERS && !known.contains_key(wanted) {
                known.clear();
            }
            known.entry(wanted.clone()).or_default().clone()
        };
        let mut last = last.lock().await;
        if let Some(Answer { kind, since }) = &*last {
            let lifetime = if matches!(kind, Ok(Some(_))) { if_served } else { if_not };
            if since.elapsed() < lifetime {
                return kind.clone();
            }
        }
        let kind = Live::within(DISCOVERY_TIMEOUT, ask(&self.client, wanted)).await;
        let group = ("the API group", &*wanted.group);
        let kind = kind.map_err(|error| ApiError::of(Verb::Read, &error, group));
        *last = Some(Answer { kind: kind.clone(), since: Instant::now() });
        kind
    }
}

async fn ask(client: &Client, wanted: &ApiResource) -> kube::Result<Option<(ApiResource, Scope)>> {
    let version = GroupVersion::gv(&wanted.group, &wanted.version);
    let group = present(discovery::pinned_group(client, &version).await)?;
    if let Some(found) = group.and_then(|group| in_version(&group, &wanted.version, wanted)) {
        return Ok(Some(found));
    }
    let Some(group) = present(discovery::group(client, &wanted.group).await)? else { return Ok(None) };
    let mut versions = group.preferred_version().into_iter().chain(group.versions());
    Ok(versions.find_map(|version| in_version(&group, version, wanted)))
}

/// `None` if the cluster does not have the group.
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

fn in_version(group: &ApiGroup, version: &str, wanted: &ApiResource) -> Option<(ApiResource, Scope)> {
    let is_wanted = |found: &ApiResource| {
        found.kind == wanted.kind && (wanted.plural.is_empty() || found.plural == wanted.plural)
    };
    let found = group.versioned_resources(version).into_iter().find(|(found, _)| is_wanted(found));
    found.map(|(resource, capabilities)| (resource, capabilities.scope))
}

#[cfg(test)]
mod tests;

use std::{fmt::Debug, panic::Location, time::Duration};

use kube::Api;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::{Instant, sleep};

/// The default time limit for an expected event: far longer than usual, because the machine may be busy.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// The time limit for what Kubernetes itself deletes: the controller of namespaces goes from kind to kind, and the garbage
/// collector gets to know new kinds late, which other tests install and remove.
pub const COLLECTION_TIMEOUT: Duration = Duration::from_secs(360);

/// Pause between two checks, each of which is work for the API server that many tests share.
pub(crate) const EVERY: Duration = Duration::from_millis(250);

/// Repeats a check until it returns `Ok`, which is returned. An `Err` describes the observed state.
///
/// # Panics
/// After `limit`, with the caller's location and the last `Err`.
#[track_caller]
pub fn eventually<T, E: Debug>(
    what: &str,
    limit: Duration,
    probe: impl AsyncFnMut() -> Result<T, E>,
) -> impl Future<Output = T> {
    eventually_every(EVERY, what, limit, probe)
}

/// Like [`eventually`], with another pause between checks, for checks that are so much work that others would wait.
///
/// # Panics
/// Like [`eventually`].
#[track_caller]
pub fn eventually_every<T, E: Debug>(
    every: Duration,
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Result<T, E>,
) -> impl Future<Output = T> {
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + limit;
        loop {
            let seen = match probe().await {
                Ok(found) => return found,
                Err(seen) => seen,
            };
            assert!(
                Instant::now() < deadline,
                "{caller}: not within {limit:?}: {what}; the last that was seen: {seen:#?}"
            );
            sleep(every).await;
        }
    }
}

/// Waits until an object is gone.
#[track_caller]
pub(crate) fn until_gone<K: Clone + Debug + Serialize + DeserializeOwned>(
    what: &str,
    limit: Duration,
    api: Api<K>,
    name: &str,
) -> impl Future<Output = ()> {
    eventually(what, limit, async move || match api.get_opt(name).await {
        Ok(None) => Ok(()),
        Ok(Some(object)) => Err(yaml(&object)),
        Err(error) => Err(error.to_string()),
    })
}

/// An object as YAML, without fields that are irrelevant to readers.
pub fn yaml(object: &impl Serialize) -> String {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&value).unwrap_or_else(|error| format!("{value}: {error}"))
}

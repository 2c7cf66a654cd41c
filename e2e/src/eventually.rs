use std::{fmt::Debug, panic::Location, time::Duration};

use serde::Serialize;
use tokio::time::{Instant, sleep};

/// How long a test waits for what is to happen, unless it says otherwise: far longer than it takes, because the
/// machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Each look is work for the API server, which many tests share.
const EVERY: Duration = Duration::from_millis(250);

/// Asks again and again until the answer is `Ok`, which is given back. An `Err` is what was seen instead.
///
/// # Panics
/// After `limit`, with the caller's place and the last `Err`.
#[track_caller]
pub fn eventually<T, E: Debug>(
    what: &str,
    limit: Duration,
    probe: impl AsyncFnMut() -> Result<T, E>,
) -> impl Future<Output = T> {
    eventually_every(EVERY, what, limit, probe)
}

/// The same with another pause between two looks, where each is so much work that others would wait for it.
///
/// # Panics
/// As [`eventually`] does.
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

/// An object as people read it, without what nobody wants to read.
pub fn yaml(object: &impl Serialize) -> String {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Some(metadata) = value.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    serde_saphyr::to_string(&value).unwrap_or_else(|error| format!("{value}: {error}"))
}

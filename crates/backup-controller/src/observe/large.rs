//! Large objects are handled a few at a time: a pass holds the object, its manifest and its backup, so that many at once
//! would not fit into the memory of the process.

use std::sync::Arc;

use kube::{Client, discovery::ApiResource};
use operator_kit::watch::ReadError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::live::{self, Answer};

/// Size, in bytes, of the smallest large object. As many of the smaller ones as there are concurrent passes fit.
const LARGE: usize = 128 * 1024;
/// Number of large objects that are handled at the same time.
const AT_A_TIME: usize = 2;

/// The turns of large objects.
pub struct LargeObjects(Arc<Semaphore>);

/// The turn of a large object. It lasts until it is dropped.
pub struct Turn(#[expect(dead_code, reason = "it is dropped")] OwnedSemaphorePermit);

impl Default for LargeObjects {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_A_TIME)))
    }
}

impl LargeObjects {
    /// Reads an object from the API server; a large one in its turn, which its owner keeps as long as the object.
    pub async fn read(
        &self,
        client: &Client,
        resource: &ApiResource,
        namespace: &str,
        name: &str,
    ) -> Result<(Answer, Option<Turn>), ReadError> {
        if let Some(answer) = live::read_up_to(LARGE, client, resource, namespace, name).await? {
            return Ok((answer, None));
        }
        // It is never closed.
        let turn = self.0.clone().acquire_owned().await.ok().map(Turn);
        Ok((live::read(client, resource, namespace, name).await?, turn))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::api_server::{DATE, server};

    #[tokio::test(start_paused = true)]
    async fn large_objects_wait_for_each_other_and_small_ones_for_nobody() {
        let client = server(Some(DATE), |path| {
            let size = if path.ends_with("/large") { LARGE } else { 1 };
            (200, json!({"metadata": {"name": "web"}, "data": {"text": "x".repeat(size)}}))
        });
        let (objects, kind) = (LargeObjects::default(), ApiResource::erase::<ConfigMap>(&()));
        let read = async |name: &str| {
            let read = objects.read(&client, &kind, "shop", name);
            timeout(Duration::from_secs(1), read).await.ok().map(Result::unwrap)
        };
        let mut turns = Vec::new();
        for _ in 0..AT_A_TIME {
            let (answer, turn) = read("large").await.unwrap();
            assert!(answer.object.is_some());
            turns.push(turn.expect("a large object has a turn"));
        }
        assert!(read("large").await.is_none(), "too many at a time");
        assert!(read("small").await.is_some_and(|(_, turn)| turn.is_none()));
        turns.pop();
        assert!(read("large").await.is_some());
    }
}

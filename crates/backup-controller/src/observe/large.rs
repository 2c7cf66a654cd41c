//! Large objects are handled a few at a time: a pass holds the object, its manifest and its backup, so that many at once
//! would not fit into the memory of the process.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use kube::Client;
use operator_watch::{ApiError, DynamicRow, ObjectId};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::live::{self, Answer};

/// Size, in bytes, of the smallest large object. As many of the smaller ones as there are concurrent passes fit.
const LARGE: usize = 128 * 1024;
/// Number of large objects of one kind that are handled at the same time.
const MAX_CONCURRENT_READS: usize = 2;

/// The turns of large objects. A pass does not wait for its turn: it would keep the place of a small object, and its
/// time would run out. Each kind has turns of its own, because its backups may take long.
#[derive(Default)]
pub struct LargeObjects {
    turns: Mutex<HashMap<Arc<str>, Arc<Semaphore>>>,
    /// The uids of the objects that were found to be large.
    found: Mutex<HashSet<String>>,
}

/// The turn of a large object. It lasts until it is dropped.
pub type Turn = OwnedSemaphorePermit;

/// An answer, and the turn of a large object, which its owner keeps as long as the object.
pub type Read = (Answer, Option<Turn>);

impl LargeObjects {
    /// Reads an object from the API server; `None` if it is large, and it is not its turn.
    pub async fn read<R>(&self, client: &Client, target: &DynamicRow<R>) -> Result<Option<Read>, ApiError> {
        let (resource, ObjectId { namespace, name, uid }) =
            (target.resource(), ObjectId::from(&target.metadata));
        if !self.found.lock().contains(uid)
            && let Some(answer) = live::read_up_to(LARGE, client, resource, namespace, name).await?
        {
            return Ok(Some((answer, None)));
        }
        self.found.lock().insert(uid.to_owned());
        let Some(turn) = self.turn(&target.kind_id) else { return Ok(None) };
        Ok(Some((live::read(client, resource, namespace, name).await?, Some(turn))))
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.found.lock().remove(uid);
    }

    fn turn(&self, kind: &Arc<str>) -> Option<Turn> {
        let mut turns = self.turns.lock();
        let turns =
            turns.entry(kind.clone()).or_insert_with(|| Arc::new(Semaphore::new(MAX_CONCURRENT_READS)));
        turns.clone().try_acquire_owned().ok()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::discovery::ApiResource;
    use operator_watch::WriteTarget;
    use serde_json::json;

    use super::*;
    use crate::mock_server::{DATE, server};

    #[tokio::test]
    async fn large_objects_of_a_kind_take_turns_and_small_ones_need_none() {
        let client = server(Some(DATE), |path| {
            let size = if path.ends_with("/small") { 1 } else { LARGE };
            (200, json!({"metadata": {"name": "web"}, "data": {"text": "x".repeat(size)}}))
        });
        let (objects, resource) = (LargeObjects::default(), ApiResource::erase::<ConfigMap>(&()));
        let read = async |kind: &str, name: &str| {
            let metadata = json!({"namespace": "shop", "name": name, "uid": name});
            let target = DynamicRow {
                metadata: serde_json::from_value(metadata).unwrap(),
                kind_id: kind.into(),
                write_target: Arc::new(WriteTarget::unwatched(resource.clone())),
                row: (),
            };
            objects.read(&client, &target).await.unwrap()
        };
        let mut turns = Vec::new();
        for name in ["a", "b"] {
            let (answer, turn) = read("maps", name).await.unwrap();
            assert!(answer.object.is_some());
            turns.push(turn.expect("a large object has a turn"));
        }
        assert!(read("maps", "c").await.is_none(), "too many at a time");
        assert!(read("maps", "small").await.is_some_and(|(_, turn)| turn.is_none()));
        assert!(read("others", "d").await.is_some_and(|(_, turn)| turn.is_some()));
        turns.pop();
        assert!(read("maps", "c").await.is_some());
    }
}

//! The only way to write: repeatable creates, patches and deletes with a uid, and each write recorded until the caches
//! show it.

mod gate;
mod last_writer;
mod on_behalf;
mod record;
mod send;
mod status;
mod target;
mod trial;

use std::{collections::HashMap, sync::Arc};

use kube::{
    Client,
    api::{DeleteParams, ObjectMeta, Preconditions},
};
use parking_lot::Mutex;
use record::Record;
use tokio::{sync::Semaphore, time::Instant};

use operator_watch::{ObjectId, Watched, Watermark};

use crate::{
    report::{StatusAge, metrics::Metrics},
    write::repeated_writes::RepeatedWrites,
};

pub(crate) use gate::Gate;
pub use on_behalf::OnBehalf;
use on_behalf::Written;

/// Maximum number of concurrent writes. The API server's limit for one class of clients is of this order.
const MAX_CONCURRENT_WRITES: usize = 48;

/// Writes as one field manager.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: &'static str,
    primary: Watermark,
    shared: Arc<Shared>,
}

struct Shared {
    /// By the uid of their object.
    records: Mutex<HashMap<String, Record>>,
    repeated: RepeatedWrites,
    metrics: Arc<Metrics>,
    permits: Semaphore,
    gate: Gate,
}

impl Writer {
    /// A writer without an [`Operator`](crate::run::Operator), such as one over a mocked client in a test.
    #[must_use]
    pub fn over(client: Client, manager: &'static str) -> Self {
        Self::new(client, manager, Arc::default())
    }

    pub(crate) fn new(client: Client, manager: &'static str, metrics: Arc<Metrics>) -> Self {
        let shared = Shared {
            records: Mutex::default(),
            repeated: RepeatedWrites::default(),
            metrics,
            permits: Semaphore::new(MAX_CONCURRENT_WRITES),
            gate: Gate::default(),
        };
        Self { client, manager, primary: Watermark::default(), shared: Arc::new(shared) }
    }

    /// Deletes an object in exactly the state that its watch has shown; its dependents follow in the background. It is a
    /// success if the object is already gone.
    ///
    /// # Errors
    /// [`Conflict`](operator_watch::Cause::Conflict) if it was changed or replaced meanwhile.
    pub async fn delete_as_seen<R>(&self, object: &Watched<R>) -> Written<()> {
        let ObjectMeta { uid, resource_version, .. } = object.metadata.clone();
        let preconditions = Preconditions { uid, resource_version };
        // Explicit, because some kinds, such as Job, orphan their dependents by default.
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let id = ObjectId::of(object);
        self.on_behalf_of(id).delete_with(&object.source.watched, id, params).await
    }

    /// The age of the status of the object.
    #[must_use]
    pub fn status_age(&self, uid: &str) -> StatusAge {
        let mut records = self.shared.records.lock();
        let record = records.entry(uid.to_owned()).or_default();
        let (is_written, since) = *record.status.get_or_insert_with(|| (false, Instant::now()));
        if is_written { StatusAge::Written(since.elapsed()) } else { StatusAge::Unwritten(since.elapsed()) }
    }

    /// The gate that the leader keeps open.
    pub(crate) fn gate(&self) -> &Gate {
        &self.shared.gate
    }

    /// The highest version that the primary watch has delivered.
    pub(crate) fn primary(&self) -> &Watermark {
        &self.primary
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.shared.records.lock().remove(uid);
    }
}

//! Writes: each carries a uid, and the next decision waits until the caches show it.

mod error_source;
mod object_writer;
mod owner;
mod record;
mod repeated_writes;
mod send;
mod slow_start;
mod status;

use std::{collections::HashMap, sync::Arc};

use kube::Client;
use operator_watch::SeenVersion;
use parking_lot::Mutex;
use record::Record;
use repeated_writes::RepeatedWrites;
#[cfg(feature = "testing")]
pub(crate) use send::escape_json;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use crate::report::{StatusAge, metrics::Metrics};

use object_writer::ObjectWriter;
pub use {owner::Ownership, slow_start::Batch};

/// Maximum number of concurrent writes. More are not faster, and the connection of each keeps a buffer for the largest object.
const MAX_CONCURRENT_WRITES: usize = 32;

/// Writes as one field manager.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    manager: &'static str,
    primary: SeenVersion,
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
    pub(crate) fn new(client: Client, manager: &'static str, metrics: Arc<Metrics>) -> Self {
        let shared = Shared {
            records: Mutex::default(),
            repeated: RepeatedWrites::default(),
            metrics,
            permits: Semaphore::new(MAX_CONCURRENT_WRITES),
            gate: Gate::default(),
        };
        Self { client, manager, primary: SeenVersion::default(), shared: Arc::new(shared) }
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
    pub(crate) fn primary(&self) -> &SeenVersion {
        &self.primary
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.shared.records.lock().remove(uid);
    }
}

/// The gate that each write passes right before it is sent. Without leader election, it is always open.
#[derive(Clone, Debug)]
pub(crate) struct Gate(watch::Sender<Option<Instant>>);

impl Default for Gate {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Gate {
    /// Lets writes pass until `end`, unless it is extended.
    pub fn open_until(&self, end: Instant) {
        self.0.send_replace(Some(end));
    }

    /// Lets no more writes pass.
    pub fn close(&self) {
        self.open_until(Instant::now());
    }

    /// Waits until writes may pass.
    pub async fn opens(&self) {
        // It cannot fail, because `self` keeps the channel open.
        self.0.subscribe().wait_for(|end| is_open(*end)).await.ok();
    }

    /// Whether writes may pass.
    pub fn is_open(&self) -> bool {
        is_open(*self.0.borrow())
    }
}

fn is_open(end: Option<Instant>) -> bool {
    // The monotonic clock also counts the time in which this process was stopped.
    end.is_none_or(|end| Instant::now() < end)
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use axum::http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::{Client, api::ApiResource, client::Body};
    use parking_lot::Mutex;
    use serde_json::json;
    use tokio::time::{Instant, timeout};

    use crate::write::Writer;
    use operator_watch::{ApiError, ObjectId, WriteTarget};

    #[tokio::test(start_paused = true)]
    async fn a_write_after_the_leaders_term_is_not_sent_before_the_next_term() {
        let sent = Arc::new(Mutex::new(0));
        let server = sent.clone();
        let service = move |request: Request<Body>| {
            *server.lock() += 1;
            async move { Ok::<_, anyhow::Error>(Response::new(request.into_body())) }
        };
        let writer = Writer::over(Client::new(tower::service_fn(service), "default"), "test");
        let kind = WriteTarget::unwatched(ApiResource::erase::<ConfigMap>(&()));
        let create = async || {
            let object = json!({"metadata": {"name": "settings", "namespace": "shop"}});
            let own = writer.for_object(ObjectId::default());
            own.create_with(&kind, || Ok::<_, ApiError>(object.clone())).await
        };
        let minute = Duration::from_secs(60);

        writer.gate().open_until(Instant::now() + minute);
        create().await.unwrap();
        tokio::time::sleep(minute).await;
        assert!(timeout(minute / 2, create()).await.is_err());
        let error = create().await.unwrap_err();
        assert!(!error.may_have_taken_effect() && error.to_string().contains("it was not sent"), "{error}");
        assert_eq!(*sent.lock(), 1, "after a minute, it is given up: its decision may be out of date");

        let again = async {
            tokio::time::sleep(minute / 2).await;
            writer.gate().open_until(Instant::now() + minute);
        };
        let (written, ()) = tokio::join!(create(), again);
        written.unwrap();
        assert_eq!(*sent.lock(), 2);
    }
}

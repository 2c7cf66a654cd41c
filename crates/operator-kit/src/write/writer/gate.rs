//! Writes pass while this process is sure to hold its Lease, and otherwise wait.

use tokio::{sync::watch, time::Instant};

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
    use operator_watch::{ApiError, ObjectId, WatchedResource};

    #[tokio::test(start_paused = true)]
    async fn a_write_after_the_leaders_term_is_not_sent_before_the_next_term() {
        let sent = Arc::new(Mutex::new(0));
        let server = sent.clone();
        let service = move |request: Request<Body>| {
            *server.lock() += 1;
            async move { Ok::<_, anyhow::Error>(Response::new(request.into_body())) }
        };
        let writer = Writer::over(Client::new(tower::service_fn(service), "default"), "test");
        let kind = WatchedResource::unwatched(ApiResource::erase::<ConfigMap>(&()));
        let create = async || {
            let object = json!({"metadata": {"name": "settings", "namespace": "shop"}});
            let own = writer.on_behalf_of(ObjectId::default());
            own.create_with(&kind, || Ok::<_, ApiError>(object.clone())).await
        };
        let minute = Duration::from_secs(60);

        writer.gate().open_until(Instant::now() + minute);
        create().await.unwrap();
        tokio::time::sleep(minute).await;
        assert!(timeout(minute / 2, create()).await.is_err());
        create().await.unwrap_err();
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

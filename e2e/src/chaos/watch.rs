//! Passes on the events of a watch, with their faults.

use std::{io, sync::Arc, time::Duration};

use axum::body::{Body, Bytes};
use futures::{AsyncBufReadExt, Stream, StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use tokio::{
    select,
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};

use super::{plan::WatchFault, proxy::Shared};

/// Lines that are read ahead of the controller.
const AHEAD: usize = 16;

/// The events of a resource, from the API server to the controller.
pub(super) fn passed_on(shared: Arc<Shared>, door: usize, resource: String, events: Body) -> Body {
    let (sender, receiver) = mpsc::channel(AHEAD);
    let lines = events.into_data_stream().map_err(io::Error::other).into_async_read().lines().boxed();
    let relay = Relay { shared, door, resource, sender };
    tokio::spawn(relay.run(lines));
    let told = stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)));
    Body::from_stream(told)
}

struct Relay {
    shared: Arc<Shared>,
    /// The door of its process.
    door: usize,
    resource: String,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

/// The controller is gone, or a fault ends the watch.
struct Ended;

impl Relay {
    async fn run(self, mut lines: impl Stream<Item = io::Result<String>> + Unpin) {
        loop {
            let line = select! {
                line = lines.next() => line,
                () = self.sender.closed() => return,
            };
            let Some(Ok(line)) = line else { return };
            if self.tell(line, &mut lines).await.is_err() {
                return;
            }
        }
    }

    async fn tell(
        &self,
        line: String,
        lines: &mut (impl Stream<Item = io::Result<String>> + Unpin),
    ) -> Result<(), Ended> {
        self.shared.until_open(self.door).await;
        self.shared.until_present().await;
        let key = key(&line);
        let fault = key.as_ref().and_then(|_| self.shared.state().event(&self.resource));
        match fault {
            None => self.send(&line).await,
            Some(WatchFault::Close) => Err(Ended),
            Some(WatchFault::Expire) => {
                self.send(&expired()).await?;
                Err(Ended)
            }
            Some(WatchFault::Freeze { millis }) => {
                sleep(Duration::from_millis(millis)).await;
                self.send(&line).await
            }
            Some(WatchFault::Repeat) => {
                self.send(&line).await?;
                self.send(&line).await
            }
            Some(WatchFault::Hold { millis }) => {
                let until = Instant::now() + Duration::from_millis(millis);
                let (mut held, mut after) = (Some(line), Vec::new());
                while let Ok(Some(Ok(next))) = timeout_at(until, lines.next()).await {
                    let is_same = self::key(&next) == key;
                    after.push(next);
                    if is_same {
                        held = None;
                        break;
                    }
                }
                for line in held.into_iter().chain(after) {
                    self.send(&line).await?;
                }
                Ok(())
            }
        }
    }

    async fn send(&self, line: &str) -> Result<(), Ended> {
        let mut bytes = Bytes::from(format!("{line}\n"));
        while Instant::now() < self.shared.state().slow_until {
            sleep(Duration::from_secs(1)).await;
            let part = bytes.split_to(1000.min(bytes.len()));
            self.sender.send(Ok(part)).await.map_err(|_| Ended)?;
            if bytes.is_empty() {
                return Ok(());
            }
        }
        self.sender.send(Ok(bytes)).await.map_err(|_| Ended)
    }
}

/// The name of an event's object, if it has one.
fn key(line: &str) -> Option<String> {
    let event: Value = serde_json::from_str(line).ok()?;
    let is_change = matches!(event["type"].as_str(), Some("ADDED" | "MODIFIED" | "DELETED"));
    is_change.then(|| event.pointer("/object/metadata/name").and_then(Value::as_str).map(str::to_owned))?
}

fn expired() -> String {
    let status = json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "reason": "Expired", "code": 410,
        "message": "too old resource version",
    });
    json!({"type": "ERROR", "object": status}).to_string()
}

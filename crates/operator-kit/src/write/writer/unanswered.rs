//! Writes whose answer is lost may have taken effect. The next decision on the object asks the server for the version
//! that the watch then has to reach.

use std::{collections::HashMap, time::Duration};

use kube::{
    api::ListParams,
    core::{ListMeta, Request},
};
use operator_watch::{ApiError, ObjectId, Trimmed, WatchedResource, live::within};
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::time::Instant;

use super::{Writer, target::Target};

/// Time in which a write that has lost its answer may still take effect.
const IN_FLIGHT: Duration = Duration::from_secs(5);
/// Longest time that a decision waits for such a look-up, as for the watch itself.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the watch to pass the deletion of an object that is gone: only the version of the whole list is
/// known, which a watch without events reaches late.
const DELETION_TIMEOUT: Duration = Duration::from_secs(20);

/// The unanswered writes on behalf of each object, by its uid.
#[derive(Default)]
pub(super) struct Unanswered(Mutex<HashMap<String, Vec<Write>>>);

/// An unanswered write.
#[derive(Clone)]
struct Write {
    verb: &'static str,
    kind: WatchedResource,
    namespace: String,
    name: String,
    since: Instant,
}

impl Unanswered {
    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    fn of(&self, uid: &str) -> Vec<Write> {
        self.0.lock().get(uid).cloned().unwrap_or_default()
    }

    fn keep(&self, uid: &str, writes: Vec<Write>) {
        if writes.is_empty() {
            self.forget(uid);
        } else {
            self.0.lock().insert(uid.to_owned(), writes);
        }
    }
}

/// A write under way. It counts as unanswered when it is dropped without an answer, as at the end of a pass that is cut off.
pub(super) struct UnderWay<'w> {
    unanswered: &'w Unanswered,
    whose: &'w str,
    write: Option<Write>,
}

impl<'w> UnderWay<'w> {
    pub fn new(unanswered: &'w Unanswered, whose: &'w str, verb: &'static str, target: &Target<'_>) -> Self {
        let write = target.kind.seen.is_watched().then(|| Write {
            verb,
            kind: target.kind.clone(),
            namespace: target.namespace.clone(),
            name: target.name.clone(),
            since: Instant::now(),
        });
        Self { unanswered, whose, write }
    }

    pub fn ended<T>(mut self, result: &Result<T, ApiError>) {
        if !result.as_ref().is_err_and(ApiError::is_unanswered) {
            self.write = None;
        }
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if let Some(write) = self.write.take() {
            let write = Write { since: Instant::now(), ..write };
            self.unanswered.0.lock().entry(self.whose.to_owned()).or_default().push(write);
        }
    }
}

/// The part of a list that is read.
#[derive(Deserialize)]
struct Found {
    metadata: ListMeta,
    /// Null if there are none: the API server writes an empty list of metadata like that.
    items: Option<Vec<Trimmed>>,
}

impl Writer {
    /// Whether the caches show every write for the object, also those whose answer was lost.
    pub(crate) async fn catches_up(&self, uid: &str) -> bool {
        self.looks_up_unanswered(uid).await && self.shared.consistency.is_current(uid)
    }

    /// False while the server does not answer.
    async fn looks_up_unanswered(&self, uid: &str) -> bool {
        let (mut left, mut is_reachable) = (Vec::new(), true);
        for write in self.shared.unanswered.of(uid) {
            let found = if is_reachable { self.look_up(&write).await } else { None };
            match found {
                Some(found) => left.extend((!self.settles(uid, &write, found)).then_some(write)),
                None if write.since.elapsed() < LOOK_UP_TIMEOUT => {
                    is_reachable = false;
                    left.push(write);
                }
                None => {}
            }
        }
        self.shared.unanswered.keep(uid, left);
        is_reachable
    }

    async fn look_up(&self, write: &Write) -> Option<Found> {
        let id = ObjectId { namespace: &write.namespace, name: &write.name, uid: "" };
        // A right to list comes with each watch.
        let only = ListParams::default().fields(&format!("metadata.name={}", write.name));
        let request: Request = Target::new(&write.kind, id).request();
        let request = request.list_metadata(&only).ok()?;
        let found = within(REQUEST_TIMEOUT, self.client.request::<Found>(request)).await;
        found.inspect_err(|error| tracing::debug!(name = write.name, "cannot look up a write: {error}")).ok()
    }

    /// Has the next decision wait for what was found. False while the write may still take effect.
    fn settles(&self, uid: &str, write: &Write, found: Found) -> bool {
        let consistency = &self.shared.consistency;
        let is_over = write.since.elapsed() >= IN_FLIGHT;
        let Some(Trimmed { metadata }) = found.items.into_iter().flatten().next() else {
            if write.verb != "create" {
                let version = found.metadata.resource_version;
                consistency.awaits(uid, &write.kind.seen, version.as_deref(), DELETION_TIMEOUT);
                return true;
            }
            return is_over;
        };
        consistency.wrote(uid, &write.kind.seen, metadata.resource_version.as_deref());
        match write.verb {
            "create" => true,
            "delete" => is_over || metadata.deletion_timestamp.is_some(),
            _ => is_over,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::ApiResource;
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;
    use crate::testing::{Answer, Log, answering};
    use operator_watch::Watermark;

    const OWNER: ObjectId<'_> = ObjectId { namespace: "shop", name: "web", uid: "owner" };
    const POD: ObjectId<'_> = ObjectId { namespace: "shop", name: "web-1", uid: "pod" };

    fn terminating() -> Value {
        json!({"name": "web-1", "resourceVersion": "9", "deletionTimestamp": "2026-01-01T12:00:00Z"})
    }

    fn alive(version: &str) -> Value {
        json!({"name": "web-1", "resourceVersion": version})
    }

    /// A server that loses the answers of writes, and gives these answers to look-ups in turn: metadata, nothing, or a
    /// failure.
    fn server(look_ups: Vec<Result<Option<Value>, ()>>) -> (Writer, WatchedResource, Log) {
        let mut look_ups = look_ups.into_iter();
        let (client, log) = answering(move |sent| {
            if sent.verb != "GET" {
                return Answer::Lost;
            }
            let items = |metadata: Option<Value>| metadata.map(|metadata| json!({"metadata": metadata}));
            match look_ups.next().expect("a look-up too many") {
                // An empty list of metadata has null for its items.
                Ok(found) => Answer::Json(
                    200,
                    json!({"metadata": {"resourceVersion": "12"}, "items": items(found).map(|item| vec![item])}),
                ),
                Err(()) => Answer::Lost,
            }
        });
        let seen = Watermark::default();
        seen.observe(Some("5"));
        let pods = WatchedResource::new(ApiResource::erase::<Pod>(&()), &seen);
        (Writer::over(client, "test"), pods, log)
    }

    async fn creates(writer: &Writer, pods: &WatchedResource) {
        let pod = json!({"metadata": {"namespace": "shop", "name": "web-1"}});
        writer.on_behalf_of(OWNER).create(pods, &pod).await.unwrap_err();
    }

    async fn deletes(writer: &Writer, pods: &WatchedResource) {
        writer.on_behalf_of(OWNER).delete(pods, POD).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_create_that_took_effect_unanswered_is_awaited() {
        let (writer, pods, log) = server(vec![Ok(Some(alive("9")))]);
        creates(&writer, &pods).await;
        assert!(!writer.catches_up("owner").await, "the watch has not shown it");
        assert!(writer.catches_up("another").await);
        pods.seen.observe(Some("9"));
        assert!(writer.catches_up("owner").await);
        let uris: Vec<_> =
            log.take().into_iter().filter(|sent| sent.verb == "GET").map(|sent| sent.uri).collect();
        assert_eq!(uris, ["/api/v1/namespaces/shop/pods?&fieldSelector=metadata.name%3Dweb-1"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_create_that_did_not_take_effect_is_looked_up_until_it_cannot_any_more() {
        let (writer, pods, _) = server(vec![Ok(None), Ok(None)]);
        creates(&writer, &pods).await;
        assert!(writer.catches_up("owner").await);
        tokio::time::advance(IN_FLIGHT).await;
        assert!(writer.catches_up("owner").await);
        assert!(writer.catches_up("owner").await, "it is over");
    }

    #[tokio::test(start_paused = true)]
    async fn a_delete_is_awaited_once_it_is_seen_to_have_taken_effect() {
        let (writer, pods, _) = server(vec![Ok(Some(alive("4"))), Ok(Some(terminating()))]);
        deletes(&writer, &pods).await;
        assert!(writer.catches_up("owner").await, "nothing has happened yet");
        assert!(!writer.catches_up("owner").await);
        pods.seen.observe(Some("9"));
        assert!(writer.catches_up("owner").await);
    }

    #[tokio::test(start_paused = true)]
    async fn of_an_object_that_is_gone_the_watch_passes_the_list_or_is_given_up() {
        let (writer, pods, _) = server(vec![Ok(None)]);
        deletes(&writer, &pods).await;
        assert!(!writer.catches_up("owner").await);
        tokio::time::advance(DELETION_TIMEOUT).await;
        assert!(writer.catches_up("owner").await);
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_server_does_not_answer_no_decision_is_made_for_a_minute() {
        let (writer, pods, _) = server(vec![Err(()), Err(()), Err(())]);
        creates(&writer, &pods).await;
        assert!(!writer.catches_up("owner").await);
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!writer.catches_up("owner").await);
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(writer.catches_up("owner").await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_is_given_up_before_its_answer_is_unanswered() {
        let (client, _) = answering(|_| Answer::Silence);
        let (_, pods, _) = server(Vec::new());
        let writer = Writer::over(client, "test");
        timeout(Duration::from_secs(30), creates(&writer, &pods)).await.unwrap_err();
        assert!(!writer.catches_up("owner").await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_without_an_answer_is_given_up_by_itself() {
        let (client, _) = answering(|_| Answer::Silence);
        let (_, pods, _) = server(Vec::new());
        let writer = Writer::over(client, "test");
        let began = Instant::now();
        creates(&writer, &pods).await;
        assert_eq!(began.elapsed().as_secs(), 35);
        assert!(!writer.catches_up("owner").await, "it is unanswered");
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_write_is_not_looked_up() {
        let (client, log) = answering(|_| Answer::Refusal(500, "InternalError"));
        let (_, pods, _) = server(Vec::new());
        let writer = Writer::over(client, "test");
        creates(&writer, &pods).await;
        assert!(writer.catches_up("owner").await);
        assert_eq!(log.take().len(), 1);
    }
}

//! Read your own writes, also those whose answer is lost.
//!
//! After a write, the next decision on the object waits until the cache has reached the resourceVersion that the server
//! answered with. kube-controller-manager does so since 1.36 (KEP-5647), and resource versions may be compared (KEP-5504).
//! A write without an answer may have taken effect, so that the next decision asks the server for the version that the
//! watch then has to reach.

use std::{mem::take, time::Duration};

use kube::{api::ListParams, core::ListMeta};
use operator_watch::{ApiError, Live, Pruned, SeenVersion, WriteTarget};
use serde::Deserialize;
use tokio::time::Instant;

use super::{Shared, Writer, repeated_writes::Repeated, send::Target};

/// Longest wait of a decision. The watches of an overloaded API server lag by up to 20 s, and premature decisions add
/// to its load; only a broken watch takes this long. Safety does not depend on the wait, because names are
/// deterministic and deletions carry a uid.
pub(super) const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// Time in which a write that has lost its answer may still take effect.
const IN_FLIGHT: Duration = Duration::from_secs(5);
/// Longest time that a decision waits for such a look-up, as for the watch itself.
const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait for the watch to pass the deletion of an object that is gone: only the version of the whole list is
/// known, which a watch without events reaches late.
const DELETION_TIMEOUT: Duration = Duration::from_secs(20);

/// What is remembered of an object between its passes.
#[derive(Default)]
pub(super) struct Record {
    /// The versions that the caches have yet to show.
    pending: Vec<PendingVersion>,
    /// The writes whose answer is lost.
    lost: Vec<LostWrite>,
    /// The write that was repeated too often since the last pass.
    pub repeated: Option<Box<Repeated>>,
    /// Whether this process has written its status, and since when it has, or has not.
    pub status: Option<(bool, Instant)>,
}

struct PendingVersion {
    seen: SeenVersion,
    /// How far the watch was at the write.
    since: u64,
    version: u64,
    until: Instant,
}

impl PendingVersion {
    /// Whether the watch shows it, or has gone back behind the write and never will, or is broken.
    fn is_over(&self) -> bool {
        let seen = self.seen.version();
        seen >= self.version || seen < self.since || self.until <= Instant::now()
    }
}

#[derive(Clone)]
struct LostWrite {
    verb: &'static str,
    kind: WriteTarget,
    namespace: String,
    name: String,
    since: Instant,
}

/// A write under way. It counts as lost when it is dropped without an answer, as at the end of a pass that is cut off.
pub(super) struct InFlight<'w> {
    shared: &'w Shared,
    whose: &'w str,
    write: Option<LostWrite>,
}

impl<'w> InFlight<'w> {
    pub fn new(shared: &'w Shared, whose: &'w str, verb: &'static str, target: &Target<'_>) -> Self {
        let Target { kind, namespace, name, .. } = target.clone();
        let write = LostWrite { verb, kind: kind.clone(), namespace, name, since: Instant::now() };
        Self { shared, whose, write: kind.seen_version.is_watched().then_some(write) }
    }

    pub fn ended<T>(mut self, result: &Result<T, ApiError>) {
        if !result.as_ref().is_err_and(ApiError::is_unanswered) {
            self.write = None;
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if let Some(write) = self.write.take() {
            let write = LostWrite { since: Instant::now(), ..write };
            self.shared.records.lock().entry(self.whose.to_owned()).or_default().lost.push(write);
        }
    }
}

/// The part of a list that is read.
#[derive(Deserialize)]
struct Found {
    metadata: ListMeta,
    /// Null if there are none: the API server writes an empty list of metadata like that.
    items: Option<Vec<Pruned>>,
}

impl Shared {
    /// Has decisions on the object `uid` wait until a watch reaches a version, for some time at most. Returns whether it
    /// has not reached it.
    pub fn awaits(&self, uid: &str, seen: &SeenVersion, version: Option<&str>, limit: Duration) -> bool {
        let Some(version) = version.and_then(|version| version.parse().ok()) else { return false };
        let since = seen.version();
        let is_ahead = since < version;
        if is_ahead {
            let pending =
                PendingVersion { seen: seen.clone(), since, version, until: Instant::now() + limit };
            self.records.lock().entry(uid.to_owned()).or_default().pending.push(pending);
        }
        is_ahead
    }
}

impl Writer {
    /// Whether the caches show every write for the object, also those whose answer was lost.
    pub(crate) async fn catches_up(&self, uid: &str) -> bool {
        let lost = self.shared.records.lock().get(uid).map(|record| record.lost.clone()).unwrap_or_default();
        let (mut left, mut is_reachable) = (Vec::new(), true);
        for write in lost {
            match if is_reachable { self.look_up(&write).await } else { None } {
                Some(found) => left.extend((!self.settles(uid, &write, found)).then_some(write)),
                None if write.since.elapsed() < LOOK_UP_TIMEOUT => {
                    is_reachable = false;
                    left.push(write);
                }
                None => {}
            }
        }
        let mut records = self.shared.records.lock();
        let Some(record) = records.get_mut(uid) else { return true };
        record.lost = left;
        record.pending.retain(|pending| !pending.is_over());
        let is_current = record.pending.is_empty();
        if is_current && record.lost.is_empty() && record.status.is_none() && record.repeated.is_none() {
            records.remove(uid);
        }
        is_reachable && is_current
    }

    async fn look_up(&self, write: &LostWrite) -> Option<Found> {
        let LostWrite { kind, namespace, name, .. } = write.clone();
        let target = Target { kind: &kind, namespace, name, uid: String::new() };
        // A right to list comes with each watch.
        let only = ListParams::default().fields(&format!("metadata.name={}", target.name));
        let request = target.request().list_metadata(&only).ok()?;
        let found = Live::within(REQUEST_TIMEOUT, self.client.request::<Found>(request)).await;
        found.inspect_err(|error| tracing::debug!(name = write.name, "cannot look up a write: {error}")).ok()
    }

    /// Has the next decision wait for what was found. False while the write may still take effect.
    fn settles(&self, uid: &str, write: &LostWrite, found: Found) -> bool {
        let is_over = write.since.elapsed() >= IN_FLIGHT;
        let item = found.items.into_iter().flatten().next();
        let (version, limit) = match &item {
            Some(Pruned { metadata }) => (&metadata.resource_version, CATCH_UP_TIMEOUT),
            None if write.verb == "create" => return is_over,
            None => (&found.metadata.resource_version, DELETION_TIMEOUT),
        };
        self.shared.awaits(uid, &write.kind.seen_version, version.as_deref(), limit);
        match (write.verb, &item) {
            ("create", _) | (_, None) => true,
            ("delete", Some(item)) => is_over || item.metadata.deletion_timestamp.is_some(),
            _ => is_over,
        }
    }

    /// The write that was repeated too often on behalf of an object since the last call.
    pub(crate) fn repeated(&self, uid: &str) -> Option<Repeated> {
        take(&mut self.shared.records.lock().get_mut(uid)?.repeated).map(|repeated| *repeated)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use kube::api::{ApiResource, DeleteParams};
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use operator_watch::ObjectId;

    use super::*;
    use crate::testing::{Answer, Log, answering};

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
    fn server(look_ups: Vec<Result<Option<Value>, ()>>) -> (Writer, WriteTarget, Log) {
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
        let seen = SeenVersion::default();
        seen.observe(Some("5"));
        let pods = WriteTarget::new(ApiResource::erase::<Pod>(&()), &seen);
        (Writer::over(client, "test"), pods, log)
    }

    async fn creates(writer: &Writer, pods: &WriteTarget) {
        let pod = json!({"metadata": {"namespace": "shop", "name": "web-1"}});
        writer.for_object(OWNER).create(pods, &pod).await.unwrap_err();
    }

    async fn deletes(writer: &Writer, pods: &WriteTarget) {
        writer.for_object(OWNER).delete(pods, POD, DeleteParams::default()).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn a_create_that_took_effect_unanswered_is_awaited() {
        let (writer, pods, log) = server(vec![Ok(Some(alive("9")))]);
        creates(&writer, &pods).await;
        assert!(!writer.catches_up("owner").await, "the watch has not shown it");
        assert!(writer.catches_up("another").await);
        pods.seen_version.observe(Some("9"));
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
        pods.seen_version.observe(Some("9"));
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

    fn writer() -> Writer {
        server(Vec::new()).0
    }

    fn wrote(writer: &Writer, uid: &str, seen: &SeenVersion, version: &str) {
        writer.shared.awaits(uid, seen, Some(version), CATCH_UP_TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn a_decision_waits_for_its_own_write_and_for_no_other_object() {
        let (writer, pods) = (writer(), SeenVersion::default());
        pods.observe(Some("10"));
        wrote(&writer, "a", &pods, "12");
        assert!(!writer.catches_up("a").await);
        assert!(writer.catches_up("b").await);
        pods.observe(Some("11"));
        assert!(!writer.catches_up("a").await);
        pods.observe(Some("12"));
        assert!(writer.catches_up("a").await);
        assert!(writer.shared.records.lock().is_empty(), "it takes no memory");
    }

    #[tokio::test(start_paused = true)]
    async fn each_cache_is_waited_for_by_itself() {
        let (writer, pods, own) = (writer(), SeenVersion::default(), SeenVersion::default());
        wrote(&writer, "a", &pods, "5");
        wrote(&writer, "a", &own, "6");
        own.observe(Some("9"));
        assert!(!writer.catches_up("a").await);
        pods.observe(Some("5"));
        assert!(writer.catches_up("a").await);
    }

    #[tokio::test(start_paused = true)]
    async fn no_decision_waits_for_a_write_that_was_lost_with_the_data_of_the_server() {
        let (writer, pods) = (writer(), SeenVersion::default());
        pods.listed("1000");
        wrote(&writer, "a", &pods, "1010");
        assert!(!writer.catches_up("a").await);
        pods.listed("500");
        assert!(writer.catches_up("a").await);
        wrote(&writer, "a", &pods, "510");
        assert!(!writer.catches_up("a").await, "the versions from before no longer count");
        pods.observe(Some("510"));
        assert!(writer.catches_up("a").await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_never_comes_back_or_whose_watch_has_ended_does_not_block_for_ever() {
        let (writer, pods, ended) = (writer(), SeenVersion::default(), SeenVersion::default());
        wrote(&writer, "a", &pods, "5");
        wrote(&writer, "b", &ended, "5");
        assert!(!writer.catches_up("b").await);
        ended.end();
        assert!(writer.catches_up("b").await);
        tokio::time::advance(CATCH_UP_TIMEOUT).await;
        assert!(writer.catches_up("a").await);
    }
}

//! A list and the watch that continues it, forever.
//!
//! kube's `watcher` has no time limit for a page or the start of a watch, and does not report the start. It resumes an
//! old version of a kind that was deleted and created again, and drops a whole page if one object cannot be decoded.

use std::{pin::pin, sync::Arc, time::Duration};

use futures::StreamExt;
use kube::{Resource, runtime::watcher::Event};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Task, Unread, Watch, backoff::WatchBackoff, change::Change, interruption::Interruption, source::Source,
};
use crate::{
    report::{
        health::{WatchFailure, WatchStatus},
        metrics::Metrics,
    },
    watch::{Watermark, lenient::Lenient},
};

/// Maximum silence of a watch: the server ends it, or reports its progress, at least once a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(65);
/// Minimum duration of a watch that is restarted without a pause.
const SHORT_WATCH: Duration = Duration::from_secs(1);

/// Takes the events of a watch.
struct Taker<F> {
    take: F,
    unread: Unread,
}

impl<F> Taker<F> {
    fn take<K: Resource>(&mut self, event: Event<Lenient<K>>)
    where
        F: FnMut(Event<Lenient<K>>),
    {
        self.unread.hear(&event);
        (self.take)(event);
    }
}

/// Follows one watch.
pub(crate) struct Follower<K> {
    kind: String,
    source: Source<K>,
    status: Arc<WatchStatus>,
    seen: Watermark,
    metrics: Arc<Metrics>,
    backoff: WatchBackoff,
}

impl<K> Follower<K> {
    pub fn new(watch: Watch<K>, task: &Task, metrics: Arc<Metrics>) -> Self {
        let Watch { kind, source } = watch;
        let (status, seen) = (task.status.clone(), task.seen.clone());
        Self { kind, source, status, seen, metrics, backoff: WatchBackoff::default() }
    }
}

impl<K: Resource + Clone + DeserializeOwned + Send + 'static> Follower<K> {
    /// Delivers all objects, then each change; after an interruption that it cannot resume from, all objects again.
    /// Unreadable objects are also reported to `unread`.
    pub async fn run(mut self, unread: Unread, take: impl FnMut(Event<Lenient<K>>)) {
        let mut taker = Taker { take, unread };
        loop {
            match self.list(&mut taker).await {
                Ok(version) => self.watch(version, &mut taker).await,
                Err(interruption) => {
                    self.pause(interruption).await;
                }
            }
        }
    }

    /// Delivers all objects, and returns their resourceVersion.
    async fn list(
        &mut self,
        taker: &mut Taker<impl FnMut(Event<Lenient<K>>)>,
    ) -> Result<String, Interruption> {
        self.status.listing();
        let mut page = self.source.page(None).await?;
        taker.take(Event::Init);
        let version = loop {
            let list = page.read(|object| taker.take(Event::InitApply(object))).await?;
            self.status.progressed();
            let token = list.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                break list.resource_version;
            }
            page = self.source.page(token).await?;
        };
        let version = version.filter(|version| !version.is_empty()).ok_or(Interruption::Unversioned)?;
        taker.take(Event::InitDone);
        // From now on, readers may rely on it.
        self.seen.observe(Some(&version));
        if self.status.synced() {
            tracing::info!(kind = self.kind, "watching");
        }
        Ok(version)
    }

    /// Delivers changes until a new list is needed.
    async fn watch(&mut self, mut version: String, taker: &mut Taker<impl FnMut(Event<Lenient<K>>)>) {
        loop {
            // A watch ends after a minute.
            taker.unread.tell_again();
            let began = Instant::now();
            match self.hear(&mut version, taker).await {
                Ok(()) if began.elapsed() > SHORT_WATCH => {}
                Ok(()) => sleep(self.backoff.before_retry()).await,
                Err(interruption) if interruption.is_expired() => {
                    tracing::debug!(
                        kind = self.kind,
                        "the resourceVersion {version} has expired; listing again"
                    );
                    return sleep(self.backoff.before_retry()).await;
                }
                Err(interruption) => {
                    if self.pause(interruption).await {
                        return;
                    }
                }
            }
        }
    }

    /// Delivers the changes after a version, which is advanced, until the server ends the watch.
    async fn hear(
        &mut self,
        version: &mut String,
        taker: &mut Taker<impl FnMut(Event<Lenient<K>>)>,
    ) -> Result<(), Interruption> {
        let mut changes = pin!(self.source.changes(version).await?);
        self.status.alive();
        while let Ok(Some(change)) = timeout(IDLE_TIMEOUT, changes.next()).await {
            let change = match change {
                Err(interruption) if interruption.is_cut_off() => break,
                change => change?,
            };
            let reached = match change {
                Change::Applied(object) => {
                    let reached = object.resource_version().map(str::to_owned);
                    taker.take(Event::Apply(object));
                    reached
                }
                Change::Deleted(object) => {
                    let reached = object.resource_version().map(str::to_owned);
                    taker.take(Event::Delete(object));
                    reached
                }
                Change::Reached(version) => Some(version),
            };
            if let Some(reached) = reached.filter(|reached| !reached.is_empty()) {
                self.seen.observe(Some(&reached));
                *version = reached;
            }
        }
        Ok(())
    }

    /// Reports an interruption and pauses. True if the kind is gone, because a new kind with its name is another one.
    async fn pause(&mut self, interruption: Interruption) -> bool {
        self.metrics.watch_errors.get_or_create(&Metrics::of(&self.kind)).inc();
        let failure = interruption.explain(&self.kind);
        let is_gone = matches!(failure, WatchFailure::NotServed(_));
        let text = failure.text().to_owned();
        if self.status.failed(failure) {
            tracing::warn!(kind = self.kind, "{text}");
        }
        let delay = if is_gone { WatchBackoff::while_not_served() } else { self.backoff.after_failure() };
        sleep(delay).await;
        is_gone
    }
}

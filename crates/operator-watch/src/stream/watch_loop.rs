//! A list and the watch that continues it, forever.
//!
//! kube's `watcher` has no time limit for a page or the start of a watch, and does not report the start. It resumes an
//! old version of a kind that was deleted and created again, and drops a whole page if one object cannot be decoded.

use std::{
    collections::{HashMap, HashSet},
    io,
    mem::take,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use futures::StreamExt;
use kube::{Resource, api::DynamicObject, discovery::ApiResource, runtime::watcher::Event};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::{
    Report, Watch,
    requests::{Versions, WATCH_SECONDS, WatchLine, WatchLineType},
};
use crate::{
    ApiError, Cause, Failure, SeenVersion, Verb,
    decode::{Received, Unreadable},
    health::WatchStatus,
};

/// Objects per page of a list, unless they are large. Its text is in memory until they are all decoded.
const PAGE: u32 = 50;
/// Maximum silence of a watch: the server ends it, or reports its progress, at least once a minute.
const IDLE_TIMEOUT: Duration = Duration::from_secs(65);
/// Time without a change or a bookmark after which it is asked whether the server has the version at all, as after a request without
/// an answer. A watch from one that it has not reached, because its data was restored from a backup, shows nothing until it gets
/// there, and nothing of what was before; so does that of a kind at rest on a server whose storage does not report its progress.
const MAX_SILENCE: Duration = Duration::from_secs(55);
/// Time limit of that question: the watch fails by itself.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The code of an answer that the version is too old, or belongs to a former definition of the kind, so that a new list is
/// needed.
const EXPIRED: u16 = 410;
/// Minimum duration of a watch that works although it shows nothing, and that is restarted without a pause.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// Duration below which the server has ended a watch before its time, as it does when it has taken over a new definition of the
/// kind. Until then, it shows objects by the former one, so that fields and defaults that are new are missing.
const EARLY_END: Duration = Duration::from_secs(WATCH_SECONDS as u64 - 1);
/// The first pause after a failure, and the longest one.
const MIN_DELAY: Duration = Duration::from_millis(800);
const MAX_DELAY: Duration = Duration::from_secs(10);
/// The first pause before a remedy that usually helps at once.
const AT_ONCE: Duration = Duration::ZERO;
/// Time between tries while a kind is not served: an object that is created right after its kind must not wait long for
/// its controller.
const UNSERVED_DELAY: Duration = Duration::from_secs(2);
/// Time without a failure after which the backoff is reset.
const RESET_AFTER: Duration = Duration::from_secs(25);

/// How a watch that worked has ended.
struct Ended {
    /// It has shown neither a change nor a bookmark.
    is_silent: bool,
    /// The connection was not cut.
    is_by_server: bool,
}

/// Whether the connection was broken, perhaps within a line, which comes again.
fn is_cut(error: &kube::Error) -> bool {
    match error {
        kube::Error::SerdeError(error) => error.is_eof(),
        kube::Error::ReadEvents(error) => error.kind() != io::ErrorKind::InvalidData,
        _ => false,
    }
}

/// The list and the watch of one kind.
pub(super) struct WatchLoop<K, F> {
    pub watch: Watch<K>,
    pub status: WatchStatus,
    pub seen: SeenVersion,
    pub backoff: WatchBackoff,
    /// Unreadable objects are reported to it.
    pub unreadable: UnreadableObjects,
    /// Each event is passed to it.
    pub take: F,
}

impl<K, F> WatchLoop<K, F>
where
    K: Resource + DeserializeOwned,
    F: FnMut(Event<Received<K>>),
{
    /// Delivers all objects, then each change; after an interruption that it cannot resume from, all objects again.
    pub async fn run(mut self) {
        loop {
            self.unreadable.report_again();
            match self.list().await {
                Ok(version) => self.watch(version).await,
                Err(error) => _ = self.pause(error).await,
            }
        }
    }

    /// Delivers all objects, and returns their resourceVersion.
    async fn list(&mut self) -> Result<String, ApiError> {
        self.status.listing();
        (self.take)(self.unreadable.observe(Event::Init));
        let (mut token, mut limit) = (None, PAGE);
        let version = loop {
            let take = |object| (self.take)(self.unreadable.observe(Event::InitApply(object)));
            let list =
                self.watch.page(&mut limit, token, take).await.map_err(|error| self.failure(&error))?;
            self.status.progressed();
            limit = limit.min(PAGE);
            token = list.continue_.filter(|token| !token.is_empty());
            if token.is_none() {
                break list.resource_version;
            }
        };
        let version = version.filter(|version| !version.is_empty());
        let version = version.ok_or_else(|| self.useless("its list has no resourceVersion"))?;
        (self.take)(self.unreadable.observe(Event::InitDone));
        // From now on, readers may rely on it.
        self.seen.listed(&version);
        if self.status.synced() {
            tracing::info!(kind = self.watch.kind, "watching");
        }
        Ok(version)
    }

    /// Delivers changes until a new list is needed.
    async fn watch(&mut self, mut version: String) {
        let (mut silence, mut is_doubtful) = (Duration::ZERO, false);
        loop {
            // A watch ends after a minute.
            self.unreadable.report_again();
            if self.changes_version(false).await {
                return;
            }
            if is_doubtful && let Some(has_gone_back) = self.has_gone_back(&version).await {
                if has_gone_back {
                    let kind = &self.watch.kind;
                    tracing::info!(kind, "the data is older than {version}; listing again");
                    return;
                }
                is_doubtful = false;
            }
            let began = Instant::now();
            match self.receive(&mut version).await {
                Ok(Ended { is_silent, is_by_server }) => {
                    silence = if is_silent { silence + began.elapsed() } else { Duration::ZERO };
                    if silence > MAX_SILENCE {
                        (silence, is_doubtful) = (Duration::ZERO, true);
                    }
                    if is_by_server && self.watch.is_definable() && began.elapsed() < EARLY_END {
                        self.status.redefined();
                        return sleep(self.backoff.pause(AT_ONCE)).await;
                    }
                    if began.elapsed() <= SHORT_WATCH {
                        sleep(self.backoff.pause(AT_ONCE)).await;
                    }
                }
                Err(error) if error.code == EXPIRED => {
                    let kind = &self.watch.kind;
                    tracing::debug!(kind, "the resourceVersion {version} has expired; listing again");
                    return sleep(self.backoff.pause(AT_ONCE)).await;
                }
                Err(error) => {
                    // Perhaps it was stopped to restore its data, which may soon reach the version again.
                    is_doubtful |=
                        matches!(error.cause, Cause::Unanswered | Cause::Silent) || error.code >= 500;
                    if self.pause(error).await {
                        return;
                    }
                }
            }
        }
    }

    /// Whether the server's data is older than a version; `None` without an answer.
    async fn has_gone_back(&self, version: &str) -> Option<bool> {
        let list = timeout(QUESTION_TIMEOUT, self.watch.page(&mut 1, None, drop)).await.ok()?.ok()?;
        let now = list.resource_version.unwrap_or_default();
        let numbers = [now.as_str(), version].map(str::parse::<u64>);
        // Other versions than numbers have no order.
        Some(matches!(numbers, [Ok(now), Ok(then)] if now < then))
    }

    /// Delivers the changes after a version, which is advanced, until the watch ends.
    async fn receive(&mut self, version: &mut String) -> Result<Ended, ApiError> {
        let changes = self.watch.changes(version).await.map_err(|error| self.failure(&error))?;
        let mut changes = pin!(changes.peekable());
        let works = matches!(timeout(SHORT_WATCH, changes.as_mut().peek()).await, Err(_) | Ok(Some(Ok(_))));
        if works {
            self.status.alive();
        }
        let mut ended = Ended { is_silent: true, is_by_server: true };
        while let Some(change) = timeout(IDLE_TIMEOUT, changes.next()).await.unwrap_or_default() {
            let change = match change {
                Err(error) if is_cut(&error) => {
                    ended.is_by_server = false;
                    break;
                }
                change => change.map_err(|error| self.failure(&error))?,
            };
            ended.is_silent = false;
            let WatchLine { r#type, object } = change;
            let reached = object.resource_version().filter(|version| !version.is_empty()).map(str::to_owned);
            match r#type {
                WatchLineType::Added | WatchLineType::Modified => {
                    (self.take)(self.unreadable.observe(Event::Apply(object)));
                }
                WatchLineType::Deleted => (self.take)(self.unreadable.observe(Event::Delete(object))),
                WatchLineType::Bookmark | WatchLineType::Error => {}
            }
            if let Some(reached) = reached {
                self.seen.observe(Some(&reached));
                *version = reached;
            }
        }
        if works { Ok(ended) } else { Err(self.useless("the watch ends as soon as it has started")) }
    }

    /// Looks for a served version if the watched one is not, and for the wanted one while another is watched. True if it is to be
    /// listed now.
    async fn changes_version(&mut self, is_unserved: bool) -> bool {
        let Some(Versions { served, wanted, substitute }) = &mut self.watch.versions else { return false };
        let found = match (is_unserved, &substitute) {
            (true, _) => served.find_again(wanted).await,
            (false, Some(_)) => served.find(wanted).await,
            (false, None) => return false,
        };
        // A failed look-up is repeated with the next request.
        let Ok(Some((found, _))) = found else { return false };
        if found == **substitute.as_ref().unwrap_or(wanted) {
            return false;
        }
        self.watch.path = DynamicObject::url_path(&found, None);
        *substitute = Some(found).filter(|found| *found != **wanted).map(Arc::new);
        if let Some(other) = substitute {
            tracing::warn!(
                kind = self.watch.kind,
                "{} is not served, so {} is used instead; set a served version in the settings",
                wanted.api_version,
                other.api_version
            );
        }
        self.unreadable.resource.clone_from(substitute.as_ref().unwrap_or(wanted));
        self.status.substituted(substitute.clone());
        true
    }

    fn failure(&self, error: &kube::Error) -> ApiError {
        ApiError::of(Verb::Watch, error, (&*self.watch.kind, ""))
    }

    /// The failure of a request with a useless answer.
    fn useless(&self, why: &str) -> ApiError {
        ApiError::new(Verb::Watch, (&*self.watch.kind, ""), Cause::Failed, why)
    }

    /// Reports a failure and pauses. True if the kind is gone, because a new kind with its name is another one.
    async fn pause(&mut self, error: ApiError) -> bool {
        self.unreadable.report.failed(&self.watch.kind);
        let (text, is_gone) = (error.to_string(), error.cause == Cause::KindNotServed);
        if self.status.failed(error) {
            tracing::warn!(kind = self.watch.kind, "{text}");
        }
        if is_gone && self.changes_version(true).await {
            return true;
        }
        let delay = if is_gone { jittered(UNSERVED_DELAY) } else { self.backoff.pause(MIN_DELAY) };
        sleep(delay).await;
        is_gone
    }
}

/// The backoff of a watch: 0.8 s, doubling to 10 s, with jitter.
#[derive(Default)]
pub(super) struct WatchBackoff {
    next: Duration,
    last: Option<Instant>,
}

impl WatchBackoff {
    /// The next pause; `first` if there was none recently.
    fn pause(&mut self, first: Duration) -> Duration {
        let is_recent = self.last.is_some_and(|last| last.elapsed() < RESET_AFTER);
        let pause = if is_recent { self.next.max(MIN_DELAY) } else { first };
        let delay = jittered(pause);
        self.next = (pause * 2).min(MAX_DELAY);
        self.last = Some(Instant::now() + delay);
        delay
    }
}

fn jittered(delay: Duration) -> Duration {
    delay.mul_f64(0.8 + 0.2 * rand::random::<f64>())
}

/// The unreadable objects of a watch: each is reported, again before its Event expires, and counted until it can be read
/// or is gone.
pub(crate) struct UnreadableObjects {
    kind: String,
    /// That of objects that do not say theirs, which are the items of a list of a built-in kind.
    resource: Arc<ApiResource>,
    /// [`Watch::reported_as`].
    reason: Option<&'static str>,
    pub report: Arc<dyn Report>,
    /// By uid.
    known: HashMap<String, Unreadable>,
    /// The uids of those that the current list has not shown yet.
    unlisted: HashSet<String>,
}

impl UnreadableObjects {
    pub fn of<K>(watch: &Watch<K>, report: Arc<dyn Report>) -> Self {
        let (kind, resource, reason) = (watch.kind.clone(), watch.resource.clone(), watch.mistake_reason);
        let unreadable =
            Self { kind, resource, reason, report, known: HashMap::new(), unlisted: HashSet::new() };
        unreadable.count();
        unreadable
    }

    /// Takes note of an event, and passes it on.
    pub fn observe<K: Resource>(&mut self, event: Event<Received<K>>) -> Event<Received<K>> {
        match &event {
            Event::Init => self.unlisted = self.known.keys().cloned().collect(),
            Event::InitApply(Received(Err(unreadable))) | Event::Apply(Received(Err(unreadable))) => {
                self.found(unreadable.clone());
            }
            Event::InitApply(Received(Ok(_))) => {}
            Event::Apply(object) | Event::Delete(object) => self.forget(object.uid()),
            Event::InitDone => take(&mut self.unlisted).iter().for_each(|uid| self.forget(uid)),
        }
        event
    }

    /// Reports those again whose Events expire soon, and those that the queue of Events had no room for.
    pub fn report_again(&self) {
        self.known.values().for_each(|unreadable| self.report_one(unreadable));
    }

    fn found(&mut self, mut unreadable: Unreadable) {
        let Unreadable { object, error } = &mut unreadable;
        let ApiResource { api_version, kind, .. } = &*self.resource;
        object.api_version.get_or_insert_with(|| api_version.clone());
        object.kind.get_or_insert_with(|| kind.clone());
        object.resource_version = None;
        let uid = object.uid.clone().unwrap_or_default();
        self.unlisted.remove(&uid);
        if self.known.get(&uid).is_none_or(|known| known.error != *error) {
            self.forget(&uid);
            let name = [&object.namespace, &object.name].map(|part| part.as_deref().unwrap_or_default());
            tracing::error!(kind = self.kind, object = name.join("/"), "{}", text(error));
        }
        self.report_one(&unreadable);
        self.known.insert(uid, unreadable);
        self.count();
    }

    fn forget(&mut self, uid: &str) {
        let Some(Unreadable { object, error }) = self.known.remove(uid) else { return };
        self.report.is_mended(&object, &error);
        self.count();
    }

    fn report_one(&self, Unreadable { object, error }: &Unreadable) {
        let failure = match self.reason {
            Some(reason) => Failure::transient(reason, error),
            None => Failure::transient("Unreadable", text(error)),
        };
        self.report.is_unreadable(object, error, &failure);
    }

    fn count(&self) {
        self.report.unreadable(&self.kind, self.known.len());
    }
}

impl Drop for UnreadableObjects {
    fn drop(&mut self) {
        self.known.clear();
        self.count();
    }
}

fn text(error: &str) -> String {
    format!("this object cannot be read and is skipped until it can: {error}; correct or delete it")
}

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use jiff::Timestamp;
use operator_watch::{Failure, NextRetry};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::report::failures::REPEATED_WRITES;

/// First delay after a failure.
const MIN_DELAY: Duration = Duration::from_secs(5);
/// Longest delay after failures, unless the controller asks for a shorter one.
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(300);
/// Longest delay after a failure that passes by itself, or for which the server asked for a delay.
const MAX_PASSING_DELAY: Duration = Duration::from_secs(60);

/// Failures in a row after which a delay that the server asked for grows too, and after which expected failures are
/// reported.
const PATIENT_FAILURES: u32 = 10;

/// Minimum time between a try and a retry because of another retry key: keys can change in quick succession.
const RETRY_KEY_DELAY: Duration = Duration::from_secs(1);

/// Maximum retries per second of all objects and their items together, in the long run: above it, the longest delay grows.
const RETRIES_PER_SECOND: u64 = 20;

/// The step of a failure that holds up everything, such as one of observing.
pub(crate) const EVERYTHING: &str = "";

/// What a failure belongs to: with another generation of the object or another epoch, it is retried at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RetryFingerprint {
    pub generation: i64,
    /// Rises with each change of the settings, and when a watch recovers, loses its kind or gets a new definition of it.
    pub epoch: u64,
}

/// One run of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepRun {
    /// Its name.
    pub step: &'static str,
    /// The retry key of the step right before it.
    pub retry_key: u64,
    /// The longest delay, if it failed.
    pub longest: Duration,
    /// Whether a part of it succeeded nevertheless.
    pub has_progressed: bool,
}

/// The backoff of each object, by uid: exponential with jitter for each step and item separately, respected also when
/// an event comes early, reset by progress, forgotten on deletion. kube-runtime has no such backoff.
#[derive(Default)]
pub(crate) struct AllBackoffs {
    objects: Mutex<Objects>,
}

#[derive(Default)]
struct Objects {
    by_uid: HashMap<String, Object>,
    /// The number of failed parts of all of them; each is retried by itself.
    parts: usize,
    /// The uids of those that are not only remembered for their items.
    failing: HashSet<String>,
}

impl Objects {
    fn remove(&mut self, uid: &str) {
        self.failing.remove(uid);
        let removed = self.by_uid.remove(uid);
        self.parts -= removed.map_or(0, |object| object.failed.len());
    }
}

struct Object {
    fingerprint: RetryFingerprint,
    since: Instant,
    failed: HashMap<FailedPart, Entry>,
}

/// A failed step as a whole, or one failed item of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct FailedPart {
    step: &'static str,
    item: Option<String>,
}

impl FailedPart {
    /// Whether another retry key makes it worth a retry: not where the server, or the brake on repeated writes, asked for a delay.
    fn may_be_lifted(&self, failure: &Failure) -> bool {
        let is_braked = failure.retry_after.is_some() || failure.reason == REPEATED_WRITES;
        self.item.is_none() && !failure.is_expected && !is_braked
    }
}

struct Entry {
    failure: Failure,
    retry_key: u64,
    failures: u32,
    tried_at: Instant,
    retry_at: Instant,
}

impl Entry {
    /// The time until which the failure of an item is remembered after its retry became due: skipped items count
    /// differently, and their turn may come later.
    fn forgotten_at(&self, place: &FailedPart) -> Option<Instant> {
        place.item.is_some().then(|| self.retry_at + MAX_DELAY)
    }
}

impl AllBackoffs {
    /// The steps that are allowed now, and the time when more are. `retry_key` gives the key whose change makes a step
    /// that failed as a whole worth a retry. What passes by itself, such as a namespace that ends with its pods, does not
    /// pass earlier because of it.
    pub fn of(
        &self,
        uid: &str,
        fingerprint: RetryFingerprint,
        retry_key: impl Fn(&'static str) -> u64,
    ) -> (Backoffs, Option<Duration>) {
        let mut objects = self.objects.lock();
        let (mut everything, mut backoffs, mut next) = (None, Backoffs::default(), None);
        let Some(object) = objects.by_uid.get_mut(uid) else { return (backoffs, None) };
        if object.fingerprint != fingerprint {
            objects.remove(uid);
            return (backoffs, None);
        }
        let now = Instant::now();
        for (place, entry) in &mut object.failed {
            if place.may_be_lifted(&entry.failure) && entry.retry_key != retry_key(place.step) {
                entry.retry_at = entry.retry_at.min(entry.tried_at + RETRY_KEY_DELAY);
            }
            let is_due = entry.retry_at <= now;
            let until = if is_due { entry.forgotten_at(place) } else { Some(entry.retry_at) };
            next = next.into_iter().chain(until.filter(|until| *until > now)).min();
            let mut failure = entry.failure.clone();
            if is_due {
                // Its turn may never come, for example if the item is no longer wanted.
                failure.next_retry = None;
            }
            match &place.item {
                None if is_due => {}
                None if place.step == EVERYTHING => everything = Some(failure),
                item => backoffs = backoffs.and(place.step, item.as_deref(), failure, is_due),
            }
        }
        let next = next.map(|until| until - now);
        (everything.map_or(backoffs, Backoffs::of_everything), next)
    }

    /// Records a failed part of a step, and returns the failure unless it is expected. With another retry key, a failure of the
    /// step as a whole counts from one; to people it is the same, as such a key may change all the time.
    pub fn failed(
        &self,
        uid: &str,
        fingerprint: RetryFingerprint,
        run: StepRun,
        mut failure: Failure,
    ) -> Option<Failure> {
        let objects = &mut *self.objects.lock();
        let longest = run.longest.max(spread(objects.parts));
        let new = || Object { fingerprint, since: Instant::now(), failed: HashMap::default() };
        let object = objects.by_uid.entry(uid.to_owned()).or_insert_with(new);
        let retry_after = failure.retry_after;
        let place = FailedPart { step: run.step, item: failure.item.clone() };
        let known = object.failed.get(&place);
        let may_be_lifted = place.may_be_lifted(&failure);
        let is_another = known.is_some_and(|known| may_be_lifted && known.retry_key != run.retry_key);
        let counts = !is_another && (place.item.is_some() || !run.has_progressed);
        let before = known.filter(|_| counts);
        let failures = before.map_or(1, |before| before.failures.saturating_add(1));
        let passes = failure.is_expected || retry_after.is_some();
        failure.is_expected &= failures <= PATIENT_FAILURES;
        let longest = if passes { longest.min(MAX_PASSING_DELAY) } else { longest };
        let delay = delay(failures, retry_after, longest);
        let unexpected = (!failure.is_expected).then(|| failure.clone());
        // Computed once, so that the reported time does not vary from pass to pass.
        failure.next_retry = Some(NextRetry::after(delay, Timestamp::now()));
        let (retry_key, tried_at) = (run.retry_key, Instant::now());
        let entry = Entry { failure, retry_key, failures, tried_at, retry_at: tried_at + delay };
        object.fingerprint = fingerprint;
        objects.failing.insert(uid.to_owned());
        objects.parts += usize::from(object.failed.insert(place, entry).is_none());
        unexpected
    }

    /// When an object began to fail with its present fingerprint.
    pub fn failing_since(&self, uid: &str) -> Option<Instant> {
        self.objects.lock().by_uid.get(uid).map(|object| object.since)
    }

    /// Forgets the failure of a step that succeeded now. Its items stay, because the step may have left them out.
    pub fn progressed(&self, uid: &str, step: &'static str) {
        self.retain(uid, |place, _| place.step != step || place.item.is_some());
    }

    /// Forgets failures that are due for a retry but were not retried: they no longer matter.
    pub fn settled(&self, uid: &str) {
        let now = Instant::now();
        self.retain(uid, |place, entry| {
            entry.retry_at > now || entry.forgotten_at(place).is_some_and(|then| then > now)
        });
        let objects = &mut *self.objects.lock();
        let is_held = |object: &Object| object.failed.values().any(|entry| entry.retry_at > now);
        if !objects.by_uid.get(uid).is_some_and(is_held) {
            objects.failing.remove(uid);
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.objects.lock().remove(uid);
    }

    /// The number of objects that are backing off.
    pub fn len(&self) -> usize {
        self.objects.lock().failing.len()
    }

    fn retain(&self, uid: &str, keep: impl Fn(&FailedPart, &Entry) -> bool) {
        let objects = &mut *self.objects.lock();
        if let Some(object) = objects.by_uid.get_mut(uid) {
            let before = object.failed.len();
            object.failed.retain(|place, entry| keep(place, entry));
            objects.parts -= before - object.failed.len();
            if object.failed.is_empty() {
                objects.remove(uid);
            }
        }
    }
}

/// 5 s, 10 s, 20 s … up to the longest; or the delay that the error asks for, which grows in the same way after many
/// failures in a row. A jitter of up to a fifth is added, so that simultaneous failures are not retried simultaneously.
fn delay(failures: u32, retry_after: Option<Duration>, longest: Duration) -> Duration {
    let (first, doublings) = match retry_after {
        // Whoever answers for the server, such as a webhook, may ask for any time.
        Some(asked) => (asked.min(MAX_DELAY), failures.saturating_sub(PATIENT_FAILURES)),
        None => (MIN_DELAY, failures.saturating_sub(1)),
    };
    let base = first.saturating_mul(1 << doublings.min(16)).min(longest.max(first));
    base.mul_f64(1.0 + 0.2 * rand::random::<f64>())
}

/// The delay at which this number of failed parts causes no more than [`RETRIES_PER_SECOND`].
fn spread(parts: usize) -> Duration {
    let seconds = u64::try_from(parts).unwrap_or(u64::MAX) / RETRIES_PER_SECOND;
    Duration::from_secs(seconds).min(MAX_DELAY)
}

/// The failures from which an object is backing off, by step and item, or without an item for the step as a whole. A pass may
/// take any other step. They include the items that may be retried.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Backoffs(BTreeMap<&'static str, BTreeMap<Option<String>, BackingOff>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct BackingOff {
    failure: Failure,
    /// Whether it may be retried.
    is_due: bool,
}

impl Backoffs {
    /// Those of an object that backs off from everything.
    #[must_use]
    pub fn of_everything(failure: Failure) -> Self {
        Self::default().and(EVERYTHING, None, failure, false)
    }

    /// Whether there is none: a pass may do anything.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The failure that holds up everything: a pass may only report it.
    #[must_use]
    pub fn everything(&self) -> Option<&Failure> {
        self.part(EVERYTHING, None).map(|part| &part.failure)
    }

    /// The failure that holds up everything, or else a step; failures that pass by themselves are not reported.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        let mut steps = self.0.values().filter_map(|parts| Some(&parts.get(&None)?.failure));
        self.everything().or_else(|| steps.find(|failure| !failure.is_expected))
    }

    /// The failure that holds up one step as a whole.
    #[must_use]
    pub fn step_failure(&self, step: &str) -> Option<&Failure> {
        self.everything().or_else(|| Some(&self.part(step, None)?.failure))
    }

    /// The failure of an item of a step that still matters; failures that pass by themselves are not reported.
    #[must_use]
    pub fn item_failure(&self, step: &str, matters: impl Fn(&str) -> bool) -> Option<&Failure> {
        let of_items = self.0.get(step)?.iter().filter(|(item, _)| item.as_deref().is_some_and(&matters));
        of_items.map(|(_, part)| &part.failure).find(|failure| !failure.is_expected)
    }

    /// Whether a step is held up.
    #[must_use]
    pub fn is_backing_off(&self, step: &str) -> bool {
        self.step_failure(step).is_some()
    }

    /// Whether a step is held up for one item.
    #[must_use]
    pub fn is_item_backing_off(&self, step: &str, item: &str) -> bool {
        self.is_backing_off(step) || self.part(step, Some(item)).is_some_and(|part| !part.is_due)
    }

    /// The failure of the last try of a step for an item; it may be due for a retry.
    #[must_use]
    pub fn last_failure(&self, step: &str, item: &str) -> Option<&Failure> {
        self.part(step, Some(item)).map(|part| &part.failure)
    }

    /// The items of a step that are held up, each by itself.
    pub fn backing_off_items(&self, step: &str) -> impl Iterator<Item = &str> {
        let parts = self.0.get(step).into_iter().flatten();
        parts.filter(|(_, part)| !part.is_due).filter_map(|(item, _)| item.as_deref())
    }

    /// The same, and this part of a step.
    #[must_use]
    pub(crate) fn and(
        mut self,
        step: &'static str,
        item: Option<&str>,
        failure: Failure,
        is_due: bool,
    ) -> Self {
        let item = item.map(str::to_owned);
        self.0.entry(step).or_default().insert(item, BackingOff { failure, is_due });
        self
    }

    fn part(&self, step: &str, item: Option<&str>) -> Option<&BackingOff> {
        self.0.get(step)?.get(&item.map(str::to_owned))
    }
}

#[cfg(test)]
mod tests;

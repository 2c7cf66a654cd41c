use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::Failure;

/// First delay after a failure.
const FIRST: Duration = Duration::from_secs(5);
/// Longest delay after failures.
const LONGEST: Duration = Duration::from_secs(300);

/// Failures in a row after which a delay of their own is not believed any more.
const BRIEFLY: u32 = 10;

/// What a pass over an object may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Anything.
    Allowed,
    /// Nothing but reporting the failure: the object is backing off from it.
    Deferred(Failure),
}

impl Attempt {
    /// The failure that the object is backing off from.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Allowed => None,
            Self::Deferred(failure) => Some(failure),
        }
    }
}

/// What a failure belongs to: another generation of the object or of the settings is tried at once, and so is
/// what the controller says is an occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub generation: i64,
    pub settings: u64,
    pub occasion: u64,
}

struct Entry {
    failure: Failure,
    version: Version,
    failures: u32,
    retry_at: Instant,
}

/// The backoff of each object, by uid: exponential with jitter, respected also when an event comes early,
/// reset on success, forgotten on delete. kube-runtime has none.
#[derive(Default)]
pub(crate) struct Backoff(Mutex<HashMap<String, Entry>>);

impl Backoff {
    /// Whether the object may be acted on now, and if not, when.
    pub fn attempt(&self, uid: &str, version: Version) -> (Attempt, Option<Duration>) {
        let mut entries = self.lock();
        match entries.get(uid) {
            Some(entry) if entry.version != version => {
                entries.remove(uid);
                (Attempt::Allowed, None)
            }
            Some(entry) => {
                let left = entry.retry_at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    (Attempt::Allowed, None)
                } else {
                    (Attempt::Deferred(entry.failure.clone()), Some(left))
                }
            }
            None => (Attempt::Allowed, None),
        }
    }

    /// Records a failure. True when it is another one than before, and so worth an Event.
    pub fn failed(
        &self,
        uid: &str,
        version: Version,
        failure: Failure,
        retry_after: Option<Duration>,
    ) -> bool {
        let mut entries = self.lock();
        let (failures, is_new) = match entries.get(uid) {
            Some(entry) => (entry.failures + 1, entry.failure.reason != failure.reason),
            None => (1, true),
        };
        // What the server asked for, or what usually passes at once, unless it goes on and on.
        let delay = retry_after.filter(|_| failures <= BRIEFLY).unwrap_or_else(|| delay(failures));
        let entry = Entry { failure, version, failures, retry_at: Instant::now() + delay };
        entries.insert(uid.to_owned(), entry);
        is_new
    }

    /// Forgets an object that succeeded or is gone.
    pub fn forget(&self, uid: &str) {
        self.lock().remove(uid);
    }

    /// How many objects are backing off.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 5 s, 10 s, 20 s … 5 min, each up to a fifth longer, so that what failed together is not retried together.
fn delay(failures: u32) -> Duration {
    let base = FIRST.saturating_mul(1 << failures.saturating_sub(1).min(6)).min(LONGEST);
    base.mul_f64(1.0 + 0.2 * rand::random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Category;

    const VERSION: Version = Version { generation: 1, settings: 1, occasion: 0 };

    fn failure(category: Category) -> Failure {
        Failure { category, reason: "Broken", message: "it broke".into(), is_expected: false }
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_comes_early_does_not_shorten_the_backoff() {
        let backoff = Backoff::default();
        backoff.failed("a", VERSION, failure(Category::Transient), None);
        let (attempt, left) = backoff.attempt("a", VERSION);
        assert_eq!(attempt.failure().unwrap().reason, "Broken");
        assert!(left.unwrap() >= Duration::from_millis(4_900));
        tokio::time::advance(Duration::from_secs(7)).await;
        assert_eq!(backoff.attempt("a", VERSION).0, Attempt::Allowed);
    }

    #[tokio::test(start_paused = true)]
    async fn delays_double_up_to_five_minutes() {
        let backoff = Backoff::default();
        let mut longest = Duration::ZERO;
        for expected in [5, 10, 20, 40, 80, 160, 300, 300] {
            backoff.failed("a", VERSION, failure(Category::Transient), None);
            let left = backoff.attempt("a", VERSION).1.unwrap().as_secs_f64();
            let expected = f64::from(expected);
            assert!((expected..=expected * 1.2).contains(&left), "{left} s instead of about {expected} s");
            longest = longest.max(Duration::from_secs_f64(left));
        }
        assert!(longest <= LONGEST.mul_f64(1.2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_changed_object_or_setting_or_an_occasion_is_tried_at_once() {
        let backoff = Backoff::default();
        let others = [
            Version { generation: 2, ..VERSION },
            Version { settings: 2, ..VERSION },
            Version { occasion: 1, ..VERSION },
        ];
        for version in others {
            backoff.failed("a", VERSION, failure(Category::WaitsForChange), None);
            assert_eq!(backoff.attempt("a", version).0, Attempt::Allowed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn success_and_deletion_forget_the_failures() {
        let backoff = Backoff::default();
        backoff.failed("a", VERSION, failure(Category::Transient), None);
        backoff.forget("a");
        assert_eq!((backoff.attempt("a", VERSION).0, backoff.len()), (Attempt::Allowed, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn only_another_reason_is_news() {
        let backoff = Backoff::default();
        assert!(backoff.failed("a", VERSION, failure(Category::Transient), None));
        assert!(!backoff.failed("a", VERSION, failure(Category::Transient), None));
    }
}

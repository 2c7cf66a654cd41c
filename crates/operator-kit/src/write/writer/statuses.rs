//! The memory of each object's status: when this process wrote it, or first saw the object.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::report::StatusAge;

/// Number of first statuses a second that may tell of mere numbers.
const FIRST_STATUSES_PER_SECOND: u32 = 20;
/// Maximum delay of a first status because of others.
const MAX_CROWDING: Duration = Duration::from_secs(30);

/// The memory of all statuses, by the uid of their object.
#[derive(Default)]
pub(super) struct Statuses {
    by_uid: HashMap<String, Status>,
    /// The number of those that nobody has written yet.
    first: u32,
}

enum Status {
    /// The time at which this process wrote it.
    Written(Instant),
    /// This process has not written it yet; the time of the first question about the object, and whether it is its first one.
    Unwritten { since: Instant, is_first: bool },
}

impl Statuses {
    /// The age of an object's status. A first status counts as younger, the more others there are: where many objects are created
    /// at once, the API server is busy, and a status with mere numbers costs it more than a pod.
    pub fn age(&mut self, uid: &str, is_first: bool) -> StatusAge {
        let since = match self.by_uid.get_mut(uid) {
            Some(Status::Written(then)) => return StatusAge::Written(then.elapsed()),
            Some(Status::Unwritten { since, is_first: was_first }) => {
                // Another process has written it, or the answer to a write was lost.
                if *was_first && !is_first {
                    *was_first = false;
                    self.first -= 1;
                }
                *since
            }
            None => {
                self.by_uid.insert(uid.to_owned(), Status::Unwritten { since: Instant::now(), is_first });
                self.first += u32::from(is_first);
                return StatusAge::Unwritten(Duration::ZERO);
            }
        };
        let crowding = if is_first { self.crowding() } else { Duration::ZERO };
        StatusAge::Unwritten(since.elapsed().saturating_sub(crowding))
    }

    /// Records that a status was written.
    pub fn wrote(&mut self, uid: &str) {
        let before = self.by_uid.insert(uid.to_owned(), Status::Written(Instant::now()));
        self.replaced(before.as_ref());
    }

    /// Forgets an object that is gone.
    pub fn forget(&mut self, uid: &str) {
        let before = self.by_uid.remove(uid);
        self.replaced(before.as_ref());
    }

    fn replaced(&mut self, before: Option<&Status>) {
        if matches!(before, Some(Status::Unwritten { is_first: true, .. })) {
            self.first -= 1;
        }
    }

    fn crowding(&self) -> Duration {
        let others = self.first.saturating_sub(1);
        (Duration::from_secs(1) * others / FIRST_STATUSES_PER_SECOND).min(MAX_CROWDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_first_status_waits_longer_the_more_objects_have_none() {
        let (mut statuses, second) = (Statuses::default(), Duration::from_secs(1));
        assert_eq!(statuses.age("web", true), StatusAge::Unwritten(Duration::ZERO));
        tokio::time::advance(12 * second).await;
        assert_eq!(statuses.age("web", true), StatusAge::Unwritten(12 * second));
        for other in 0..100 {
            statuses.age(&other.to_string(), true);
        }
        assert_eq!(statuses.age("web", true), StatusAge::Unwritten(7 * second));
        for other in (0..100).map(|other| other.to_string()) {
            statuses.wrote(&other);
            statuses.wrote(&other);
            statuses.forget(&other);
            statuses.forget(&other);
        }
        assert_eq!(statuses.age("web", true), StatusAge::Unwritten(12 * second));
        for other in 0..10_000 {
            statuses.age(&other.to_string(), true);
        }
        tokio::time::advance(30 * second).await;
        assert_eq!(statuses.age("web", true), StatusAge::Unwritten(12 * second), "there is an end");
        statuses.wrote("web");
        tokio::time::advance(second).await;
        assert_eq!(statuses.age("web", true), StatusAge::Written(second));
    }

    /// Neither a new object nor one of those that were reported.
    async fn nobody_waits_for(statuses: &mut Statuses) {
        let delay = Duration::from_secs(12);
        statuses.age("new", true);
        tokio::time::advance(delay).await;
        assert_eq!(statuses.age("new", true), StatusAge::Unwritten(delay));
        assert_eq!(statuses.age("0", false), StatusAge::Unwritten(delay));
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_somebody_else_wrote_delays_no_other() {
        let mut statuses = Statuses::default();
        for is_first in [true, false] {
            for other in 0..600 {
                statuses.age(&other.to_string(), is_first);
            }
        }
        nobody_waits_for(&mut statuses).await;
    }

    #[tokio::test(start_paused = true)]
    async fn objects_that_a_former_leader_reported_delay_no_new_one() {
        let mut statuses = Statuses::default();
        for known in 0..10_000 {
            statuses.age(&known.to_string(), false);
        }
        nobody_waits_for(&mut statuses).await;
    }
}

//! When the status of an object was written.

use std::time::Duration;

use tokio::time::Instant;

use super::Records;
use crate::report::StatusAge;

/// Number of first statuses a second that may tell of mere numbers.
const FIRST_STATUSES_PER_SECOND: u32 = 20;
/// Maximum delay of a first status because of others.
const MAX_CROWDING: Duration = Duration::from_secs(30);

/// What this process knows of the last status of an object.
pub(super) enum LastStatus {
    /// The time at which this process wrote it.
    Written(Instant),
    /// This process has not written it yet; the time of the first question about the object, and whether it is its first one.
    Unwritten { since: Instant, is_first: bool },
}

impl LastStatus {
    pub fn is_unreported(&self) -> bool {
        matches!(self, Self::Unwritten { is_first: true, .. })
    }
}

impl Records {
    /// The age of an object's status. A first status counts as younger, the more others there are: where many objects are created
    /// at once, the API server is busy, and a status with mere numbers costs it more than a pod.
    pub fn status_age(&self, uid: &str, is_first: bool) -> StatusAge {
        let crowding = if is_first { crowding(self.totals().unreported) } else { Duration::ZERO };
        self.of(uid, |record| {
            let new = LastStatus::Unwritten { since: Instant::now(), is_first };
            match record.status.get_or_insert(new) {
                LastStatus::Written(then) => StatusAge::Written(then.elapsed()),
                LastStatus::Unwritten { since, is_first: was_first } => {
                    // Another process has written it, or the answer to a write was lost.
                    *was_first &= is_first;
                    StatusAge::Unwritten(since.elapsed().saturating_sub(crowding))
                }
            }
        })
    }

    /// Records that the status of an object was written.
    pub fn wrote_status(&self, uid: &str) {
        self.of(uid, |record| record.status = Some(LastStatus::Written(Instant::now())));
    }
}

fn crowding(unreported: u32) -> Duration {
    let others = unreported.saturating_sub(1);
    (Duration::from_secs(1) * others / FIRST_STATUSES_PER_SECOND).min(MAX_CROWDING)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn records() -> Records {
        Records::new(Arc::default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_status_waits_longer_the_more_objects_have_none() {
        let (statuses, second) = (records(), Duration::from_secs(1));
        assert_eq!(statuses.status_age("web", true), StatusAge::Unwritten(Duration::ZERO));
        tokio::time::advance(12 * second).await;
        assert_eq!(statuses.status_age("web", true), StatusAge::Unwritten(12 * second));
        for other in 0..100 {
            statuses.status_age(&other.to_string(), true);
        }
        assert_eq!(statuses.status_age("web", true), StatusAge::Unwritten(7 * second));
        for other in (0..100).map(|other| other.to_string()) {
            statuses.wrote_status(&other);
            statuses.wrote_status(&other);
            statuses.forget(&other);
            statuses.forget(&other);
        }
        assert_eq!(statuses.status_age("web", true), StatusAge::Unwritten(12 * second));
        for other in 0..10_000 {
            statuses.status_age(&other.to_string(), true);
        }
        tokio::time::advance(30 * second).await;
        assert_eq!(statuses.status_age("web", true), StatusAge::Unwritten(12 * second), "there is an end");
        statuses.wrote_status("web");
        tokio::time::advance(second).await;
        assert_eq!(statuses.status_age("web", true), StatusAge::Written(second));
    }

    /// Neither a new object nor one of those that were reported.
    async fn nobody_waits_for(statuses: &Records) {
        let delay = Duration::from_secs(12);
        statuses.status_age("new", true);
        tokio::time::advance(delay).await;
        assert_eq!(statuses.status_age("new", true), StatusAge::Unwritten(delay));
        assert_eq!(statuses.status_age("0", false), StatusAge::Unwritten(delay));
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_somebody_else_wrote_delays_no_other() {
        let statuses = records();
        for is_first in [true, false] {
            for other in 0..600 {
                statuses.status_age(&other.to_string(), is_first);
            }
        }
        nobody_waits_for(&statuses).await;
    }

    #[tokio::test(start_paused = true)]
    async fn objects_that_a_former_leader_reported_delay_no_new_one() {
        let statuses = records();
        for known in 0..10_000 {
            statuses.status_age(&known.to_string(), false);
        }
        nobody_waits_for(&statuses).await;
    }
}

//! The controllers that a test needs unchanged, and those that it changes. Tests that would disturb each other run one
//! after another; all others run concurrently.

use std::{
    cmp::Reverse,
    hash::{DefaultHasher, Hash, Hasher},
    sync::OnceLock,
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::Controller;

/// Maximum number of concurrent tests: they mostly wait, but the number of processors is limited.
fn max_concurrent_users() -> usize {
    // One etcd serves them all.
    let [fewest, most] = [6, 24];
    thread::available_parallelism().map_or(fewest, |processors| (3 * processors.get()).clamp(fewest, most))
}

/// The claim of a test on the cluster while it runs, beside tests that do not disturb it.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The controllers that must not change.
    pub(crate) uses: Vec<Controller>,
    /// Those that it kills, upgrades or confuses.
    pub(crate) changes: Vec<Controller>,
}

/// A claim that holds until this is dropped.
pub(crate) struct Held {
    id: u64,
    claim: Claim,
}

struct Entry {
    id: u64,
    claim: Claim,
    holds: bool,
    /// Whether the test takes more than a minute.
    is_long: bool,
    /// Its place in a shuffled order.
    rank: Option<u64>,
}

/// All waiting and holding claims, in the order of their arrival.
struct Claims {
    entries: Vec<Entry>,
    next: u64,
}

/// Time in which all tests have been started, so that their order is one of all of them.
const ARRIVAL: Duration = Duration::from_secs(1);

/// The seed of a shuffled order, from `CATENA_ORDER`. libtest can shuffle only with a nightly toolchain; and as it starts
/// all tests at once, it is their claims that decide which one runs first.
fn seed() -> Option<u64> {
    static SEED: OnceLock<Option<u64>> = OnceLock::new();
    *SEED.get_or_init(|| {
        let seed = std::env::var("CATENA_ORDER").ok()?.parse().ok()?;
        eprintln!("the same order again: CATENA_ORDER={seed}");
        Some(seed)
    })
}

/// All tests are in one process.
static CLAIMS: Mutex<Claims> = Mutex::new(Claims { entries: Vec::new(), next: 0 });
static ENDED: Notify = Notify::const_new();

/// Whether this test is in a module `long`.
fn is_long() -> bool {
    thread::current().name().is_some_and(|test| test.contains("::long::"))
}

impl Claim {
    /// Waits until the claim holds.
    pub(crate) async fn hold(self) -> Held {
        let rank = seed().map(|seed| {
            let mut hasher = DefaultHasher::new();
            (seed, thread::current().name()).hash(&mut hasher);
            hasher.finish()
        });
        let held = Held { id: CLAIMS.lock().ask(self.clone(), is_long(), rank), claim: self };
        tokio::time::sleep(ARRIVAL).await;
        loop {
            let ended = ENDED.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if CLAIMS.lock().try_hold(held.id) {
                // In a shuffled order, others may have waited for this one's turn.
                ENDED.notify_waiters();
                return held;
            }
            ended.await;
        }
    }

    fn excludes(&self, other: &Self) -> bool {
        self.changes.iter().any(|mine| other.uses.contains(mine) || other.changes.contains(mine))
            || self.uses.iter().any(|mine| other.changes.contains(mine))
    }
}

impl Held {
    /// Whether the test may change a controller.
    pub(crate) fn may_change(&self, controller: Controller) -> bool {
        self.claim.changes.contains(&controller)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        CLAIMS.lock().entries.retain(|entry| entry.id != self.id);
        ENDED.notify_waiters();
    }
}

impl Claims {
    fn ask(&mut self, claim: Claim, is_long: bool, rank: Option<u64>) -> u64 {
        self.next += 1;
        self.entries.push(Entry { id: self.next, claim, holds: false, is_long, rank });
        self.next
    }

    fn try_hold(&mut self, id: u64) -> bool {
        let Some(place) = self.entries.iter().position(|entry| entry.id == id) else { return false };
        let may = self.may_hold(place) && self.has_its_turn(place);
        if may {
            self.entries[place].holds = true;
        }
        may
    }

    /// In a shuffled order, a claim waits for those before it that could hold now.
    fn has_its_turn(&self, place: usize) -> bool {
        let Some(rank) = self.entries[place].rank else { return true };
        let is_before = |other: &Entry| !other.holds && other.rank.is_some_and(|other| other < rank);
        !(0..self.entries.len()).any(|other| is_before(&self.entries[other]) && self.may_hold(other))
    }

    /// Claims that only use a controller wait for all that change it: in a row, those wait only once until nobody uses it
    /// any more.
    fn may_hold(&self, place: usize) -> bool {
        let entry = &self.entries[place];
        let holding = self.entries.iter().filter(|other| other.holds);
        let is_full = holding.clone().count() >= max_concurrent_users();
        if is_full || holding.clone().any(|held| held.claim.excludes(&entry.claim)) {
            return false;
        }
        let is_change = |other: &&Entry| !other.claim.changes.is_empty();
        let is_next = |change: &Entry| {
            !holding.clone().filter(is_change).any(|held| held.claim.excludes(&change.claim))
        };
        let waiting = self.entries.iter().filter(|other| !other.holds && other.goes_before(entry));
        !waiting.filter(is_change).any(|change| change.claim.excludes(&entry.claim) && is_next(change))
    }
}

impl Entry {
    /// Claims that change more come first, so that others can run beside those that change less; claims that only use
    /// come last. Among those, long tests come first: none of the rest is left to wait for them at the end. A shuffled
    /// order takes its own.
    fn goes_before(&self, other: &Self) -> bool {
        if let (Some(rank), Some(theirs)) = (self.rank, other.rank) {
            return rank < theirs;
        }
        let place = |entry: &Self| (Reverse(entry.claim.changes.len()), !entry.is_long, entry.id);
        place(self) < place(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BACKUPS, BINDER, REAPER};

    fn uses(controllers: &[Controller]) -> Claim {
        Claim { uses: controllers.to_vec(), changes: Vec::new() }
    }

    fn changes(controllers: &[Controller]) -> Claim {
        changes_beside(controllers, &[])
    }

    fn changes_beside(changes: &[Controller], uses: &[Controller]) -> Claim {
        Claim { uses: uses.to_vec(), changes: changes.to_vec() }
    }

    /// The claims that hold after all have arrived in this order.
    fn holding(claims: &[Claim]) -> Vec<bool> {
        let mut all = Claims { entries: Vec::new(), next: 0 };
        let ids: Vec<u64> = claims.iter().map(|claim| all.ask(claim.clone(), false, None)).collect();
        ids.into_iter().map(|id| all.try_hold(id)).collect()
    }

    #[test]
    fn who_uses_the_same_runs_side_by_side_up_to_a_limit() {
        let most = max_concurrent_users();
        let uses = vec![uses(&[BINDER, REAPER]); most + 1];
        assert_eq!(holding(&uses).into_iter().filter(|holds| *holds).count(), most);
    }

    #[test]
    fn a_change_excludes_those_who_change_or_need_that_controller() {
        let claims = [changes(&[BINDER]), uses(&[BINDER, REAPER]), changes(&[REAPER]), uses(&[BACKUPS])];
        assert_eq!(holding(&claims), [true, false, true, true]);
        assert_eq!(holding(&[changes(&[BINDER, REAPER]), changes(&[BINDER])]), [true, false]);
    }

    #[test]
    fn who_changes_one_controller_and_needs_another_runs_beside_those_who_need_that_one_too() {
        let change = changes_beside(&[BINDER], &[REAPER]);
        assert_eq!(holding(&[change.clone(), uses(&[REAPER]), uses(&[BINDER])]), [true, true, false]);
        assert_eq!(holding(&[change.clone(), changes(&[REAPER])]), [true, false]);
        assert_eq!(holding(&[changes(&[REAPER]), change]), [true, false]);
    }

    #[test]
    fn who_changes_more_goes_first() {
        let mut all = Claims { entries: Vec::new(), next: 0 };
        let [narrow, wide] =
            [&[BINDER][..], &[BINDER, REAPER]].map(|these| all.ask(changes(these), false, None));
        assert!(!all.try_hold(narrow));
        assert!(all.try_hold(wide));
    }

    #[test]
    fn of_those_that_change_as_much_the_long_ones_go_first() {
        let mut all = Claims { entries: Vec::new(), next: 0 };
        let [short, long] = [false, true].map(|is_long| all.ask(changes(&[BINDER]), is_long, None));
        assert!(!all.try_hold(short));
        assert!(all.try_hold(long));
    }

    #[test]
    fn a_change_goes_before_users_where_only_users_keep_it_waiting() {
        assert_eq!(holding(&[uses(&[BINDER]), changes(&[BINDER]), uses(&[BINDER])]), [false, true, false]);
        let claims = [changes(&[BACKUPS, REAPER]), changes(&[BINDER, REAPER]), uses(&[BINDER])];
        assert_eq!(holding(&claims), [true, false, true]);
    }

    #[test]
    fn a_change_waits_for_users_that_are_there() {
        let mut all = Claims { entries: Vec::new(), next: 0 };
        let user = all.ask(uses(&[BINDER]), false, None);
        assert!(all.try_hold(user));
        let change = all.ask(changes(&[BINDER]), false, None);
        assert!(!all.try_hold(change));
        all.entries.retain(|entry| entry.id != user);
        assert!(all.try_hold(change));
    }

    #[test]
    fn in_a_shuffled_order_each_claim_waits_for_those_before_it_that_could_hold() {
        let mut all = Claims { entries: Vec::new(), next: 0 };
        let user = all.ask(uses(&[REAPER]), false, Some(0));
        assert!(all.try_hold(user));
        let later = all.ask(uses(&[BINDER]), false, Some(9));
        let blocked = all.ask(changes(&[REAPER]), false, Some(1));
        let first = all.ask(changes(&[BINDER]), false, Some(2));
        assert!(!all.try_hold(later), "it is not its turn");
        assert!(!all.try_hold(blocked), "one that holds excludes it");
        assert!(all.try_hold(first));
        assert!(!all.try_hold(later), "the one before it excludes it");
        all.entries.retain(|entry| entry.id != first);
        assert!(all.try_hold(later), "only one that could not hold is before it");
    }
}

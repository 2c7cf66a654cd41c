//! What is remembered of sets between passes. All of it may be lost: it is found out again then.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use basic_replicaset_controller::pod::PodRow;

/// How long a pod that is none of the set's, but looks like it, is not looked up again.
const LOOK_UP_LIFETIME: Duration = Duration::from_secs(60);

/// What is remembered of sets, by their uid.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Remembered>>>);

#[derive(Default)]
struct Remembered {
    /// Names that were taken when pods were to be created, by their place.
    taken: BTreeMap<u32, Taken>,
    /// When a look-alike was found to be none of the set's, by its uid and revision.
    others: HashMap<(Box<str>, Box<str>), Instant>,
}

/// A name that was taken when a pod was to be created.
#[derive(Clone)]
pub struct Taken {
    /// The name.
    pub name: String,
    /// What the pod was to be made from.
    pub revision: String,
}

impl Memory {
    /// A name was taken when a pod was to be created.
    pub fn name_taken(&self, set: &str, slot: u32, taken: Taken) {
        self.0.lock().entry(set.to_owned()).or_default().taken.insert(slot, taken);
    }

    /// It is known what became of a name.
    pub fn name_settled(&self, set: &str, slot: u32) {
        if let Some(remembered) = self.0.lock().get_mut(set) {
            remembered.taken.remove(&slot);
        }
    }

    /// The names that were taken, by their place.
    pub fn names_taken(&self, set: &str) -> BTreeMap<u32, Taken> {
        self.0.lock().get(set).map(|remembered| remembered.taken.clone()).unwrap_or_default()
    }

    /// A pod that looks like one of the set's is none.
    pub fn is_other(&self, set: &str, pod: &PodRow) {
        let mut sets = self.0.lock();
        let others = &mut sets.entry(set.to_owned()).or_default().others;
        others.retain(|_, then| then.elapsed() < LOOK_UP_LIFETIME);
        others.insert((pod.uid.clone(), pod.revision.clone()), Instant::now());
    }

    /// Whether a pod was lately found to be none of the set's.
    pub fn is_known_other(&self, set: &str, pod: &PodRow) -> bool {
        let sets = self.0.lock();
        let looked_up =
            sets.get(set).and_then(|set| set.others.get(&(pod.uid.clone(), pod.revision.clone())));
        looked_up.is_some_and(|then| then.elapsed() < LOOK_UP_LIFETIME)
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        self.0.lock().remove(set);
    }
}

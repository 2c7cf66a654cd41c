//! The memory of sets between passes. All of it may be lost: names and pods are then looked up again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use basic_replicaset_controller::pod::PodRow;

/// Lifetime of the finding that a pod only looks like one of the set.
const LOOK_UP_LIFETIME: Duration = Duration::from_secs(60);

/// The memory of sets, by their uid.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Remembered>>>);

#[derive(Default)]
struct Remembered {
    /// Names that were taken when pods were to be created, by their slot.
    taken: BTreeMap<u32, Taken>,
    /// The time at which a pod was found not to belong to the set, by its uid and revision.
    others: HashMap<(Box<str>, Arc<str>), Instant>,
    /// A pod that had ended by itself, and was deleted for that.
    ended: Option<Arc<PodRow>>,
}

/// A name that was taken when a pod was to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The name.
    pub name: String,
    /// The revision of the pod that was to be created.
    pub revision: String,
}

impl Memory {
    /// Records a name that was taken when a pod was to be created.
    pub fn name_taken(&self, set: &str, slot: u32, taken: Taken) {
        self.0.lock().entry(set.to_owned()).or_default().taken.insert(slot, taken);
    }

    /// Forgets a taken name, because its holder is known.
    pub fn name_settled(&self, set: &str, slot: u32) {
        if let Some(remembered) = self.0.lock().get_mut(set) {
            remembered.taken.remove(&slot);
        }
    }

    /// The names that were taken, by their slot.
    pub fn names_taken(&self, set: &str) -> BTreeMap<u32, Taken> {
        self.0.lock().get(set).map(|remembered| remembered.taken.clone()).unwrap_or_default()
    }

    /// Records that a pod only looks like one of the set.
    pub fn is_other(&self, set: &str, pod: &PodRow) {
        let mut sets = self.0.lock();
        let others = &mut sets.entry(set.to_owned()).or_default().others;
        others.retain(|_, then| then.elapsed() < LOOK_UP_LIFETIME);
        others.insert((pod.uid.clone(), pod.revision.clone()), Instant::now());
    }

    /// Whether a pod was recently found not to belong to the set.
    pub fn is_known_other(&self, set: &str, pod: &PodRow) -> bool {
        let sets = self.0.lock();
        let looked_up =
            sets.get(set).and_then(|set| set.others.get(&(pod.uid.clone(), pod.revision.clone())));
        looked_up.is_some_and(|then| then.elapsed() < LOOK_UP_LIFETIME)
    }

    /// Records a pod that ended by itself, and is deleted for that.
    pub fn has_ended(&self, set: &str, pod: Arc<PodRow>) {
        self.0.lock().entry(set.to_owned()).or_default().ended = Some(pod);
    }

    /// The last one of these, unless it `is_over`: then it is forgotten.
    pub fn ended(&self, set: &str, is_over: impl Fn(&PodRow) -> bool) -> Option<Arc<PodRow>> {
        let mut sets = self.0.lock();
        let ended = &mut sets.get_mut(set)?.ended;
        *ended = ended.take().filter(|pod| !is_over(pod));
        ended.clone()
    }

    /// Forgets a set that is gone.
    pub fn forget(&self, set: &str) {
        self.0.lock().remove(set);
    }
}

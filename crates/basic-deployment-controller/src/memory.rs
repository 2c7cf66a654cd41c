//! The memory of each `BasicDeployment` between passes, which is lost with the process.

use std::{collections::HashMap, sync::Arc, time::Duration};

use basic_deployment_controller::{
    child::Child,
    desired::Desired,
    observed::Look,
    progress::{Progress, Rollout},
};
use catena_api::BlockedBy;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

/// The memory, by the uid of the `BasicDeployment`.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<HashMap<String, Remembered>>>);

#[derive(Default)]
struct Remembered {
    /// The hash of a rendering, and the form in which the server stores it, unless that is as it is rendered.
    settled: Option<(String, Option<Value>)>,
    /// By the uid of the child.
    replicas: HashMap<String, i32>,
    stillness: Option<Stillness>,
    /// The child that has not reported on its present spec, the generation of its last report, and since when that is known.
    behind: Option<((String, Option<i64>), Instant)>,
    look: Option<LookAt>,
}

/// The last look for the pod that keeps a child from serving.
struct LookAt {
    /// The uid of the child.
    child: String,
    generation: i64,
    at: Instant,
    found: Result<Option<BlockedBy>, String>,
}

/// The time in which a rollout has made no progress.
struct Stillness {
    rollout: Rollout,
    /// The part of it before this process knew the object.
    earlier: Duration,
    since: Instant,
}

impl Stillness {
    fn time(&self) -> Duration {
        self.earlier.saturating_add(self.since.elapsed())
    }
}

impl Memory {
    /// The form in which the server stores a rendering, if it is the last one that was settled.
    pub fn settled_as(&self, uid: &str, desired: &Desired) -> Option<Value> {
        let memory = self.0.lock();
        let (hash, form) = memory.get(uid)?.settled.as_ref()?;
        let as_rendered = || desired.comparable();
        (*hash == desired.hash).then(|| form.as_ref().map_or_else(as_rendered, |form| desired.seen_in(form)))
    }

    /// The last replicas that were set on each child, by its uid.
    pub fn given_replicas(&self, uid: &str) -> HashMap<String, i32> {
        self.0.lock().get(uid).map(|remembered| remembered.replicas.clone()).unwrap_or_default()
    }

    /// Records the form in which the server stores a rendering.
    pub fn settled(&self, uid: &str, desired: &Desired, settled_as: Value) {
        let form = (settled_as != desired.comparable()).then_some(settled_as);
        self.change(uid, |remembered| remembered.settled = Some((desired.hash.clone(), form)));
    }

    /// Whether this process has given it a child, or has seen one as it was rendered.
    pub fn had_child(&self, uid: &str) -> bool {
        self.0.lock().get(uid).is_some_and(|remembered| remembered.settled.is_some())
    }

    /// Records the replicas that were set on a child, and forgets children that are no longer known.
    pub fn scaled(&self, uid: &str, child: &str, replicas: i32, is_known: impl Fn(&str) -> bool) {
        self.change(uid, |remembered| {
            remembered.replicas.retain(|child, _| is_known(child));
            remembered.replicas.insert(child.to_owned(), replicas);
        });
    }

    /// Records the outcome of a look for the pod that keeps a child from serving.
    pub fn looked(&self, uid: &str, child: &Child, found: Result<Option<BlockedBy>, String>) {
        let (generation, at) = (child.generation, Instant::now());
        self.change(uid, |remembered| {
            remembered.look = Some(LookAt { child: child.uid.clone(), generation, at, found });
        });
    }

    /// The last look for the pod that keeps a child from serving. What it found under another spec is no longer known.
    pub fn look(&self, uid: &str, child: &Child) -> Option<Look> {
        let memory = self.0.lock();
        let last = memory.get(uid)?.look.as_ref().filter(|look| look.child == child.uid)?;
        let found = if last.generation == child.generation { last.found.clone() } else { Ok(None) };
        Some(Look { age: last.at.elapsed(), found })
    }

    /// The time since the last progress of a rollout. `reported` is the time that an earlier process has reported, for an object
    /// that this process sees for the first time.
    pub fn since_progress(&self, uid: &str, now: Progress, reported: Duration) -> Duration {
        self.change(uid, |remembered| match (now, &mut remembered.stillness) {
            (Progress::AtRest, stillness) => {
                *stillness = None;
                Duration::ZERO
            }
            (Progress::Unknown, stillness) => stillness.as_ref().map_or(reported, Stillness::time),
            (Progress::Awaited(rollout), Some(stillness)) => {
                if stillness.rollout.advances_to(rollout) {
                    (stillness.earlier, stillness.since) = (Duration::ZERO, Instant::now());
                }
                stillness.time()
            }
            (Progress::Awaited(rollout), stillness) => {
                *stillness = Some(Stillness { rollout, earlier: reported, since: Instant::now() });
                reported
            }
        })
    }

    /// The time for which a child has not reported on its present spec, and not on any other one either.
    pub fn behind_for(&self, uid: &str, child: Option<&Child>) -> Duration {
        let late = child.filter(|child| !child.is_current());
        let late = late.map(|child| (child.uid.clone(), child.outputs.observed_generation));
        self.change(uid, |remembered| {
            let known = remembered.behind.take().filter(|(known, _)| Some(known) == late.as_ref());
            remembered.behind = known.or_else(|| Some((late?, Instant::now())));
            remembered.behind.as_ref().map_or(Duration::ZERO, |(_, since)| since.elapsed())
        })
    }

    /// Forgets a `BasicDeployment` that is gone.
    pub fn forget(&self, uid: &str) {
        self.0.lock().remove(uid);
    }

    fn change<T>(&self, uid: &str, change: impl FnOnce(&mut Remembered) -> T) -> T {
        change(self.0.lock().entry(uid.to_owned()).or_default())
    }
}

#[cfg(test)]
mod tests {
    use basic_deployment_controller::observed::{Found, Observed};

    use super::*;
    use crate::fixtures;

    /// A rollout with this number of serving replicas.
    fn at(active: i32) -> Progress {
        let mut child = Child::clone(&fixtures::child("web", "child"));
        (child.outputs.active, child.outputs.ready) = (active, false);
        Progress::of(&Observed { child: Found::Ours(Arc::new(child)), ..fixtures::observed() })
    }

    #[test]
    fn the_time_without_progress_goes_on_where_an_earlier_process_left_it_until_there_is_some() {
        let memory = Memory::default();
        let minute = Duration::from_secs(60);
        assert_eq!(memory.since_progress("web", at(1), minute), minute);
        assert!(memory.since_progress("web", at(1), Duration::ZERO) >= minute, "it is forgotten");
        assert!(
            memory.since_progress("web", Progress::Unknown, Duration::ZERO) >= minute,
            "the children were not seen"
        );
        assert!(memory.since_progress("web", at(1), Duration::ZERO) >= minute);
        assert!(memory.since_progress("web", at(2), Duration::ZERO) < minute, "there was progress");
        assert!(memory.since_progress("web", at(2), minute) < minute);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_begins_anew_after_a_rest_and_not_with_each_change() {
        let (memory, minute) = (Memory::default(), Duration::from_secs(60));
        let after_a_minute = async |progress| {
            tokio::time::advance(minute).await;
            memory.since_progress("web", progress, Duration::ZERO)
        };
        assert_eq!(after_a_minute(at(2)).await, Duration::ZERO);
        assert_eq!(after_a_minute(at(1)).await, minute);
        assert_eq!(after_a_minute(at(2)).await, 2 * minute, "it served before");
        assert_eq!(after_a_minute(Progress::AtRest).await, Duration::ZERO);
        assert_eq!(after_a_minute(at(1)).await, Duration::ZERO, "a replica was lost just now");
        assert_eq!(after_a_minute(at(1)).await, minute);
    }

    #[tokio::test(start_paused = true)]
    async fn a_child_is_behind_for_as_long_as_it_reports_nothing() {
        let (memory, minute) = (Memory::default(), Duration::from_secs(60));
        let after_a_minute = async |generation: i64, reported: i64| {
            tokio::time::advance(minute).await;
            let mut child = Child::clone(&fixtures::child("web", "child"));
            (child.generation, child.outputs.observed_generation) = (generation, Some(reported));
            memory.behind_for("web", Some(&child))
        };
        assert_eq!(after_a_minute(1, 1).await, Duration::ZERO);
        assert_eq!(after_a_minute(2, 1).await, Duration::ZERO, "its spec was changed just now");
        assert_eq!(after_a_minute(3, 1).await, minute, "another change is no report");
        assert_eq!(after_a_minute(4, 2).await, Duration::ZERO, "it reports, however late");
        assert_eq!(after_a_minute(4, 4).await, Duration::ZERO);
        assert_eq!(memory.behind_for("web", None), Duration::ZERO);
    }

    #[test]
    fn what_each_child_was_given_is_known_while_the_child_is() {
        let memory = Memory::default();
        memory.scaled("web", "former", 3, |_| true);
        memory.scaled("web", "wanted", 4, |_| true);
        let given = |memory: &Memory| memory.given_replicas("web");
        assert_eq!(given(&memory), HashMap::from([("former".to_owned(), 3), ("wanted".to_owned(), 4)]));
        memory.scaled("web", "wanted", 5, |child| child == "wanted");
        assert_eq!(given(&memory), HashMap::from([("wanted".to_owned(), 5)]));
    }
}

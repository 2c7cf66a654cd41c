//! The progress of a rollout, for its deadline. Pure.
//!
//! As for a Deployment, progress is a number that is higher than ever. One that falls and rises again, such as with an old
//! replica that is ready now and then, is none.

use std::{array, mem};

use replica_contract::Outputs;

use crate::observed::Observed;

/// What an observation says about progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: no child is seen.
    Unknown,
    /// Nothing is awaited: all replicas serve.
    AtRest,
    /// Replicas are awaited.
    Awaited(Rollout),
}

/// A rollout: the wanted revision, the restart token of the child, and the most replicas that it has reported under both. A pause,
/// and what comes after it, are other ones, so that no time runs out in a pause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollout {
    hash: String,
    token: Option<String>,
    is_paused: bool,
    /// Of updated, serving and available ones.
    counts: [i32; 3],
}

impl Progress {
    /// The progress of an observation.
    #[must_use]
    pub fn of(observed: &Observed) -> Self {
        if observed.is_ready() {
            return Self::AtRest;
        }
        let Some(child) = observed.child.ours() else { return Self::Unknown };
        let hash = observed.wanted_hash().unwrap_or_default().to_owned();
        let token = child.restarted_at().map(str::to_owned);
        let mut rollout = Rollout { hash, token, is_paused: observed.is_paused(), ..Rollout::default() };
        // A report about a former spec counts replicas of a former template.
        if child.is_current() && child.hash() == rollout.hash {
            let Outputs { updated, active, available, .. } = child.outputs;
            rollout.counts = [updated.unwrap_or(0), active, available];
        }
        Self::Awaited(rollout)
    }
}

impl Rollout {
    /// Takes over a later observation, and tells whether it is progress: another rollout, or a number that is higher than ever.
    pub fn advances_to(&mut self, now: Self) -> bool {
        let is_same = (&self.hash, &self.token, self.is_paused) == (&now.hash, &now.token, now.is_paused);
        let next = if is_same {
            Self { counts: array::from_fn(|at| now.counts[at].max(self.counts[at])), ..now }
        } else {
            now
        };
        let before = mem::replace(self, next);
        *self != before
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use replica_contract::Pause;

    use super::*;
    use crate::{child::Child, fixtures, observed::Found};

    /// A child that is not ready, with `changes`.
    fn observed(change: impl FnOnce(&mut Child)) -> Observed {
        let mut child = Child::clone(&fixtures::child("web", "child"));
        child.outputs.ready = false;
        change(&mut child);
        Observed { child: Found::Ours(Arc::new(child)), ..fixtures::observed() }
    }

    fn rollout(observed: &Observed) -> Rollout {
        match Progress::of(observed) {
            Progress::Awaited(rollout) => rollout,
            progress => panic!("{progress:?}"),
        }
    }

    /// With these numbers of updated and serving replicas.
    fn with(updated: i32, active: i32) -> Rollout {
        rollout(&observed(|child| (child.outputs.updated, child.outputs.active) = (Some(updated), active)))
    }

    #[test]
    fn a_replica_that_is_ready_now_and_then_is_no_progress_and_a_new_maximum_is() {
        let mut most = with(1, 3);
        for active in [2, 3, 2, 3] {
            assert!(!most.advances_to(with(1, active)), "{active}");
        }
        assert!(most.advances_to(with(2, 2)));
        assert!(!most.advances_to(with(1, 3)), "both were as high before");
        assert!(most.advances_to(with(0, 4)));
    }

    #[test]
    fn another_revision_and_a_restart_begin_anew() {
        let mut most = with(3, 3);
        let on = |hash: &str| {
            let mut observed = observed(|child| child.outputs.updated = Some(3));
            observed.desired.as_mut().unwrap().hash = hash.into();
            observed
        };
        assert!(most.advances_to(rollout(&on("newer"))));
        // Those three are of the former revision.
        assert!(!most.advances_to(rollout(&on("newer"))));
        assert!(most.advances_to(with(1, 1)));
        let restarted = observed(|child| {
            child.object["spec"]["restartedAt"] = "2026-01-01T00:00:00Z".into();
            child.generation += 1;
        });
        assert!(most.advances_to(rollout(&restarted)));
        assert_eq!(most.counts, [0; 3], "the child has not reported on it");
    }

    #[test]
    fn a_former_child_that_drains_and_a_child_that_comes_and_goes_are_no_progress() {
        let mut waiting = observed(|_| {});
        let mut most = rollout(&waiting);
        waiting.others = vec![fixtures::child("old", "former")];
        assert!(!most.advances_to(rollout(&waiting)));
        waiting.child = Found::Nothing;
        assert_eq!(Progress::of(&waiting), Progress::Unknown);
    }

    #[test]
    fn nothing_is_awaited_of_a_rollout_that_is_complete_and_the_time_begins_anew_after_a_pause() {
        assert_eq!(Progress::of(&fixtures::observed()), Progress::AtRest);
        let mut paused = observed(|_| {});
        Arc::make_mut(&mut paused.deployment).spec.paused = true;
        let mut most = with(1, 3);
        assert!(most.advances_to(rollout(&paused)) && most.advances_to(with(1, 3)));
        let pause = Pause { reason: "StepReached".into(), message: String::new() };
        let of_child = |generation| {
            rollout(&observed(|child| {
                (child.outputs.paused, child.generation) = (Some(pause.clone()), generation);
                child.outputs.updated = Some(1);
            }))
        };
        assert!(most.advances_to(of_child(1)) && most.advances_to(with(1, 3)));
        assert!(!most.advances_to(of_child(2)), "it has not seen the present spec");
    }
}

//! The limits of an exchange of children, and the numbers that they follow from.
//!
//! At every moment, all children together have at most `replicas` + `maxSurge` replicas, and at least `replicas` -
//! `maxUnavailable` of them serve.

use std::sync::Arc;

use catena_api::{BasicDeploymentSpec, surge_and_unavailable};

use crate::child::Child;

/// The limits of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Desired replicas.
    pub replicas: i32,
    /// Maximum number of replicas that all children together may have.
    pub most: i32,
    /// Minimum number of replicas that serve.
    pub least: i32,
}

/// The replicas of one or more children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Their number.
    pub desired: i32,
    /// Those of them that serve, and have been ready for as long as they have to.
    pub serving: i32,
}

impl Budget {
    /// The budget of a `BasicDeployment`.
    #[must_use]
    pub fn of(spec: &BasicDeploymentSpec) -> Self {
        let replicas = spec.replicas;
        let (surge, unavailable) = surge_and_unavailable(&spec.max_surge, &spec.max_unavailable, replicas);
        Self {
            replicas,
            most: replicas.saturating_add(surge),
            least: replicas.saturating_sub(unavailable).max(0),
        }
    }

    /// The replicas of all former children together: those that the wanted child does not serve yet, or all of them while
    /// there is none.
    ///
    /// Not every kind removes the replicas first that do not serve: a Deployment in the middle of a rollout loses some of its
    /// old and some of its new ones. So only as many go as could serve and not be missed, unless the wanted child has no room
    /// otherwise.
    #[must_use]
    pub fn of_former(&self, former: Count, wanted: Option<Count>) -> i32 {
        let Some(wanted) = wanted else { return self.replicas };
        let needed = self.needed(wanted);
        let room = self.most.saturating_sub(wanted.desired);
        if former.desired <= needed {
            return needed.min(room).max(former.desired);
        }
        let has_to_grow = wanted.idle() == 0 && wanted.desired < self.replicas && former.desired >= room;
        let spare = former.serving.saturating_sub(needed);
        if needed == 0 || (spare <= 0 && has_to_grow) {
            return needed;
        }
        former.desired.saturating_sub(spare.max(0)).min(room.max(needed))
    }

    /// The replicas of the wanted child: as many as there is room for beside the former ones, if there are any, and all that
    /// serve. Former children that somebody scaled down, or that could not be scaled for a while, find their room again.
    #[must_use]
    pub fn of_wanted(&self, wanted: Count, former: Option<Count>) -> i32 {
        let kept = former.map_or(0, |former| former.desired.max(self.needed(wanted)));
        self.most.saturating_sub(kept).max(wanted.serving).min(self.replicas).max(0)
    }

    /// The replicas that have to serve beside those of the wanted child.
    fn needed(&self, wanted: Count) -> i32 {
        self.least.saturating_sub(wanted.serving).max(0)
    }
}

impl Count {
    /// The count of one child. A report about more replicas than it is to have is older than its spec.
    #[must_use]
    pub fn of(child: &Child) -> Self {
        let desired = child.replicas().unwrap_or(0);
        Self { desired, serving: child.outputs.available.clamp(0, desired.max(0)) }
    }

    /// The count of several children, if there are any.
    pub fn of_any<'c>(children: impl IntoIterator<Item = &'c Arc<Child>>) -> Option<Self> {
        let mut children = children.into_iter().peekable();
        children.peek().is_some().then(|| Self::of_all(children))
    }

    /// The count of several children.
    pub fn of_all<'c>(children: impl IntoIterator<Item = &'c Arc<Child>>) -> Self {
        children.into_iter().map(|child| Self::of(child)).fold(Self::default(), |sum, one| Self {
            desired: sum.desired.saturating_add(one.desired),
            serving: sum.serving.saturating_add(one.serving),
        })
    }

    /// Those that do not serve.
    #[must_use]
    pub fn idle(self) -> i32 {
        self.desired - self.serving
    }
}

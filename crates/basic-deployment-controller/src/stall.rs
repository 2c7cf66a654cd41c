//! Rollouts that do not go on: after their deadline, and those whose child does not report. Pure.
//!
//! The time without progress is measured by each process for itself. If a stall that an earlier process has reported did not
//! count, every new leader would take back `ProgressDeadlineExceeded`, and report it again only after another whole deadline.

use std::{sync::Arc, time::Duration};

use catena_api::{BasicDeployment, reason::PROGRESS_DEADLINE_EXCEEDED};
use operator_kit::report::Conditions;

use crate::{child::Child, observed::Observed};

/// Time after which a child that does not report on its spec is named, however short its deadline is: a first report among
/// many others takes most of it.
const SILENCE_TOLERANCE: Duration = Duration::from_secs(60);

/// The time without progress that an earlier process has reported about the very rollout that is observed now: the same
/// generation, child and rendering, and no more serving replicas, also of former children. Otherwise none: a status that was
/// restored or copied is about another child.
#[must_use]
pub fn reported(deployment: &BasicDeployment, child: Option<&Child>, others: &[Arc<Child>]) -> Duration {
    let (Some(status), Some(child)) = (&deployment.status, child) else { return Duration::ZERO };
    let is_stalled = Conditions::find(&status.conditions, Conditions::PROGRESSING).is_some_and(|condition| {
        condition.status == "False" && condition.reason == PROGRESS_DEADLINE_EXCEEDED
    });
    let is_about_it = status.observed_generation == deployment.metadata.generation
        && status.child.as_ref().is_some_and(|told| told.uid == child.uid && told.hash == child.hash())
        && status.active >= active(Some(child), others);
    if is_stalled && is_about_it { deadline(deployment) } else { Duration::ZERO }
}

/// The number of serving replicas of all children: of the wanted one, and of the others, unless they are being deleted.
#[must_use]
pub fn active(child: Option<&Child>, others: &[Arc<Child>]) -> i32 {
    let former = others.iter().filter(|other| !other.is_deleting).map(AsRef::as_ref);
    child.into_iter().chain(former).map(|child| child.outputs.active).fold(0, i32::saturating_add)
}

/// The time without progress after which a rollout is reported as stalled.
#[must_use]
pub fn deadline(deployment: &BasicDeployment) -> Duration {
    Duration::from_secs(u64::try_from(deployment.spec.progress_deadline_seconds).unwrap_or(0))
}

/// Whether a rollout has exceeded its deadline.
#[must_use]
pub fn is_exceeded(observed: &Observed) -> bool {
    !observed.is_paused() && observed.since_progress >= deadline(&observed.deployment)
}

/// The message about a child that has not reported on its spec for too long, to be read after its name.
#[must_use]
pub fn silence(observed: &Observed, child: &Child) -> Option<String> {
    if observed.behind_for < SILENCE_TOLERANCE {
        return None;
    }
    let field = &child.kind.fields().observed_generation;
    Some(match child.outputs.observed_generation {
        None => format!(
            "has never reported contract.observedGeneration ({field}): its controller does not run, or does not honour this contract"
        ),
        Some(seen) => format!(
            "reports no more: contract.observedGeneration ({field}) is {seen}, and metadata.generation is {}; its controller does not run, or cannot go on",
            child.generation
        ),
    })
}

/// The time until a child that does not report is named.
#[must_use]
pub fn silence_in(observed: &Observed) -> Option<Duration> {
    let is_behind = observed.child.ours().is_some_and(|child| !child.is_current());
    if is_behind { left(SILENCE_TOLERANCE, observed.behind_for) } else { None }
}

/// The time until the progress deadline, if it is running.
#[must_use]
pub fn deadline_in(observed: &Observed) -> Option<Duration> {
    let is_held = observed.failure_about_child().is_some();
    let is_waiting = !observed.is_ready() && !observed.is_paused() && !is_held;
    if is_waiting { left(deadline(&observed.deployment), observed.since_progress) } else { None }
}

fn left(limit: Duration, passed: Duration) -> Option<Duration> {
    limit.checked_sub(passed).filter(|left| !left.is_zero())
}

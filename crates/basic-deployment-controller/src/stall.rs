//! A stall that an earlier process has reported. Pure.
//!
//! The time without progress is measured by each process for itself. Without this, every new leader would take back
//! `ProgressDeadlineExceeded`, and report it again only after another whole deadline.

use std::{sync::Arc, time::Duration};

use catena_api::BasicDeployment;
use operator_kit::report::conditions::{PROGRESSING, find};

use crate::child::Child;

/// The reason of the report.
pub const PROGRESS_DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

/// The time without progress that an earlier process has reported about the very rollout that is observed now: the same
/// generation, child and rendering, and no more serving replicas, also of former children. Otherwise none: a status that was
/// restored or copied is about another child.
#[must_use]
pub fn reported(deployment: &BasicDeployment, child: Option<&Child>, others: &[Arc<Child>]) -> Duration {
    let (Some(status), Some(child)) = (&deployment.status, child) else { return Duration::ZERO };
    let is_stalled = find(&status.conditions, PROGRESSING).is_some_and(|condition| {
        condition.status == "False" && condition.reason == PROGRESS_DEADLINE_EXCEEDED
    });
    let is_about_it = child.is_reported_by(deployment) && status.active >= active(Some(child), others);
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

/// A message about a child that has never reported on its spec.
#[must_use]
pub fn silence(child: &Child) -> Option<String> {
    let (kind, name) = (&child.kind.kind, &child.name);
    let field = &child.kind.fields().observed_generation;
    child.outputs.observed_generation.is_none().then(|| {
        format!(
            "{kind} {name:?} has never reported contract.observedGeneration ({field}): its controller does not run, or does not honour this contract"
        )
    })
}

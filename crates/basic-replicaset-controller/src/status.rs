//! Observed → status. Pure.

use std::time::Duration;

use catena_api::{
    BasicReplicaSet, BasicReplicaSetStatus, BlockedBy, LastServed,
    deletion::{Deletion, TERMINATING},
    keys, reason,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::report::{Conditions, StatusAge};
use operator_watch::{Failure, NextRetry, ObjectId};
use pod_state::{PodProblem, PodState, START_TOLERANCE};

use crate::{
    decide::{Budget, proof},
    observed::Observed,
    pod::PodRow,
    step,
};

/// The types of this controller's conditions.
pub const CONDITIONS: [&str; 4] =
    [Conditions::READY, Conditions::RECONCILING, Conditions::STALLED, Conditions::UNREAD_PARAMETERS];

/// The last reported status, without conditions of other controllers.
#[must_use]
pub fn told(set: &BasicReplicaSet) -> BasicReplicaSetStatus {
    let mut told = set.status.clone().unwrap_or_default();
    told.conditions = Conditions::of_types(&told.conditions, &CONDITIONS);
    told
}

/// The status that reports an observation.
pub fn status(observed: &Observed) -> BasicReplicaSetStatus {
    let set = &observed.set;
    let before = told(set);
    let generation = set.metadata.generation.unwrap_or_default();
    let pods: Vec<&PodRow> = observed.pods.iter().map(AsRef::as_ref).filter(|pod| pod.counts()).collect();
    let is_updated =
        |pod: &&&PodRow| observed.revision.as_ref().is_ok_and(|revision| **revision == *pod.revision);
    let replicas = number(pods.len());
    let active = number(pods.iter().filter(|pod| pod.is_ready()).count());
    let available = number(pods.iter().filter(|pod| observed.is_available(pod)).count());
    let terminating = observed.awaited().map(number);
    let updated = number(pods.iter().filter(is_updated).count());
    let serving = number(pods.iter().filter(is_updated).filter(|pod| observed.is_available(pod)).count());
    let waiting = [
        (active - available, "are ready for less than spec.minReadySeconds"),
        (terminating.unwrap_or(0), "terminate, and spec.podReplacementPolicy waits for their end"),
    ];
    let waiting = waiting.into_iter().filter(|(count, _)| *count > 0);
    let waiting = waiting.map(|(count, what)| format!("; {count} {what}")).collect::<Vec<_>>().concat();
    let wanted = set.spec.replicas;
    // The rendering is added when the status is written.
    let newly_proven = proof::newly_proven(observed)
        .map(|revision| LastServed { revision: revision.to_owned(), ..LastServed::default() });
    // Scaled to zero, nothing serves any more, and what comes next is not compared with it.
    let last_served = newly_proven.or(before.last_served).filter(|_| wanted > 0);
    let (unreplaced, why) = why_unreplaced(observed, last_served.as_ref(), available).unzip();
    let waiting = waiting + &why.unwrap_or_default();
    let of_rollout = |progress| unreplaced.unwrap_or(progress);
    let is_complete = serving == wanted && replicas == wanted && terminating.unwrap_or(0) == 0;
    let deletion = Deletion::of(&set.metadata);
    let failure = failure(observed, is_complete).filter(|_| deletion.is_none());
    let is_stalled = failure.as_ref().is_some_and(|failure| failure.is_stalled);
    let is_ready = failure.is_none() && is_complete && deletion.is_none();

    let (reason, message) = match (&failure, deletion) {
        (_, Some(deletion)) => (TERMINATING, deletion.message()),
        (Some(failure), _) => (failure.reason, failure.with_next_retry()),
        _ if is_ready => ("Complete", format!("{active} of {wanted} pods are serving")),
        _ if updated == replicas => {
            (of_rollout(reason::SCALING), format!("{serving} of {wanted} pods are serving{waiting}"))
        }
        _ => (
            of_rollout(reason::REPLACING),
            format!(
                "{serving} of {wanted} pods of the current template are serving, {} are old{waiting}",
                replicas - updated
            ),
        ),
    };
    let conditions = Conditions::new(generation, observed.now)
        .with(Conditions::READY, is_ready, reason, message.clone())
        .if_true(
            Conditions::RECONCILING,
            !is_ready && !is_stalled && deletion.is_none(),
            reason,
            message.clone(),
        )
        .if_true(Conditions::STALLED, is_stalled, reason, message)
        .with_unread_parameters(&set.spec.template, &observed.unread)
        .with_transition_times(&before.conditions);
    let new = BasicReplicaSetStatus {
        observed_generation: Some(generation),
        replicas,
        active,
        available,
        terminating,
        updated,
        last_served,
        selector: set.metadata.uid.as_ref().map(|uid| format!("{}={uid}", keys::REPLICA_SET_UID)),
        blocked_by: match deletion {
            Some(deletion) => {
                let first = observed.pods.iter().min_by_key(|pod| pod.slot);
                Some(deletion.blocked_by(itself(set), first.map(|pod| ["v1", "Pod", &pod.name])))
            }
            None if is_ready => None,
            None => blocked_by(observed, failure.as_ref()),
        },
        conditions,
    };
    match set.status.clone().filter(|_| observed.is_blind) {
        // Without an observation, the last values remain.
        Some(BasicReplicaSetStatus { replicas, active, available, terminating, updated, .. }) => {
            BasicReplicaSetStatus { replicas, active, available, terminating, updated, ..new }
        }
        None => new,
    }
}

/// While too few pods serve: why none of the revision that served last are made again, if they are not, by its reason and in words.
fn why_unreplaced(
    observed: &Observed,
    last_served: Option<&LastServed>,
    available: i32,
) -> Option<(&'static str, String)> {
    let is_short = available < number(Budget::of(&observed.set.spec).least());
    let present = observed.revision.as_deref().ok();
    let served = last_served.filter(|served| is_short && Some(&*served.revision) != present)?;
    let what = "; pods of the revision that served last are not made again";
    if observed.former.is_some() {
        let refused =
            observed.backoffs.step_failure(step::RECREATE).filter(|refused| !refused.is_expected)?;
        return Some((refused.reason, format!("{what}: {}", refused.with_next_retry())));
    }
    let why = if served.pod.is_empty() {
        "a rendering of more than 256 KiB is not recorded in status.lastServed"
    } else {
        "status.lastServed.pod is not what it rendered"
    };
    let words = format!("{what}, because {why}: correct spec, or set it back");
    Some((reason::LAST_SERVED_UNUSABLE, words))
}

/// The minimum age of `before` when `after` is written.
///
/// Mere numbers are not urgent, nor is another pod that blocks for the same reason. Numbers are stable when no pod is
/// starting or terminating.
#[must_use]
pub fn minimum_age(
    before: &BasicReplicaSetStatus,
    after: &BasicReplicaSetStatus,
    observed: &Observed,
) -> Duration {
    let known = |status: &BasicReplicaSetStatus| {
        let blocker =
            status.blocked_by.as_ref().map(|blocker| (blocker.kind.clone(), blocker.reason.clone()));
        let state = [Conditions::READY, Conditions::STALLED]
            .map(|type_| Conditions::is_true(&status.conditions, type_));
        // What the definition says before the first report is no news.
        let ready = status.observed_generation.and(Conditions::find(&status.conditions, Conditions::READY));
        let word = ready.map(|ready| ready.reason.clone());
        let news = word.filter(|word| ![reason::SCALING, reason::REPLACING].contains(&word.as_str()));
        // Nobody waits for the observation of the first generation, only for its effects.
        (status.observed_generation.or(after.observed_generation), blocker, state, news)
    };
    if known(before) != known(after) {
        return StatusAge::NOW;
    }
    let is_at_rest = |pod: &PodRow| match &pod.state {
        PodState::Ready => true,
        PodState::NotReady(problem) => problem.is_conclusive,
        PodState::Finished(_) | PodState::Terminating(_) => false,
    };
    let is_replacing = observed.revision.is_ok() && after.updated < after.replicas;
    let are_at_rest = !is_replacing && observed.pods.iter().all(|pod| is_at_rest(pod));
    if are_at_rest { StatusAge::STABLE } else { StatusAge::PROGRESSING }
}

/// The time until a starting pod has taken too long, or one whose end is awaited.
#[must_use]
pub fn next_blocker(observed: &Observed) -> Option<Duration> {
    let left = |pod: &PodRow| match &pod.state {
        PodState::NotReady(problem) if !problem.is_conclusive => {
            Some(START_TOLERANCE.saturating_sub(problem.age(observed.now)))
        }
        PodState::Terminating(until) if observed.awaits_ends() => {
            let left = Duration::try_from(until.duration_since(observed.now)).unwrap_or_default();
            Some((left + START_TOLERANCE).saturating_sub(observed.since(*until)))
        }
        _ => None,
    };
    observed.pods.iter().filter_map(|pod| left(pod)).filter(|left| !left.is_zero()).min()
}

/// The failure that keeps the set from its pods, including a missing template while its pods still run. A failed step
/// is not reported while the set is complete, nor is a skipped slot while there are others.
fn failure(observed: &Observed, is_complete: bool) -> Option<Failure> {
    let backoffs = &observed.backoffs;
    // Where that of the present revision is created instead, it is only told beside what becomes of them.
    let is_told_beside = |failure: &&Failure| {
        let recreates = backoffs.step_failure(step::RECREATE) == Some(*failure);
        recreates && observed.revision.is_ok() && backoffs.everything().is_none()
    };
    let of_step = if is_complete && backoffs.everything().is_none() {
        None
    } else {
        let of_place =
            backoffs.item_failure(step::CREATE, |_| true).filter(|_| observed.is_in_vain(step::CREATE));
        let stays = |uid: &str| {
            let is_ending = |pod: &PodRow| matches!(pod.state, PodState::Terminating(_));
            observed.pods.iter().any(|pod| &*pod.uid == uid && !is_ending(pod))
        };
        backoffs
            .failure()
            .filter(|failure| !is_told_beside(failure))
            .or(of_place)
            .or(backoffs.item_failure(step::DELETE, stays))
    };
    let refused = observed.revision.as_ref().err();
    of_step.cloned().or_else(|| refused.map(|error| Failure::stalled(error.reason, &*error.message)))
}

/// The set itself while it cannot create pods, otherwise the first pod with a problem, in the order of their slots, otherwise the
/// first one whose end is awaited, and late, otherwise one that ended by itself and has no successor that serves.
fn blocked_by(observed: &Observed, failure: Option<&Failure>) -> Option<BlockedBy> {
    let set = &observed.set;
    let before = set.status.as_ref().and_then(|status| status.blocked_by.as_ref());
    if let Some(failure) = failure {
        let own @ [.., name] = itself(set);
        let same = before.filter(|before| before.name == name && before.reason == failure.reason);
        let since = same.map_or(Some(Time(observed.now)), |same| same.since.clone());
        let next_retry = failure.next_retry.and_then(NextRetry::at).map(Time);
        let blocker = BlockedBy::new(own, failure.reason, &failure.message, since);
        return Some(BlockedBy { next_retry, ..blocker });
    }
    let first = observed
        .pods
        .iter()
        .filter_map(|pod| pod.state.reportable_problem(observed.now).map(|problem| (pod, problem)));
    let first = first.min_by_key(|(pod, problem)| (!problem.is_conclusive, pod.slot, pod.name.clone()));
    let by = |pod: &PodRow, reason: &str, message: &str, since| {
        BlockedBy::new(["v1", "Pod", &pod.name], reason, message, Some(Time(since)))
    };
    let by_problem =
        |pod: &PodRow, problem: &PodProblem| by(pod, &problem.reason, &problem.message, problem.since);
    if let Some((pod, problem)) = first {
        return Some(by_problem(pod, problem));
    }
    let ending = observed.pods.iter().filter(|_| observed.awaits_ends());
    let late = ending.filter_map(|pod| match pod.state {
        PodState::Terminating(until) if observed.since(until) >= START_TOLERANCE => Some((pod, until)),
        _ => None,
    });
    if let Some((pod, until)) = late.min_by_key(|(pod, _)| pod.slot) {
        let why = "it is being deleted: a finalizer or a lost node may keep it";
        return Some(by(pod, TERMINATING, why, until));
    }
    let ended = observed.ended.as_deref()?;
    Some(by_problem(ended, ended.state.reportable_problem(observed.now)?))
}

/// The API version, the kind and the name of a set.
fn itself(set: &BasicReplicaSet) -> [&str; 3] {
    ["catena.dev/v1alpha1", "BasicReplicaSet", ObjectId::of(set).name]
}

fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

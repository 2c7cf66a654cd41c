//! Observed → status. Pure.

use std::time::Duration;

use catena_api::{
    BasicDeployment, BasicDeploymentStatus, BlockedBy, ChildStatus, Pin, StoredRevision,
    deletion::{Deletion, TERMINATING},
    reason::{
        self, CHANGED_WHILE_PAUSED, CHILD_HAS_NO_RESTART, CHILD_PAUSED, FORMER_CHILD_LEAVING, NOT_REPORTED,
        PAUSED, PROGRESS_DEADLINE_EXCEEDED, TOKEN_IN_FUTURE,
    },
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use operator_kit::report::{Conditions, StatusAge};
use operator_watch::{Failure, NextRetry, ObjectId};
use replica_contract::{Pause, Stalled};

use crate::{
    blocking_pod,
    budget::Count,
    child::Child,
    observed::{Found, Observed},
    revision::find,
    stall, step, token,
};

/// The types of this controller's conditions.
pub const CONDITIONS: [&str; 7] = [
    Conditions::READY,
    Conditions::PROGRESSING,
    Conditions::RECONCILING,
    Conditions::STALLED,
    ROLLED_BACK,
    RESTART_BLOCKED,
    Conditions::UNREAD_PARAMETERS,
];

/// The last reported status, without conditions of other controllers.
#[must_use]
pub fn told(deployment: &BasicDeployment) -> BasicDeploymentStatus {
    let mut told = deployment.status.clone().unwrap_or_default();
    told.conditions = Conditions::of_types(&told.conditions, &CONDITIONS);
    told
}

/// The status that reports an observation.
pub fn status(observed: &Observed) -> BasicDeploymentStatus {
    let deployment = &observed.deployment;
    let before = told(deployment).conditions;
    let generation = deployment.metadata.generation.unwrap_or_default();
    let child = observed.child.ours().map(AsRef::as_ref);
    let active = stall::active(child, &observed.others);
    let wanted = deployment.spec.replicas;
    let deletion = Deletion::of(&deployment.metadata);
    let is_ready = observed.is_ready() && deletion.is_none();
    let blocked_by = match deletion {
        Some(deletion) => {
            let child = observed.children().next();
            Some(deletion.blocked_by(itself(deployment), child.map(|child| identity(child))))
        }
        None if is_ready => None,
        None => blocked_by(observed, child),
    };
    let (reason, message, is_stalled) = match deletion {
        Some(deletion) => (TERMINATING.to_owned(), deletion.message(), false),
        None => summary(observed, child, is_ready, active, blocked_by.as_ref()),
    };
    let is_paused = matches!(reason.as_str(), PAUSED | CHANGED_WHILE_PAUSED | CHILD_PAUSED);
    let goes_on = !is_stalled && !is_paused && deletion.is_none();
    let progressing = if is_ready { "Complete" } else { &reason };
    let held = observed.pin.as_ref().filter(|pin| pin.is_rejection() && observed.desired.is_ok());
    let held = held.map(|pin| rolled_back(pin, observed));
    let (blocked, why) = restart_blocked(observed).unwrap_or_default();
    let conditions = Conditions::new(generation, observed.now)
        .with(Conditions::READY, is_ready, &reason, message.clone())
        .with(Conditions::PROGRESSING, goes_on, progressing, message.clone())
        .if_true(Conditions::RECONCILING, !is_ready && goes_on, &reason, message.clone())
        .if_true(Conditions::STALLED, is_stalled, &reason, message)
        .if_true(ROLLED_BACK, held.is_some(), "Rollback", held.unwrap_or_default())
        .if_true(RESTART_BLOCKED, !blocked.is_empty(), blocked, why)
        .with_unread_parameters(&deployment.spec.template, &observed.unread)
        .with_transition_times(&before);
    let new = BasicDeploymentStatus {
        observed_generation: Some(generation),
        ready: is_ready,
        active,
        replicas: Count::of_all(observed.children().filter(|child| !child.is_deleting)).desired,
        progress: format!("{active}/{wanted}"),
        revision: child
            .and_then(|child| find(&observed.revisions, child.hash()))
            .map(|revision| revision.number),
        // A report about another revision or restart token counts none of the wanted ones.
        updated: child.and_then(|child| {
            child.outputs.updated.map(|updated| if observed.is_about_wanted(child) { updated } else { 0 })
        }),
        revisions: revisions(observed),
        selector: main_server(observed).and_then(|child| child.outputs.selector.clone()),
        child: child.map(child_status),
        former_children: observed.leftovers().map(|former| child_status(former)).collect(),
        blocked_by,
        conditions,
    };
    let is_unknown = observed.is_blind
        || (observed.unlisted.is_some() && child.is_none())
        || child.is_some_and(|child| child.outputs.problem.is_some());
    match deployment.status.clone().filter(|_| is_unknown) {
        // Without an observation, the last values remain.
        Some(before) => BasicDeploymentStatus {
            observed_generation: new.observed_generation,
            ready: new.ready,
            blocked_by: new.blocked_by,
            conditions: new.conditions,
            revisions: if observed.is_blind { before.revisions } else { new.revisions },
            ..before
        },
        None => new,
    }
}

/// The revisions to which a rollback can return.
fn revisions(observed: &Observed) -> Vec<StoredRevision> {
    let kept =
        usize::try_from(observed.deployment.spec.revision_history_limit).unwrap_or(0).saturating_add(1);
    let surplus = observed.revisions.len().saturating_sub(kept);
    let listed = observed.revisions[surplus..].iter().filter(|revision| observed.lists(&revision.kind));
    let stored = listed.filter_map(|revision| {
        let (hash, at) = (revision.hash.clone(), revision.numbered_at.clone()?);
        Some(StoredRevision { number: revision.number, hash, at })
    });
    stored.collect()
}

/// Why the restart token has no effect, or keeps later restarts from having one: a reason and a message.
fn restart_blocked(observed: &Observed) -> Option<(&'static str, String)> {
    let token = observed.deployment.spec.restarted_at.as_ref()?;
    if let Some(at) = token::in_future(observed) {
        let message = format!(
            "spec.restartedAt is {at}, which is later than now, so that no restart before that time has an effect; remove the field"
        );
        return Some((TOKEN_IN_FUTURE, message));
    }
    let child = observed.child.ours()?;
    let kind = &child.kind;
    if kind.fields().restarted_at.is_none() {
        let message = format!(
            "spec.restartedAt is {token}, but the replica contract maps no restartedAt for the kind {}, so that it cannot be restarted; map it in the controller's values if the kind has such a field",
            kind.kind
        );
        return Some((CHILD_HAS_NO_RESTART, message));
    }
    observed.token_for(child)?;
    let failure = observed.backoffs.step_failure(step::RESTART).filter(|failure| !failure.is_expected)?;
    Some((failure.reason, format!("spec.restartedAt cannot be handed to the child: {}", failure.message)))
}

/// The child with the most serving replicas, preferably the wanted one, for autoscalers to measure.
fn main_server(observed: &Observed) -> Option<&Child> {
    // Among equal ones, the last one wins.
    let children = observed.former_children().chain(observed.child.ours());
    children.max_by_key(|child| child.outputs.active).map(AsRef::as_ref)
}

/// A message about former children, and about replicas that are waited for.
fn by_former(observed: &Observed) -> String {
    let serving = observed.former_children().filter(|child| child.outputs.active > 0);
    let said =
        serving.map(|child| format!(", {} of them of the former {}", child.outputs.active, child.named()));
    let broken = observed.former_children().filter_map(|child| {
        let problem = child.outputs.problem.as_ref()?;
        Some(format!("; the former {} breaks the replica contract: {problem}", child.named()))
    });
    let failed = failures_about_former(observed).filter(|(step, _)| *step != step::READ_FORMER).map(
        |(step, failure)| {
            let done = if step == step::CLEAN_UP { "deleted" } else { "scaled" };
            format!("; a former child cannot be {done}: {}", failure.message)
        },
    );
    let leaving = observed.others.iter().filter(|child| child.is_deleting && child.outputs.active > 0);
    let leaving = leaving.map(|child| {
        format!(
            "; the former {} is being deleted, and {} of its replicas still serve: a finalizer may keep it",
            child.named(),
            child.outputs.active
        )
    });
    said.chain(broken).chain(failed).chain(leaving).collect::<Vec<_>>().concat() + &by_handed(observed)
}

/// A message about the fields that are handed to children, and what they wait for.
fn by_handed(observed: &Observed) -> String {
    let child = observed.child.ours();
    let young = child.map(|child| child.outputs.active - child.outputs.available).filter(|young| *young > 0);
    let young = young.map(|young| format!("; {young} are ready for less than minReadySeconds"));
    let awaited = observed.awaited().filter(|child| child.is_current()).map(|child| {
        let ending = child.ending().map_or_else(|| "an unknown number".to_owned(), |ending| ending.to_string());
        format!(
            "; spec.podReplacementPolicy waits for the end of {ending} of the replicas of {} (contract.terminating)",
            child.named()
        )
    });
    let is_asked = observed.deployment.spec.min_ready_seconds.is_some();
    let is_lost = is_asked && child.is_some_and(|child| child.kind.fields().min_ready_seconds.is_none());
    let lost = is_lost.then(|| {
        "; contract.minReadySeconds of the child's kind names no field, so that it does not get spec.minReadySeconds".to_owned()
    });
    young.into_iter().chain(lost).chain(awaited).collect()
}

/// The failures that stop an exchange, because a former child cannot be changed, by step.
fn failures_about_former(observed: &Observed) -> impl Iterator<Item = (&'static str, &Failure)> {
    let is_any = observed.held_up().is_none() && observed.former_children().next().is_some();
    let is_broken = observed.former_children().any(|child| !child.is_readable());
    // The cure of a broken contract is seen before the step is tried again.
    let steps = match () {
        () if !is_any => &[][..],
        () if observed.is_served() => &[step::CLEAN_UP],
        () if is_broken => &[step::READ_FORMER, step::SCALE_FORMER, step::HEAL_FORMER],
        () => &[step::SCALE_FORMER, step::HEAL_FORMER],
    };
    let failed = |step: &'static &'static str| Some((*step, observed.backoffs.step_failure(step)?));
    steps.iter().filter_map(failed).filter(|(_, failure)| !failure.is_expected)
}

fn rolled_back(pin: &Pin, observed: &Observed) -> String {
    let number = find(&observed.revisions, &pin.hash).map(|revision| revision.number).unwrap_or_default();
    let refusal = observed.rendered.as_ref().err();
    let refusal =
        refusal.map_or_else(String::new, |refusal| format!("; they give no child now: {}", refusal.message));
    format!(
        "revision {number} stays until the spec or the template changes; fix there what was rolled back, or the next change brings it back{refusal}"
    )
}

/// The minimum age of `before` when `after` is written.
///
/// Mere numbers are not urgent, nor is another pod that blocks for the same reason. Numbers are stable when the child
/// serves its rendering, or names its blocker.
#[must_use]
pub fn minimum_age(
    before: &BasicDeploymentStatus,
    after: &BasicDeploymentStatus,
    observed: &Observed,
) -> Duration {
    let known = |status: &BasicDeploymentStatus| {
        let blocker =
            status.blocked_by.as_ref().map(|blocker| (blocker.kind.clone(), blocker.reason.clone()));
        let is_stalled = Conditions::is_true(&status.conditions, Conditions::STALLED);
        let goes_on = !Conditions::is_false(&status.conditions, Conditions::PROGRESSING);
        // Such a wait has no numbers, and may need somebody who removes a finalizer.
        let waits_for_former = Conditions::find(&status.conditions, Conditions::READY)
            .is_some_and(|ready| ready.reason == FORMER_CHILD_LEAVING);
        // Nobody waits for the observation of the first generation, only for its effects.
        let generation = status.observed_generation.or(after.observed_generation);
        // A rollback goes by the revisions, but not from the first one.
        let revision = status.revisions.last().or(after.revisions.last()).map(|last| last.number);
        (generation, revision, blocker, [status.ready, is_stalled, goes_on, waits_for_former])
    };
    if known(before) != known(after) {
        return StatusAge::NOW;
    }
    let are_at_rest =
        after.blocked_by.is_some() || observed.child.ours().is_some_and(|child| observed.serves(child));
    if are_at_rest { StatusAge::STABLE } else { StatusAge::PROGRESSING }
}

/// Reasons of the parent that are read back from its status: by the next leader, and by people.
const OWN_REASONS: [&str; 4] =
    [PAUSED, CHANGED_WHILE_PAUSED, FORMER_CHILD_LEAVING, PROGRESS_DEADLINE_EXCEEDED];
/// Condition: present only while a restart token has no effect, or keeps later ones from having one.
const RESTART_BLOCKED: &str = "RestartBlocked";
/// Condition: present only while the child is held on an older revision than spec and template give.
const ROLLED_BACK: &str = "RolledBack";

/// Summarizes the state by the first cause that applies: the reason, the message, and whether it is stalled.
fn summary(
    observed: &Observed,
    child: Option<&Child>,
    is_ready: bool,
    active: i32,
    blocker: Option<&BlockedBy>,
) -> (String, String, bool) {
    let wanted = observed.deployment.spec.replicas;
    let counted = format!("{active} of {wanted} replicas are serving{}", by_former(observed));
    let say = |reason: &str, message: String, is_stalled| (reason.to_owned(), message, is_stalled);
    if let Some(failure) = observed.failure_about_child() {
        // A fight about one field does not explain why pods do not serve.
        let beside = child.filter(|_| observed.failure_to_heal().is_some());
        let beside = beside.and_then(|child| blocker_of(observed, child)).as_ref().map(not_ready);
        let message = failure.with_next_retry() + &beside.unwrap_or_default();
        return say(failure.reason, message, failure.is_stalled);
    }
    if is_ready {
        return say("Complete", counted, false);
    }
    let unknown = blocking_pod::found(observed).and_then(|found| found.as_ref().err());
    let unknown = unknown.map_or_else(String::new, |why| format!("; {why}"));
    // It is told with the former children.
    let blocker = blocker.filter(|_| failures_about_former(observed).next().is_none());
    let whom = blocker.map_or(unknown, not_ready);
    let is_outdated = matches!(
        (child, &observed.desired),
        (Some(child), Ok(desired)) if child.hash() != desired.hash || observed.token_for(child).is_some()
    );
    if observed.deployment.spec.paused && (is_outdated || child.is_none()) {
        let kept = if child.is_some() {
            "nothing but replicas, minReadySeconds and podReplacementPolicy of the child is changed"
        } else {
            "no child is created"
        };
        return say(PAUSED, format!("{counted}; spec.paused is true, so that {kept}"), false);
    }
    if let Some(field) = observed.changed_in_pause() {
        let text =
            format!("{counted}; spec.paused is true, so that a change of {field} of the child is not undone");
        return say(CHANGED_WHILE_PAUSED, text, false);
    }
    if let Found::Leaving(left) = &observed.child {
        let text = format!(
            "{} of a former BasicDeployment of this name still exists; the new one is created once it is gone",
            left.named()
        );
        return say(FORMER_CHILD_LEAVING, text, false);
    }
    if let Some(stalled) = child.and_then(Child::stalled) {
        let reason = &stalled.reason;
        let is_own = OWN_REASONS.contains(&reason.as_str());
        let reason = if is_own { format!("Child{reason}") } else { reason.clone() };
        return (reason, format!("{counted}{whom}"), true);
    }
    if let (Some(child), Some(pause)) = (child, child.and_then(Child::paused)) {
        let (kind, name, why) = (&child.kind.kind, &child.name, reasoned(&pause.reason, &pause.message));
        let beside = blocker_of(observed, child).as_ref().map(not_ready).unwrap_or_default();
        return say(CHILD_PAUSED, format!("{counted}; {kind} {name} is paused: {why}{beside}"), false);
    }
    if stall::is_exceeded(observed) {
        let seconds = observed.deployment.spec.progress_deadline_seconds;
        let text = format!("{counted}, without progress for {seconds} s{whom}");
        return say(PROGRESS_DEADLINE_EXCEEDED, text, true);
    }
    let reason = match () {
        () if is_outdated => reason::UPDATING,
        () if child.is_some() && observed.leftovers().next().is_some() => reason::EXCHANGING,
        () => reason::PROGRESSING,
    };
    say(reason, format!("{counted}{whom}"), false)
}

/// The end of a message about what is not ready.
fn not_ready(blocker: &BlockedBy) -> String {
    let BlockedBy { kind, name, reason, message, next_retry, .. } = blocker;
    let why = reasoned(reason, message);
    let next = next_retry.as_ref().map_or_else(String::new, |next| format!("; {}", NextRetry::At(next.0)));
    format!("; {kind} {name} is not ready: {why}{next}")
}

/// A reason with its message, if it has one.
fn reasoned(reason: &str, message: &str) -> String {
    if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") }
}

/// The child's blocker, otherwise the pod that was found.
fn blocker_of(observed: &Observed, child: &Child) -> Option<BlockedBy> {
    let pod = || blocking_pod::found(observed).and_then(|found| found.clone().ok().flatten());
    child.outputs.blocked_by.clone().or_else(pod)
}

/// This object itself while it cannot continue, otherwise the child if it does not report, whose blocker is out of date then,
/// otherwise the child's blocker, otherwise the pod that was found, otherwise the child if it is stalled, paused or being deleted.
fn blocked_by(observed: &Observed, child: Option<&Child>) -> Option<BlockedBy> {
    let deployment = &observed.deployment;
    let before = deployment.status.as_ref().and_then(|status| status.blocked_by.as_ref());
    let since = |name: &str, reason: &str| {
        let same = before.filter(|before| before.name == name && before.reason == reason);
        same.map_or(Some(Time(observed.now)), |same| same.since.clone())
    };
    let former = || failures_about_former(observed).map(|(_, failure)| failure).next();
    if let Some(failure) = observed.failure_about_child().or_else(former) {
        let own @ [.., name] = itself(deployment);
        let next_retry = failure.next_retry.and_then(NextRetry::at).map(Time);
        let blocker = BlockedBy::new(own, failure.reason, &failure.message, since(name, failure.reason));
        return Some(BlockedBy { next_retry, ..blocker });
    }
    let child = child?;
    let by_itself = |reason: &str, message: &str| {
        BlockedBy::new(identity(child), reason, message, since(&child.name, reason))
    };
    if let Some(silence) = stall::silence(observed, child) {
        return Some(by_itself(NOT_REPORTED, &format!("it {silence}")));
    }
    blocker_of(observed, child)
        .or_else(|| child.stalled().map(|Stalled { reason, message }| by_itself(reason, message)))
        .or_else(|| child.paused().map(|Pause { reason, message }| by_itself(reason, message)))
        .or_else(|| {
            child.is_deleting.then(|| by_itself(TERMINATING, "it is being deleted: a finalizer may keep it"))
        })
}

/// The API version, the kind and the name of a `BasicDeployment`.
fn itself(deployment: &BasicDeployment) -> [&str; 3] {
    ["catena.dev/v1alpha1", "BasicDeployment", ObjectId::of(deployment).name]
}

/// Those of a child.
fn identity(child: &Child) -> [&str; 3] {
    [&child.kind.api_version, &child.kind.kind, &child.name]
}

fn child_status(child: &Child) -> ChildStatus {
    let [api_version, kind, name] = identity(child).map(str::to_owned);
    ChildStatus { api_version, kind, name, uid: child.uid.clone(), hash: child.hash().to_owned() }
}

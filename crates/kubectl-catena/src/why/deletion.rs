//! An object that is deleted and still exists.

use catena_api::keys;
use jiff::{SignedDuration, Timestamp};

use super::{Cause, Facts, Step, Verdict, contents, controllers, edges, nodes, objects, reasons, text};
use crate::{
    chain::{Finalizer, Node, State},
    protection::{self, BACKUP_CONTROLLER, HELD_FOR_BACKUP, NO_ENTRY},
    screen::{age, duration},
};

/// More would hide the rest.
const MAX_REMARKS: usize = 3;

/// What a deleted object waits for: its contents, the node of a pod, the holder of a finalizer, or its dependents.
pub fn step<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Step<'n>> {
    let since = node.deleted?;
    if let Some(cause) = contents::remaining(node, since) {
        let contents = facts.surroundings.related.contents.iter();
        let held = contents.filter(|held| held.deleted.is_some() && contents::contains(node, &held.identity));
        return Some(Step::to(held, Some(cause)));
    }
    let (named, missing) = edges::follow(node, facts);
    if node.identity.kind == "Pod" && missing.is_some() {
        return missing.map(Step::own);
    }
    if let Some(finalizer) = objects::holders(node).next() {
        // A backup that fails leads further; of one that is under way, the report on the object tells more.
        let is_stuck = |below: &Node| matches!(below.health.state, State::Stuck | State::Failed);
        let fails = |found: &&Node| objects::way_to(found, &is_stuck).is_some();
        let next = named.into_iter().filter(|found| node.identity.kind == "Pod" || fails(found));
        return Some(Step::to(next, Some(held_by(node, finalizer, since, facts))));
    }
    // Deleted in the foreground: it waits for its dependents.
    let dependents = node.children.iter().filter(|child| child.deleted.is_some());
    let mut step = Step::to(named.into_iter().chain(dependents), Some(waits(node, since, facts)));
    step.ways.extend(objects::way_to(node, &objects::is_kept_pod));
    Some(step)
}

/// Pods that were deleted and that a finalizer keeps, while others may serve in their place.
pub fn remarks(facts: &Facts, cause: Option<&Cause>) -> Vec<String> {
    let is_told = |pod: &Node| {
        pod.identity.uid == facts.asked.identity.uid
            || cause.is_some_and(|cause| cause.object == pod.identity)
    };
    let pods = facts.asked.all().filter(|node| objects::is_kept_pod(node) && !is_told(node));
    let told = pods.filter_map(|pod| {
        let (since, finalizer) = (pod.deleted?, objects::holders(pod).next()?);
        let (pod, name) = (&pod.identity, &finalizer.name);
        Some(format!("{pod} was deleted {} ago, and the finalizer {name} keeps it", age(facts.now, since)))
    });
    told.take(MAX_REMARKS).collect()
}

/// What an object above the cause waits for, and how it is let go.
pub fn held_for_backup(node: &Node) -> Option<String> {
    node.deleted?;
    objects::holders(node).find(|finalizer| finalizer.name == keys::BACKUP_FINALIZER)?;
    let row = reasons::describe(HELD_FOR_BACKUP)?;
    Some(format!("{} {}: {}", node.identity, row.meaning, text::with_names(&row.remedy, &node.identity)))
}

fn held_by(node: &Node, finalizer: &Finalizer, since: Timestamp, facts: &Facts) -> Cause {
    if finalizer.name == keys::BACKUP_FINALIZER {
        return backup(node, since, facts);
    }
    let holder = finalizer.held_by.as_deref();
    let by = holder.map_or_else(String::new, |holder| format!(", which {holder} set and has to remove"));
    let meaning = format!("is being deleted and is held by the finalizer {}{by}", finalizer.name);
    let cause = Cause::with(&node.identity, "HeldByFinalizer").meaning(meaning).since(Some(since));
    // Only controllers from our charts are known well enough to be called missing.
    let mut seen = facts.surroundings.controllers.seen.iter();
    let ours = holder.filter(|holder| seen.any(|seen| seen.controller == **holder));
    match ours.map(|holder| (holder, facts.verdict(holder))) {
        Some((holder, Verdict::Down(down))) => cause.message(down.told(holder)),
        _ => cause,
    }
}

/// Held until its backup is proven; the object itself has the reason for the delay.
fn backup(node: &Node, since: Timestamp, facts: &Facts) -> Cause {
    if let Verdict::Down(down) = facts.verdict(BACKUP_CONTROLLER) {
        let meaning = format!("is held until it is backed up, but {}", down.told(BACKUP_CONTROLLER));
        return controllers::not_running(&node.identity, BACKUP_CONTROLLER, &down).meaning(meaning);
    }
    let kind = (node.identity.group().to_owned(), node.identity.kind.clone());
    if facts.surroundings.protected.as_ref().is_some_and(|kinds| !kinds.current.contains(&kind)) {
        return Cause::with(&node.identity, NO_ENTRY).since(Some(since));
    }
    let report = protection::report(&node.object.metadata);
    let text = |field: &str| report[field].as_str().unwrap_or_default().to_owned();
    let reason = if text("reason").is_empty() { HELD_FOR_BACKUP.to_owned() } else { text("reason") };
    if let Some(namespace) =
        edges::namespace_of_backup(node).filter(|found| facts.surroundings.related.is_missing(found))
    {
        let name = &namespace.name;
        let meaning = format!(
            "is held by {BACKUP_CONTROLLER} until it is backed up, and the namespace {name} of its backup does not exist"
        );
        let advice = format!(
            "create the namespace {name}, or set backups.NAME.namespace in the values of {BACKUP_CONTROLLER} to another one"
        );
        let cause = Cause::with(&node.identity, "NamespaceMissing").meaning(meaning).advice(advice);
        return cause.message(text("message")).since(Some(since));
    }
    let backup = text("backup");
    let of = if backup.is_empty() { String::new() } else { format!(" by {backup}") };
    // The namespace of the backup: the usual advice is for an object that cannot be created.
    let row = reasons::describe(&reason).filter(|_| reason != contents::TERMINATING);
    let mut cause =
        Cause::described(&node.identity, &reason, row.or_else(|| reasons::describe(HELD_FOR_BACKUP)));
    if let Some(backup) = edges::backup_of(node) {
        let why = text::with_names("kubectl catena why {object}{namespace}", &backup);
        cause.advice = format!("{why} explains the state of the backup; {}", cause.advice);
    }
    let meaning = format!("is held by {BACKUP_CONTROLLER} until it is backed up{of}");
    cause.meaning(meaning).message(text("message")).since(Some(since))
}

fn waits(node: &Node, since: Timestamp, facts: &Facts) -> Cause {
    let grace = SignedDuration::from_secs(node.object.metadata.deletion_grace_period_seconds.unwrap_or(0));
    let (reason, meaning) = if node.identity.kind == "Pod" {
        let meaning = if nodes::hangs(node, facts.now) {
            format!(
                "has been shutting down for longer than its grace period of {}: its node may be gone",
                duration(grace)
            )
        } else {
            format!("is shutting down, with a grace period of {}", duration(grace))
        };
        ("ShuttingDown", meaning)
    } else if node.children.is_empty() && node.finalizers.is_empty() {
        ("Terminating", "is being deleted, and nothing holds it: it will be gone in a moment".to_owned())
    } else if node.children.is_empty() {
        let meaning = "is deleted after its dependents, of which none was found: the garbage collector has to \
                       remove the object";
        ("WaitsForDependents", meaning.to_owned())
    } else {
        ("WaitsForDependents", format!("is deleted after its dependents ({} left)", node.all().count() - 1))
    };
    let cause = Cause::with(&node.identity, reason).meaning(meaning).since(Some(since));
    if reason == "Terminating" { cause.advice("") } else { cause }
}

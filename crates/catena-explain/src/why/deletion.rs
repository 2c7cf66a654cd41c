//! An object that is deleted and still exists, and a namespace or a definition that waits for its contents: an object in such a
//! namespace goes as well, and nothing can be created for it.

use catena_api::{keys, reason::BACKUP_UNCLEAR};
use catena_cluster::{
    Identity, State, conditions,
    protection::{self, BACKUP_CONTROLLER, HELD_FOR_BACKUP, NO_ENTRY},
    text,
};
use catena_terminal::{age, duration};
use jiff::SignedDuration;

use super::{Cause, Facts, Step, Verdict, edges, objects, placement, reasons, text as words, warnings};
use crate::{Finalizer, Node};

/// More would hide the rest.
const MAX_REMARKS: usize = 3;
/// The beginning of the conditions of a namespace that report why its deletion has not finished.
const OF_NAMESPACES: &str = "Namespace";
/// The one of its contents.
const CONTENTS: &str = "NamespaceContentRemaining";
/// The one of contents that do not go.
const FAILING: &str = "NamespaceDeletionContentFailure";
/// The one of an API whose kinds cannot be listed.
const DISCOVERY: &str = "NamespaceDeletionDiscoveryFailure";

/// The finalizer of a claim that a pod uses.
const PVC_PROTECTION: &str = "kubernetes.io/pvc-protection";

/// The word for an object whose namespace is being deleted.
pub const TERMINATING: &str = "NamespaceTerminating";

/// What a deleted object waits for: its contents, the node of a pod, the holder of a finalizer, or its dependents.
pub fn step<'n>(node: &'n Node, facts: &Facts<'n>) -> Option<Step<'n>> {
    node.deleted?;
    if let Some(cause) = remaining(node) {
        let contents = facts.surroundings.related.contents.iter();
        let contents = contents.filter(|held| contains(node, &held.identity));
        // Its claims wait for a pod that hangs.
        let (late, held): (Vec<_>, Vec<_>) =
            contents.partition(|held| held.finalizers.is_empty() && placement::hangs(held, facts.now));
        let waits_for_pods = |held: &Node| held.finalizers.iter().all(|of| of.name == PVC_PROTECTION);
        let is_way = |held: &&&Node| late.is_empty() || !waits_for_pods(held);
        return Some(Step::to(late.iter().chain(held.iter().filter(is_way)).copied(), Some(cause)));
    }
    let is_pod = node.identity.kind == "Pod";
    let (named, missing) = edges::follow(node, facts);
    let node_is_gone = missing.filter(|_| is_pod).map(Step::own);
    // The garbage collector of pods ends one before it deletes it.
    let has_ended = matches!(text(&node.object, "/status/phase"), Some("Failed" | "Succeeded"));
    let holder = objects::holders(node).next().filter(|_| node_is_gone.is_none() || has_ended);
    if let Some(finalizer) = holder {
        // A backup that fails leads further; of one that is under way, the report on the object tells more.
        let is_at_fault = |node: &Node| match node.health.state {
            State::Stuck | State::Failed => true,
            State::Moving => warnings::current(node, facts).next().is_some(),
            _ => false,
        };
        let fails = |found: &&Node| objects::path_to(found, &is_at_fault).is_some();
        let next = named.into_iter().filter(|found| is_pod || fails(found));
        return Some(Step::to(next, Some(held_by(node, finalizer, facts))));
    }
    // Deleted in the foreground: it waits for its dependents.
    let dependents = node.children.iter().filter(|child| child.deleted.is_some());
    let mut step = Step::to(named.into_iter().chain(dependents), Some(waits(node, facts)));
    step.ways.extend(objects::way_to(node, &objects::is_kept_pod));
    Some(node_is_gone.unwrap_or(step))
}

/// Pods that were deleted and that a finalizer keeps, while others may serve in their place.
pub fn remarks(facts: &Facts, cause: Option<&Cause>) -> impl Iterator<Item = String> {
    let is_untold = move |pod: &&Node| cause.is_none_or(|cause| cause.object != pod.identity);
    let pods = facts.asked.all().filter(|node| objects::is_kept_pod(node)).filter(is_untold);
    let told = pods.filter_map(|pod| {
        let (ago, finalizer) = (age(facts.now, pod.deleted?), &objects::holders(pod).next()?.name);
        Some(format!("{} was deleted {ago} ago, and the finalizer {finalizer} keeps it", pod.identity))
    });
    told.take(MAX_REMARKS)
}

/// What else an object on the way to the cause waits for, and how it is let go.
pub fn other_holders(node: &Node, cause: &Cause, asked: &Identity) -> Vec<String> {
    let (is_cause, name) = (node.identity == cause.object, words::name_beside(&node.identity, asked));
    let filled = |advice: &str| words::with_names(advice, &node.identity);
    let counts = |contents: &Cause| !is_cause && contents.message.contains(" resource instances");
    let contents = remaining(node).filter(counts);
    let contents = contents.map(|Cause { meaning, message, advice, .. }| {
        format!("{name} {meaning}: {message}; {}", filled(&advice))
    });
    let holders = objects::holders(node).filter(|_| node.deleted.is_some());
    let holders = holders.enumerate().skip(usize::from(is_cause));
    let holders = holders.filter_map(|(index, finalizer)| match finalizer.name.as_str() {
        keys::BACKUP_FINALIZER => reasons::describe(HELD_FOR_BACKUP)
            .map(|row| format!("{name} {}: {}", row.meaning, filled(&row.remedy))),
        _ if index == 0 => None,
        other => Some(format!("{name} is also held by the finalizer {other}{}", set_by(finalizer))),
    });
    contents.into_iter().chain(holders).collect()
}

fn set_by(finalizer: &Finalizer) -> String {
    finalizer.held_by.as_ref().map_or_else(String::new, |holder| format!(", which {holder} set"))
}

fn held_by(node: &Node, finalizer: &Finalizer, facts: &Facts) -> Cause {
    if finalizer.name == keys::BACKUP_FINALIZER {
        return backup(node, facts);
    }
    let (words, user) = match finalizer.name.as_str() {
        "kubernetes.io/pvc-protection" => ("volume in use", "pod"),
        "kubernetes.io/pv-protection" => ("volume in use", "claim"),
        _ => ("finalizer", ""),
    };
    let names = [("{finalizer}", &*finalizer.name), ("{by}", &set_by(finalizer)), ("{user}", user)];
    let cause = Cause::with(&node.identity, "HeldByFinalizer").in_case(words, &names);
    // Whoever has to remove it may say why it does not; the conditions of the kinds of Kubernetes are about something else.
    let is_foreign = node.identity.group().contains('.');
    let said = objects::conditions_told(node).filter(|_| is_foreign).collect::<Vec<_>>().join("\n");
    cause.message(warnings::after(&said, node, facts)).since(node.deleted)
}

/// Held until its backup is proven; the object itself has the reason for the delay.
fn backup(node: &Node, facts: &Facts) -> Cause {
    if let Verdict::Down(down) = facts.verdict(BACKUP_CONTROLLER)
        && let Some(cause) = facts.not_running(&node.identity, BACKUP_CONTROLLER)
    {
        return cause.in_case("no backup-controller", &[("{down}", &down)]);
    }
    let kind = (node.identity.group().to_owned(), node.identity.kind.clone());
    if facts.surroundings.protected.as_ref().is_some_and(|kinds| !kinds.current.contains(&kind)) {
        return Cause::with(&node.identity, NO_ENTRY).since(node.deleted);
    }
    let report = protection::report(&node.object.metadata);
    let text = |field: &str| report[field].as_str().filter(|text| !text.is_empty());
    let (reason, message) = (text("reason").unwrap_or(HELD_FOR_BACKUP), text("message").unwrap_or_default());
    if let Some(cause) = without_namespace(node, reason, facts) {
        return cause.message(message).since(node.deleted);
    }
    let refused = Cause::refused(&node.identity, reason, message);
    let row = reasons::describe(reason).filter(|_| refused.is_none());
    let row = row.or_else(|| reasons::describe(HELD_FOR_BACKUP));
    let mut cause = Cause::described(&node.identity, reason, row);
    if reason != BACKUP_UNCLEAR {
        let by = text("backup").map_or_else(String::new, |backup| format!(" by {backup}"));
        cause = cause.in_case("backup", &[("{by}", &by)]);
    }
    if let Some(news) = unwritable(node, message, facts) {
        return Cause { meaning: format!("{}, and {}", cause.meaning, news.meaning), ..news };
    }
    if let Some(refused) = refused {
        cause.meaning = format!("{}, and {}", cause.meaning, refused.meaning);
        cause.advice = format!("{}; {}", refused.advice, cause.advice);
    } else if let Some(backup) = edges::backup_of(node).filter(|_| reason != BACKUP_UNCLEAR) {
        let why = words::with_names("kubectl catena why {object}{namespace}", &backup);
        cause.advice = format!("{why} explains the state of the backup; {}", cause.advice);
    }
    cause.message(message).since(node.deleted)
}

/// The cause of an object if no backup can be created in the namespace for it.
fn without_namespace(node: &Node, reason: &str, facts: &Facts) -> Option<Cause> {
    let (namespace, related) = (edges::namespace_of_backup(node)?, &facts.surroundings.related);
    let goes = || related.find(&namespace).is_some_and(|found| found.deleted.is_some());
    let (reason, case) = match reason {
        _ if related.is_missing(&namespace) => ("NamespaceMissing", "namespace of the backup"),
        reason if reason == TERMINATING || goes() => (TERMINATING, "deleted namespace of the backup"),
        _ => return None,
    };
    Some(Cause::with(&node.identity, reason).in_case(case, &[("{place}", &namespace.name)]))
}

/// The refusal of a write to the held object itself: backup-controller can neither report on it nor release it.
fn unwritable(node: &Node, reported: &str, facts: &Facts) -> Option<Cause> {
    let is_news = |message: &str| reported.is_empty() || !message.contains(reported);
    let current = warnings::current(node, facts);
    let mut news = current.filter(|news| news.by == BACKUP_CONTROLLER && is_news(&news.message));
    news.find_map(|news| Some(Cause::refused(&node.identity, &news.reason, &news.message)?.since(news.since)))
}

fn waits(node: &Node, facts: &Facts) -> Cause {
    let grace = SignedDuration::from_secs(node.object.metadata.deletion_grace_period_seconds.unwrap_or(0));
    let (grace, number) = (duration(grace), (node.all().count() - 1).to_string());
    let on = edges::node_of(node).and_then(|on| facts.surroundings.related.find(&on));
    let on = on.filter(|on| on.health.state == State::Ready).map(|on| on.identity.to_string());
    let late = if on.is_some() { "late end on a node that answers" } else { "late end" };
    let (reason, variant) = match (node.children.is_empty(), node.finalizers.is_empty()) {
        _ if node.identity.kind == "Pod" => {
            ("ShuttingDown", if placement::hangs(node, facts.now) { late } else { "end" })
        }
        (true, true) => ("Terminating", "nothing holds it"),
        (true, false) => ("WaitsForDependents", "no dependents"),
        (false, _) => ("WaitsForDependents", "dependents"),
    };
    let names = [("{grace}", &*grace), ("{number}", &number), ("{node}", &on.unwrap_or_default())];
    let cause = Cause::with(&node.identity, reason).in_case(variant, &names).since(node.deleted);
    cause.message(warnings::after("", node, facts))
}

/// Whether an object is deleted after others that it contains.
pub fn waits_for_contents(node: &Node) -> bool {
    let kind = (node.identity.group(), node.identity.kind.as_str());
    node.deleted.is_some()
        && matches!(kind, ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition"))
}

/// Whether an object is inside a deleted namespace, or of the kind of a deleted definition.
pub fn contains(container: &Node, object: &Identity) -> bool {
    let text = |pointer: &str| text(&container.object, pointer).unwrap_or_default();
    match container.identity.kind.as_str() {
        "Namespace" => object.namespace.as_ref() == Some(&container.identity.name),
        _ => object.kind == text("/spec/names/kind") && object.group() == text("/spec/group"),
    }
}

/// The resources of which objects are left, such as `configmaps.` or `widgets.example.com`.
pub fn resources_left(container: &Node) -> Vec<String> {
    if container.identity.kind != "Namespace" {
        return vec![container.identity.name.clone()];
    }
    let said = messages(container, CONTENTS);
    let list = said.split_once(": ").map_or("", |(_, list)| list);
    let names = list.split(", ").filter_map(|item| Some(item.split_once(" has ")?.0));
    let names = names.map(|name| name.trim_end_matches('.').to_owned());
    // Another condition of it says `… for gvr: apps/v1, Resource=deployments`.
    let failing = messages(container, FAILING);
    let failed = failing.split("for gvr: ").skip(1).filter_map(|part| {
        let (version, rest) = part.split_once(", Resource=")?;
        let resource: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        Some(if group.is_empty() { resource } else { format!("{resource}.{group}") })
    });
    names.chain(failed).collect()
}

/// The contents that a deleted namespace or definition waits for, as its own conditions report them.
fn remaining(node: &Node) -> Option<Cause> {
    let is_namespace = node.identity.kind == "Namespace";
    let message = messages(node, if is_namespace { OF_NAMESPACES } else { "Terminating" });
    let variant = match &*message {
        _ if !waits_for_contents(node) => return None,
        "" if !node.finalizers.is_empty() => return None,
        "" => "unnamed contents",
        _ if !is_namespace => "objects of a kind",
        said if said.contains(keys::BACKUP_FINALIZER) => "held contents",
        _ if !messages(node, DISCOVERY).is_empty() => "silent API",
        _ => "",
    };
    let cause = Cause::with(&node.identity, "ContentsRemain").in_case(variant, &[]);
    Some(cause.message(message).since(node.deleted))
}

/// The messages of those conditions that are true and whose types begin so; the last ones say most.
fn messages(node: &Node, types: &str) -> String {
    let told = conditions(&node.object).into_iter().rev();
    let told = told.filter(|found| found.type_.starts_with(types) && found.status == "True");
    told.map(|found| found.message.trim_end_matches('.').to_owned()).collect::<Vec<_>>().join("; ")
}

/// The cause of an object that is not deleted yet, while its namespace is.
pub fn in_terminating_namespace(node: &Node, facts: &Facts) -> Option<Cause> {
    let is_open = !objects::has_ended(node) && node.deleted.is_none();
    let namespace = facts.surroundings.namespace.as_ref();
    let namespace = namespace.filter(|namespace| is_open && contains(namespace, &node.identity))?;
    let cause = Cause::with(&namespace.identity, TERMINATING).in_case("namespace that goes", &[]);
    Some(cause.message(messages(namespace, OF_NAMESPACES)).since(namespace.deleted))
}

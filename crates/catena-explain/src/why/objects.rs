//! Questions about an object and those below it: whether it is a command, and whether it is well. Readiness is a claim, which is
//! compared with the numbers of the same object and with its pods.

use std::collections::HashSet;

use catena_api::{command::BOUND, keys};
use catena_cluster::{Health, Identity, State, condition, conditions, replicas, run_record, text};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ManagedFieldsEntry};
use kube::ResourceExt;

use super::{Facts, command::RUNNER, edges, failed, reasons};
use crate::{Finalizer, Node};

/// The controller that binds commands.
pub const BINDER: &str = "command-binder";

/// Why an object is not ready although it reports so, as far as its pods were read.
pub fn contradiction(node: &Node, facts: &Facts) -> Option<String> {
    // Of one that claims to be ready with too few replicas, the health tells nothing but that it is in progress.
    let find = |type_: &str| condition(&node.object, type_);
    let claims_less =
        find("Ready").is_some_and(|ready| ready.status == "True") && find("Progressing").is_none();
    if node.health.state != State::Ready && !(node.health.state == State::Moving && claims_less) {
        return None;
    }
    if let Some(child) = lost_child(node).filter(|_| !facts.surroundings.is_incomplete) {
        return Some(format!("reports that it is ready, but its child {child} was not found"));
    }
    let Some((serving, wanted)) = replicas(&node.object) else {
        // Its operator may be content with fewer pods than all, and may have made a claim without any.
        let is_down = |below: &&Node| {
            let wants = replicas(&below.object).is_some_and(|(_, wanted)| wanted > 0);
            owns_pods(&below.identity) && below.deleted.is_none() && wants && ready_pods(below) == 0
        };
        let down = node.all().find(is_down).filter(|_| !facts.surroundings.is_incomplete)?;
        return Some(format!("reports that it is ready, but no pod of {} is", down.identity));
    };
    if let Some(serving) = serving.filter(|serving| *serving < wanted) {
        return Some(format!("reports that it is ready, and also that {serving} of {wanted} replicas serve"));
    }
    // An operator may count something else than pods.
    let is_below = |child: &Node| contradiction(child, facts).is_some();
    let counts_pods = owns_pods(&node.identity)
        || pods(node).any(|pod| matches!(pod.health.state, State::Moving | State::Unreported | State::Stuck))
        || node.children.iter().any(is_below);
    let ready = ready_pods(node);
    (!facts.surroundings.is_incomplete && counts_pods && ready < wanted)
        .then(|| format!("reports that all replicas serve ({wanted}), but {ready} of its pods are ready"))
}

/// The child that the status of a BasicDeployment names, if it is none of its dependents.
fn lost_child(node: &Node) -> Option<Identity> {
    let text = |field: &str| text(&node.object, &format!("/status/child/{field}"));
    let namespace = node.identity.namespace.as_deref();
    let named = Identity::new(text("apiVersion")?, text("kind")?, namespace, text("name")?);
    let is_it = |child: &Node| child.identity.is_named_by(&named);
    (node.identity.group() == keys::GROUP && !node.children.iter().any(is_it)).then_some(named)
}

/// Whether an object reports to be ready, and as many pods are as it shall have replicas, if it has any.
pub fn is_confirmed(node: &Node) -> bool {
    let is_counted = replicas(&node.object).is_none_or(|(_, wanted)| ready_pods(node) >= wanted);
    node.health.state == State::Ready && is_counted
}

fn ready_pods(node: &Node) -> i64 {
    let ready = pods(node).filter(|pod| pod.health.state == State::Ready).count();
    i64::try_from(ready).unwrap_or(i64::MAX)
}

fn pods(node: &Node) -> impl Iterator<Item = &Node> {
    node.all().filter(|below| below.identity.kind == "Pod" && below.identity.group().is_empty())
}

/// Whether each replica of a kind is a pod.
pub fn owns_pods(identity: &Identity) -> bool {
    matches!(
        (identity.group(), identity.kind.as_str()),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | (keys::GROUP, "BasicReplicaSet")
    )
}

/// The fields of a status in which other projects tell the state, and those beside them that say why.
const STATES: [(&str, &str); 4] =
    [("health/", "status"), ("operationState/", "phase"), ("", "phase"), ("", "state")];
const REASONS: [&str; 3] = ["message", "reason", "phaseReason"];
/// Parts of words that mean nothing good in any project.
const BAD: [&str; 6] = ["degraded", "error", "failed", "invalid", "pressure", "unavailable"];
/// Beginnings of words for a state that does not last, so that what is said of it may be an obstacle.
const OPEN: [&str; 3] = ["pending", "processing", "waiting"];
/// Conditions that are true of whatever is well.
const GOOD: [&str; 3] = ["AbleToScale", "Healthy", "ScalingActive"];

/// Whether some words mean nothing good.
fn is_bad(words: &str) -> bool {
    let words = words.to_lowercase();
    BAD.iter().any(|bad| words.contains(bad))
}

/// What the status of an object tells outside of its conditions: fields with a state, each with the field that says why.
fn states(node: &Node) -> impl Iterator<Item = ((String, &str), Option<(String, &str)>)> {
    STATES.iter().filter_map(|(place, word)| {
        let find = |word: &&str| {
            let field = format!("{place}{word}");
            Some((field.replace('/', "."), text(&node.object, &format!("/status/{field}"))?))
        };
        Some((find(word)?, REASONS.iter().find_map(find)))
    })
}

/// The report of an object that it is not well, where its kind has no usual word for readiness.
pub fn complaint(node: &Node) -> Option<Health> {
    let against = conditions(&node.object).into_iter().find(|found| match found.status.as_str() {
        "True" => is_bad(&found.type_),
        // An autoscaler rests while its target is scaled to zero.
        status => status == "False" && GOOD.contains(&&*found.type_) && found.reason != "ScalingDisabled",
    });
    let is_open = |state: &str| OPEN.iter().any(|open| state.to_lowercase().starts_with(open));
    let states = states(node).map(|((_, state), reason)| (state, reason.map(|(_, reason)| reason)));
    let states = states.filter(|(state, reason)| is_bad(state) || reason.is_some() && is_open(state));
    let state = states.min_by_key(|(_, reason)| reason.is_none());
    let unready = text(&node.object, "/status/message").map(|message| ("NotReady", Some(message)));
    let unready = unready.filter(|_| node.object.data["status"]["ready"] == false);
    let told =
        || state.or(unready).map(|(word, why)| Health::new(State::Stuck, word, why.unwrap_or_default()));
    let health = against.map(|found| Health::said(State::Stuck, &found)).or_else(told);
    health.filter(|_| node.health.state == State::Present)
}

/// The conditions that speak against an object, and, if its state says no more, those that are not true.
pub fn conditions_told(node: &Node) -> impl Iterator<Item = String> {
    let Health { state, message, .. } = &node.health;
    let says_no_more =
        matches!(state, State::Present | State::Terminating) || message.is_empty() && !state.is_healthy();
    let mut told = HashSet::new();
    let is_news = move |found: &Condition| {
        let speaks_against = if found.status == "True" { is_bad(&found.type_) } else { says_no_more };
        let has_words = !found.reason.is_empty() || !found.message.is_empty();
        // An autoscaler says so of each target that runs.
        let is_usual = found.type_ == "ScaledToZero";
        speaks_against && has_words && !is_usual && told.insert((found.reason.clone(), found.message.clone()))
    };
    conditions(&node.object).into_iter().filter(is_news).map(|found| {
        let words = [found.reason, found.message].into_iter().filter(|words| !words.is_empty());
        format!("it reports {} {}: {}", found.type_, found.status, words.collect::<Vec<_>>().join(", "))
    })
}

/// What an object says of itself in words that only its project knows, as far as its health has not told it; beside its readiness,
/// what speaks against it.
pub fn own_words(node: &Node) -> impl Iterator<Item = String> {
    let told = states(node).flat_map(|(state, reason)| std::iter::once(state).chain(reason));
    let told = told.filter(|(_, text)| *text != node.health.reason && *text != node.health.message);
    let told = told.map(|(field, text)| format!("its status.{field} is {text}"));
    conditions_told(node).chain(told.filter(|words| node.health.state != State::Ready || is_bad(words)))
}

/// Whether an object is a command: one of ours, or one with a report of command-binder or of command-runner. A `targetRef`
/// alone is no evidence, because a `VerticalPodAutoscaler` has one, too; and other controllers bind things as well.
pub fn is_command(node: &Node) -> bool {
    let is_ours =
        node.identity.group() == keys::GROUP && text(&node.object, "/spec/targetRef/name").is_some();
    let is_of_binder = |found: &Condition| {
        found.type_ == BOUND && (found.reason == BOUND || reasons::describe(&found.reason).is_some())
    };
    let writers = node.object.managed_fields();
    let is_by_binder = |entry: &ManagedFieldsEntry| entry.manager.as_deref() == Some(BINDER);
    let may_be_of_binder = writers.is_empty() || writers.iter().any(is_by_binder);
    is_ours || is_by_runner(node) || may_be_of_binder && conditions(&node.object).iter().any(is_of_binder)
}

/// Whether command-runner has reported on an object. It patches its targets as well, but reports on commands alone.
pub fn is_by_runner(node: &Node) -> bool {
    let is_of_runner = |entry: &ManagedFieldsEntry| {
        entry.manager.as_deref() == Some(RUNNER) && entry.subresource.as_deref() == Some("status")
    };
    run_record(&node.object).is_some() || node.object.managed_fields().iter().any(is_of_runner)
}

/// Whether an object is a command that is not finished.
pub fn is_waiting(node: &Node) -> bool {
    is_command(node) && !has_ended(node)
}

/// Whether an object reports its end.
pub fn has_ended(node: &Node) -> bool {
    matches!(node.health.state, State::Done | State::Failed)
}

/// Whether the spec of an object pauses it.
pub fn is_paused(node: &Node) -> bool {
    node.object.data["spec"]["paused"] == true
}

/// The finalizers that somebody else than the garbage collector has to remove.
pub fn holders(node: &Node) -> impl Iterator<Item = &Finalizer> {
    node.finalizers.iter().filter(|finalizer| !matches!(&*finalizer.name, "foregroundDeletion" | "orphan"))
}

/// Whether an object is a pod that was deleted and that a finalizer keeps. What is above it may count no replicas any more.
pub fn is_kept_pod(node: &Node) -> bool {
    node.identity.kind == "Pod" && node.deleted.is_some() && holders(node).next().is_some()
}

/// The objects between one and the first below it that is wanted, and that one.
pub fn way_to<'n>(node: &'n Node, is_wanted: &dyn Fn(&Node) -> bool) -> Option<Vec<&'n Node>> {
    let mut below = node.children.iter().filter(|child| !is_command(child));
    below.find_map(|child| path_to(child, is_wanted))
}

/// The objects from one to the first that is wanted: itself, or one below it. Commands act beside the chain.
pub fn path_to<'n>(node: &'n Node, is_wanted: &dyn Fn(&Node) -> bool) -> Option<Vec<&'n Node>> {
    if is_wanted(node) {
        return Some(vec![node]);
    }
    Some([vec![node], way_to(node, is_wanted)?].concat())
}

/// The object that one belongs to: its owner, or the target to which a command is bound.
pub fn above<'n>(node: &Node, facts: &Facts<'n>) -> Option<&'n Node> {
    let is_above = |above: &&Node| above.children.iter().any(|below| below.identity.uid == node.identity.uid);
    facts.top.all().find(is_above).filter(|_| !node.unbound)
}

/// The place of the template from which a pod, or each pod of an object, is made: that of the object above all others.
pub fn template_of(node: &Node, facts: &Facts) -> String {
    let mut tops = std::iter::once(facts.top).chain(&facts.surroundings.related.found);
    let top = tops.find(|top| top.find(&node.identity.uid).is_some()).unwrap_or(node);
    let name = &top.identity;
    match (name.group(), name.kind.as_str()) {
        _ if top.object.labels().contains_key(keys::BACKUP_OF) => {
            format!("the template of the backup {name}, in the values of backup-controller")
        }
        (keys::GROUP, "BasicDeployment") => format!("spec.parameters or the template of {name}"),
        ("", "Pod") => "its spec".to_owned(),
        (keys::GROUP | "apps" | "batch", _) => format!("the pod template of {name}"),
        _ => format!("the spec of {name}"),
    }
}

/// Whether an object reports nothing that is wrong with itself.
pub fn reports_well(node: &Node) -> bool {
    node.health.state.is_healthy() && complaint(node).is_none()
}

/// Whether nothing is known to be wrong with an object or below it.
pub fn is_well(node: &Node, facts: &Facts) -> bool {
    let is_blocked = node.health.state == State::Present && edges::blocker(node).is_some();
    let is_open = is_blocked || !reports_well(node) || has_unhealthy_dependents(node);
    !is_open && contradiction(node, facts).is_none()
}

/// Whether an object without a status of its own has dependents that are not well. Finished ones do not count.
pub fn has_unhealthy_dependents(node: &Node) -> bool {
    let is_open = |child: &Node| match child.health.state {
        State::Ready | State::Done | State::Failed | State::Terminating => false,
        // A Job of a schedule runs for a time.
        State::Moving if child.identity.group() == "batch" => {
            child.children.iter().any(|pod| pod.health.state == State::Stuck)
        }
        State::Moving | State::Unreported | State::Stuck => true,
        State::Present => complaint(child).is_some() || has_unhealthy_dependents(child),
    };
    node.health.state == State::Present
        && node.children.iter().any(|child| !is_command(child) && is_open(child))
}

/// Children that are not well, stuck ones first. Commands come and go beside the chain.
pub fn unhealthy_children<'n>(node: &'n Node, facts: &Facts) -> impl Iterator<Item = &'n Node> {
    let rank = |child: &&Node| match child.health.state {
        State::Stuck | State::Failed => 0,
        State::Unreported | State::Moving => 1,
        _ => 2,
    };
    let counts = |child: &&Node| !is_command(child) && !failed::is_replaced(child, node, facts);
    let children = node.children.iter().filter(counts);
    let mut children: Vec<&Node> = children.filter(|child| !is_well(child, facts)).collect();
    children.sort_by_key(rank);
    children.into_iter()
}

//! The cause that lies with an object itself, in its own words or in those of a Warning about it.

use catena_cluster::{State, condition, conditions, containers, last_run, list, text};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Cause, Facts, Warning, controllers, edges, failed, objects, placement, reasons, warnings};
use crate::Node;

/// A scheduler is slow in a large cluster, and says so once it has tried.
const SCHEDULING_GRACE: SignedDuration = SignedDuration::from_secs(30);
/// A controller that has begun something may not know yet how it ends.
const UNKNOWN_GRACE: SignedDuration = SignedDuration::from_mins(1);

/// After this time, the kubelet restarts a container at once again.
pub const RECOVERY: SignedDuration = SignedDuration::from_mins(10);

/// The cause at an object that is not well.
pub fn own(node: &Node, facts: &Facts) -> Cause {
    let unwell = objects::complaint(node).map(|health| Node { health, ..node.clone() });
    let node = unwell.as_ref().unwrap_or(node);
    let said = || words(node, facts);
    match (node.identity.group(), node.identity.kind.as_str()) {
        ("", "Pod") if is_overlooked(node, facts) => {
            let scheduler = text(&node.object, "/spec/schedulerName").unwrap_or("default-scheduler");
            let cause = Cause::with(&node.identity, "NotScheduled").since(node.created);
            // A scheduler says nothing about a pod whose claims do not exist.
            let needs_claims = list(&node.object, "/spec/resourceClaims").next().is_some();
            let variant = if needs_claims { "resource claims" } else { "silent scheduler" };
            cause.in_case(variant, &[("{scheduler}", scheduler)])
        }
        ("", "Pod") if edges::needs_nodes(node) => placement::unschedulable(node, facts),
        ("", "Pod") if node.health.state == State::Failed => failed::among_others(said(), node, facts),
        ("", "PersistentVolumeClaim") => placement::unbound_claim(node, facts),
        ("", "Node") => placement::node_trouble(node).unwrap_or_else(said),
        _ => said(),
    }
}

/// Whether a pod is so new that its scheduler may still look for a node, or wait for its volumes.
pub fn is_new(pod: &Node, facts: &Facts) -> bool {
    pod.created.is_none_or(|created| facts.now.duration_since(created) <= SCHEDULING_GRACE)
}

/// Whether a pod has waited for its scheduler for longer than that takes.
fn is_overlooked(pod: &Node, facts: &Facts) -> bool {
    let is_seen =
        condition(&pod.object, "PodScheduled").is_some() || containers(&pod.object).next().is_some();
    let waits = pod.health.reason == "Starting" && edges::node_of(pod).is_none() && !is_seen;
    waits && !is_new(pod, facts) && warnings::current(pod, facts).next().is_none()
}

/// The message of an object, or an Event about it.
fn words(node: &Node, facts: &Facts) -> Cause {
    let health = &node.health;
    if health.state == State::Moving
        && let Some(controller) = controllers::controller_of(&node.identity)
        && let Some(cause) = facts.not_running(&node.identity, controller)
    {
        return cause;
    }
    let has_failed_itself =
        containers(&node.object).any(|container| is_own_failure(&container["lastState"]["terminated"]));
    // A container is killed for a probe or a hook, and cannot be pulled without its Secret: only a warning tells.
    let is_deeper = |warning: &&Warning| match health.reason.as_str() {
        "CrashLoopBackOff" if !has_failed_itself => {
            warning.reason == "FailedPostStartHook"
                || reasons::gatekeeper(&node.identity, &warning.message).is_some()
        }
        "ErrImagePull" | "ImagePullBackOff" => warning.reason == "FailedToRetrieveImagePullSecret",
        _ => false,
    };
    let deeper = warnings::current(node, facts).find(is_deeper);
    let warning = deeper.or_else(|| warnings::current(node, facts).next());
    // For a pod that merely is not ready, a warning has the problem that its kubelet met.
    let is_vague = deeper.is_some() || matches!(health.reason.as_str(), "NotReady" | "Starting");
    let message = facts.pull_of(node).map_or(&health.message, |pulls| &pulls.message);
    let (mut reason, mut message) = (&health.reason, message.clone());
    if let Some(warning) = warning.filter(|_| is_vague || message.is_empty()) {
        message = if deeper.is_some() { message + "\n" } else { String::new() } + &warning.message;
        if !is_vague || reasons::describe_of(&node.identity, &warning.reason).is_some() {
            reason = &warning.reason;
        }
    }
    let reason = if reason.is_empty() { "NotReady" } else { reason };
    let mut cause = Cause::reported(&node.identity, reason, &message).since(health.since);
    if is_vague && deeper.is_none() {
        cause.message = warnings::after(&message, node, facts);
    }
    cause = at_container(cause, node, facts.now);
    if let Some(warning) = warning.filter(|_| cause.advice.is_empty() || cause.is_progress) {
        // What somebody warns of is no mere progress.
        if !message.contains(&warning.message) {
            cause.message = warnings::after(&health.message, node, facts);
        }
        (cause.advice, cause.is_progress) = (String::new(), false);
    }
    // That of a reason which nobody describes: progress has only to be waited for.
    let usual = match node.identity.kind.as_str() {
        _ if warning.is_none() && goes_on(node, facts) => "UnderWay",
        "Pod" => "UnknownPodReason",
        _ => "UnknownReason",
    };
    if let Some(row) = reasons::describe(usual).filter(|_| cause.advice.is_empty()) {
        (cause.advice, cause.is_progress) = (row.remedy.clone(), row.is_progress);
    }
    cause
}

/// Whether the exit code of a container is an error of its own, and not that of a kubelet that ended it (SIGKILL, SIGTERM).
fn is_own_failure(ended: &Value) -> bool {
    ended["exitCode"].as_i64().is_some_and(|code| !matches!(code, 0 | 137 | 143))
}

/// Whether an object makes progress, as far as is known.
fn goes_on(node: &Node, facts: &Facts) -> bool {
    let may_help = |child: &Node| match child.health.state {
        // Its pods may be ready, and not for long enough.
        State::Ready => node.identity.group() == "apps",
        State::Done | State::Failed => false,
        // A child of another group without a status, such as a Secret, is no sign of progress.
        State::Present => child.identity.group() == node.identity.group(),
        _ => true,
    };
    let is_alone = !node.children.iter().any(may_help);
    let is_reconciling = condition(&node.object, "Reconciling").is_some_and(|found| found.status == "True");
    let is_new = node.health.since.is_none_or(|since| facts.now.duration_since(since) <= UNKNOWN_GRACE);
    let reports_failure = conditions(&node.object).iter().any(|found| match found.status.as_str() {
        _ if !matches!(&*found.type_, "Ready" | "Available") => false,
        "Unknown" => !found.message.is_empty() && !is_reconciling && !is_new,
        status => status != "True",
    });
    node.health.state == State::Moving && !(reports_failure && is_alone)
}

/// The cause that a pod reports, with the container that keeps it from serving: its name where a pod has several, the memory limit
/// that it exceeds, and the init container that the others wait for.
fn at_container(mut cause: Cause, pod: &Node, now: Timestamp) -> Cause {
    let list = |pointer: &str| list(&pod.object, pointer);
    let spec_of = |container: &Value| {
        let mut specs = list("/spec/initContainers").chain(list("/spec/containers"));
        specs.find(|spec| spec["name"] == container["name"])
    };
    let first = |is_it: &dyn Fn(&Value) -> bool| containers(&pod.object).find(|container| is_it(container));
    let again = || first(&|container| fails_again(container, now));
    let Some(container) = first(&cannot_start).or_else(|| first(&has_failed)).or_else(again) else {
        let unready = list("/status/containerStatuses").find(|container| container["ready"] == false);
        if let Some(name) = unready.and_then(|container| container["name"].as_str())
            && list("/spec/containers").count() > 1
        {
            cause.advice = logs_of(name, &cause.advice);
        }
        let initializes = |container: &&Value| {
            let is_sidecar = spec_of(container).is_some_and(|spec| spec["restartPolicy"] == "Always");
            container["state"]["running"].is_object() && !(is_sidecar && container["started"] == true)
        };
        let running = list("/status/initContainerStatuses").find(initializes).filter(|_| cause.is_progress);
        let Some(name) = running.and_then(|container| container["name"].as_str()) else { return cause };
        return cause.in_case("init container", &[("{container}", name)]);
    };
    let runs = container["state"]["running"].is_object();
    if let Some(said) = last_run(container).filter(|_| runs) {
        let Cause { meaning, advice, .. } = Cause::reported(&pod.identity, "CrashLoopBackOff", &said);
        let message = format!("{said}\n{}", cause.message);
        cause = Cause { meaning, advice, message, is_progress: false, ..cause };
    }
    let name = container["name"].as_str().unwrap_or_default();
    let is_init = list("/status/initContainerStatuses").any(|init| init["name"] == container["name"]);
    let is_one_of_several = is_init || list("/spec/containers").count() > 1;
    if is_one_of_several {
        cause.advice = logs_of(name, &cause.advice);
    }
    // Unless it ends again and again, the end of its last run does not keep it from running.
    let ends_again = runs || container["state"]["waiting"]["reason"] == "CrashLoopBackOff";
    let state = if ends_again { "lastState" } else { "state" };
    let is_killed = container[state]["terminated"]["reason"] == "OOMKilled";
    if let Some(row) = reasons::describe("OOMKilled").filter(|_| is_killed) {
        let limit = spec_of(container).and_then(|spec| spec.pointer("/resources/limits/memory")?.as_str());
        let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
        let container = if is_one_of_several { format!(" (container {name})") } else { String::new() };
        cause.meaning = format!("{}{limit}{container}", row.meaning);
        cause.advice.clone_from(&row.remedy);
    }
    cause
}

/// An advice that reads the logs of one of several containers.
fn logs_of(container: &str, advice: &str) -> String {
    advice.replace(" logs {name}", &format!(" logs {{name}} --container {container}"))
}

fn cannot_start(container: &Value) -> bool {
    let waits_for = container["state"]["waiting"]["reason"].as_str().unwrap_or_default();
    !matches!(waits_for, "" | "ContainerCreating" | "PodInitializing")
}

fn has_failed(container: &Value) -> bool {
    container.pointer("/state/terminated/exitCode").is_some_and(|code| *code != 0)
}

/// Whether a container that runs, and is not ready, has failed by itself again and again, the last time not long ago.
fn fails_again(container: &Value, now: Timestamp) -> bool {
    let started = container.pointer("/state/running/startedAt").and_then(|at| at.as_str()?.parse().ok());
    let is_new = started.is_some_and(|started| now.duration_since(started) < RECOVERY);
    let ended = &container["lastState"]["terminated"];
    let is_unready = container["ready"] != true && container["restartCount"].as_i64() > Some(2);
    is_new && is_unready && (is_own_failure(ended) || ended["reason"] == "OOMKilled")
}

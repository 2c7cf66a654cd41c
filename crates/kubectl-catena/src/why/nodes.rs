//! A node that does not answer: nothing about its pods can change until it does.

use catena_api::keys;
use catena_cluster::condition;
use jiff::{SignedDuration, Timestamp};

use super::{Cause, Facts, edges};
use crate::{chain::Node, screen::age};

/// Time after the grace period of a pod in which its kubelet usually reports its end.
const END_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// The remedy for a node that is not ready.
const ADVICE: &str = "see the node and its machine: kubectl describe node {name}; once it is gone for good, delete the Node object, and its pods are replaced";

/// Why a node is not ready, if it is not.
pub fn trouble(node: &Node) -> Option<Cause> {
    let ready = condition(&node.object, "Ready").filter(|ready| ready.status != "True")?;
    let meaning = if ready.status == "Unknown" { "has stopped reporting" } else { "is not ready" };
    let meaning = format!("{meaning}, and its pods with it");
    let at = ready.last_transition_time.0;
    let reason = if ready.reason.is_empty() { "NodeNotReady" } else { &ready.reason };
    let cause = Cause::with(&node.identity, reason).meaning(meaning).advice(ADVICE);
    Some(cause.message(ready.message).since((at != Timestamp::default()).then_some(at)))
}

/// Pods that hang on nodes that do not answer, although others may serve in their place.
pub fn remarks(facts: &Facts) -> Vec<String> {
    let pods = facts.asked.all().filter(|node| node.identity.kind == "Pod" && node.deleted.is_some());
    let hanging = pods.filter(|pod| hangs(pod, facts.now) && pod.identity.uid != facts.asked.identity.uid);
    let named = hanging.filter_map(|pod| {
        let since = pod.deleted?;
        let on = edges::node_of(pod)?;
        let related = &facts.surroundings.related;
        let node = match related.find(&on).and_then(trouble) {
            Some(cause) => format!("{on} {}", cause.meaning),
            None if related.is_missing(&on) => format!("{on} no longer exists"),
            None => return None,
        };
        Some(format!("{} has been shutting down for {}: {node}", pod.identity, age(facts.now, since)))
    });
    named.collect()
}

/// Whether a pod has been shutting down for longer than its kubelet needs.
pub fn hangs(pod: &Node, now: Timestamp) -> bool {
    let grace = SignedDuration::from_secs(pod.object.metadata.deletion_grace_period_seconds.unwrap_or(0));
    pod.deleted.is_some_and(|since| now.duration_since(since) > grace.saturating_add(END_DELAY))
        && !pod.finalizers.iter().any(|finalizer| finalizer.name == keys::BACKUP_FINALIZER)
}

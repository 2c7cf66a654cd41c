//! A pod that fits on no node: what the scheduler says, and the names of nodes that are closed to it.

use std::cmp::Reverse;

use serde_json::Value;

use super::{Cause, reasons};
use crate::chain::Node;

/// More would hide the rest of the sentence.
const MAX_NAMES: usize = 3;
/// The obstacle of nodes that the pod is not meant for.
const SELECTOR: &str = "selector";
/// Words of the scheduler, with the remedy. If other nodes have another obstacle, it is right that some do not match.
const REMEDIES: [(&str, &str); 9] = [
    ("unschedulable", "let pods on the node again: kubectl uncordon {cordoned}"),
    // It may be a control-plane node, whose taint has to stay.
    (
        "taint",
        "tolerate the taint in the pod template if the pods belong on such a node, see why it has the taint (kubectl describe node {tainted}), or add a node",
    ),
    ("Insufficient", "request less, or add a node"),
    ("Too many pods", "add a node, or run fewer pods"),
    ("affinity rules", "relax the affinity in the pod template, or add a node"),
    ("topology spread", "relax topologySpreadConstraints in the pod template, or add a node"),
    ("free ports", "remove the host port from the pod template, or add a node"),
    ("volume ", "see the nodes that the volume can be used on: kubectl describe persistentvolume"),
    (SELECTOR, "correct the node selector in the pod template, or label a node"),
];

/// Why a pod fits on no node, as far as these are the nodes of the cluster.
pub fn cause(pod: &Node, nodes: &[Node]) -> Cause {
    let obstacles = obstacles(&pod.health.message);
    let remedies = remedies(obstacles);
    // The scheduler counts nodes, and names neither them nor, today, their taints.
    let (mut cordoned, mut tainted, mut closed) = (Vec::new(), Vec::new(), Vec::new());
    if remedies.iter().any(|remedy| remedy.contains('{')) {
        for node in nodes.iter().filter(|node| selects(pod, node)) {
            let name = node.identity.name.as_str();
            if is_cordoned(node) {
                cordoned.push(name);
                closed.push(format!("{name} is cordoned"));
            } else if let Some(taint) = untolerated(pod, node) {
                tainted.push(name);
                closed.push(format!("{name} has the taint {taint}"));
            }
        }
    }
    let reason = &pod.health.reason;
    let cause = Cause::described(&pod.identity, reason, reasons::describe("Unschedulable"));
    let mut meaning = cause.meaning.clone();
    if !obstacles.is_empty() {
        meaning = format!("{meaning}: {obstacles}");
    }
    if !closed.is_empty() {
        let more = if closed.len() > MAX_NAMES { ", …" } else { "" };
        closed.truncate(MAX_NAMES);
        meaning = format!("{meaning}; {}{more}", closed.join(", "));
    }
    let cause = cause.meaning(meaning).message(&pod.health.message).since(pod.health.since);
    if remedies.is_empty() {
        return cause;
    }
    let two = remedies.into_iter().take(2).collect::<Vec<_>>().join("; ");
    cause.advice(two.replace("{cordoned}", &names(&cordoned)).replace("{tainted}", &names(&tainted)))
}

/// The remedies, that of the obstacle on the most nodes first, and that of the selector last.
fn remedies(obstacles: &str) -> Vec<&'static str> {
    let nodes_with = |words: &str| {
        let found = obstacles.split(", ").filter(|obstacle| obstacle.contains(words));
        found.map(count).max()
    };
    let mut found: Vec<(bool, Reverse<u64>, &str)> = REMEDIES
        .iter()
        .filter_map(|(words, remedy)| Some((*words == SELECTOR, Reverse(nodes_with(words)?), *remedy)))
        .collect();
    found.sort_by_key(|(is_selector, nodes, _)| (*is_selector, *nodes));
    found.into_iter().map(|(_, _, remedy)| remedy).collect()
}

/// The number of nodes that stands before an obstacle.
fn count(obstacle: &str) -> u64 {
    obstacle.split_once(' ').and_then(|(count, _)| count.parse().ok()).unwrap_or_default()
}

/// The obstacles in a message such as `0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.
/// preemption: …`, in its own words.
fn obstacles(message: &str) -> &str {
    let said = message.split(" preemption:").next().unwrap_or_default();
    let said = said.split_once("nodes are available: ").map_or(said, |(_, list)| list);
    said.trim_end_matches(['.', ' '])
}

fn names(of: &[&str]) -> String {
    if of.is_empty() { "NODE".to_owned() } else { of[..of.len().min(MAX_NAMES)].join(" ") }
}

/// Whether a node has the labels of the node selector of a pod.
fn selects(pod: &Node, node: &Node) -> bool {
    let wanted = pod.object.data.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let labels = node.object.metadata.labels.as_ref();
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.and_then(|labels| labels.get(key)).map(String::as_str) == value.as_str())
}

/// Whether a node takes no new pods.
fn is_cordoned(node: &Node) -> bool {
    node.object.data.pointer("/spec/unschedulable").is_some_and(|is| *is == true)
}

/// The key of the first taint of a node that keeps a pod away.
fn untolerated(pod: &Node, node: &Node) -> Option<String> {
    let keeps_away = |taint: &&Value| taint["effect"] != "PreferNoSchedule";
    let is_tolerated =
        |taint: &&Value| list(pod, "/spec/tolerations").any(|toleration| tolerates(toleration, taint));
    let taint = list(node, "/spec/taints").filter(keeps_away).find(|taint| !is_tolerated(taint))?;
    Some(taint["key"].as_str().unwrap_or_default().to_owned())
}

/// A toleration without a key, an effect or an operator has a wider or usual meaning.
fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let is_any = |field: &str| toleration[field].as_str().unwrap_or_default().is_empty();
    let agrees = |field: &str| is_any(field) || toleration[field] == taint[field];
    let exists = toleration["operator"] == "Exists";
    let value = |of: &Value| of["value"].as_str().unwrap_or_default().to_owned();
    agrees("key") && agrees("effect") && (exists || value(toleration) == value(taint))
}

fn list<'n>(node: &'n Node, pointer: &str) -> impl Iterator<Item = &'n Value> {
    node.object.data.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_obstacles_are_quoted_from_the_message_of_the_scheduler() {
        for (message, expected) in [
            (
                "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu. preemption: 0/4 nodes are \
                 available: 1 Preemption is not helpful for scheduling, 3 No preemption victims found.",
                "1 node(s) were unschedulable, 3 Insufficient cpu",
            ),
            (
                "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
                "pod has unbound immediate PersistentVolumeClaims",
            ),
            ("no nodes available to schedule pods", "no nodes available to schedule pods"),
            ("", ""),
        ] {
            assert_eq!(obstacles(message), expected, "{message}");
        }
    }
}

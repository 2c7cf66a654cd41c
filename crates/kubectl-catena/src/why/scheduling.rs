//! The obstacles that keep a pod from every node, from the message of the scheduler and the nodes.

use std::cmp::Reverse;

use jiff::SignedDuration;

use super::{
    advice::describe,
    answer::{Cause, Finding, Lead},
    facts::{Facts, Preemption},
    placement,
    related::{Related, claims_of, needs_nodes},
    volumes,
};
use crate::{age::age, chain::Node};

/// Taints that the control plane sets on nodes that do not answer.
const DEAD: [&str; 2] = ["node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"];
/// Taints of the nodes of a control plane.
const CONTROL_PLANE: [&str; 2] = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];
/// The beginnings of taints that a control plane sets again until their cause is gone.
const BY_CONTROL_PLANE: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];
/// The taint of a cordoned node.
const CORDONED: &str = "node.kubernetes.io/unschedulable";
/// The successor of a preempted pod is created while that pod shuts down, or once it is gone.
const SUCCESSION_TIME: SignedDuration = SignedDuration::from_mins(2);
/// More would hide the rest of the sentence.
const MAX_NAMES: usize = 3;

/// An obstacle, for a number of nodes.
#[derive(Debug, PartialEq, Eq)]
struct Obstacle {
    nodes: usize,
    kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Cordon,
    Taint(String),
    TooLittle(String),
    Selector,
    Affinity,
    Spread,
    Port,
    Volume,
    Pods,
    Other(String),
    /// Of nodes that were not read.
    Unread,
}

/// A pod that fits on no node.
pub fn check<'n>(pod: &'n Node, facts: &Facts<'n>) -> Option<Lead<'n>> {
    if !needs_nodes(pod) {
        return None;
    }
    let here = cause(pod, facts);
    if !mentions_claims(&pod.health.message) {
        return Some(Lead::Found(Finding::at(pod, here)));
    }
    let related = &facts.surroundings.related;
    let claims = claims_of(pod);
    if let Some(missing) = claims.iter().find(|claim| related.is_missing(claim)) {
        return Some(Lead::Found(Finding::at(pod, volumes::missing(missing, pod))));
    }
    let next = claims.iter().filter_map(|claim| related.find(claim)).collect();
    Some(Lead::Follow { next, otherwise: Some(here) })
}

fn mentions_claims(message: &str) -> bool {
    let message = message.to_lowercase();
    message.contains("persistentvolumeclaim") || message.contains("persistent volumes")
}

fn cause(pod: &Node, facts: &Facts) -> Cause {
    let obstacles = obstacles(pod, &facts.surroundings.related);
    let (mut meaning, usual) = describe("Unschedulable");
    let said: Vec<String> = obstacles.iter().map(Obstacle::told).collect();
    let whole;
    if !said.is_empty() {
        whole = format!("{meaning}: {}", said.join(", "));
        meaning = &whole;
    }
    let advice = obstacles.iter().filter_map(|obstacle| obstacle.advice(facts)).collect::<Vec<_>>();
    // The first obstacle has the fewest ways around it.
    let advice: Vec<String> = advice.into_iter().take(2).collect();
    let advice = if advice.is_empty() { usual.to_owned() } else { advice.join("; ") };
    Cause {
        object: pod.identity.clone(),
        reason: pod.health.reason.clone(),
        meaning: meaning.to_owned(),
        message: pod.health.message.clone(),
        since: pod.health.since,
        advice,
    }
}

/// The obstacles, those of the most nodes first.
///
/// The scheduler counts cordons and taints before it looks at the selector of a pod, and leaves out the names of taints. As
/// far as the nodes are known, they are counted only for nodes that the pod selects.
fn obstacles(pod: &Node, related: &Related) -> Vec<Obstacle> {
    let mut found = listed(&pod.health.message);
    let is_of_nodes = |obstacle: &Obstacle| matches!(obstacle.kind, Kind::Cordon | Kind::Taint(_));
    if !related.nodes.is_empty() && found.iter().any(is_of_nodes) {
        let counted = found.iter().filter(|obstacle| is_of_nodes(obstacle)).map(|obstacle| obstacle.nodes);
        let mut left: usize = counted.sum();
        found.retain(|obstacle| !is_of_nodes(obstacle));
        let closed = related.nodes.iter().filter_map(|node| Some((node, closed(pod, node)?)));
        // More may have been closed since the scheduler counted.
        for (node, kind) in closed.take(left) {
            left -= 1;
            let kind = if placement::selects(pod, node) { kind } else { Kind::Selector };
            count(&mut found, kind, 1);
        }
        // If all were read, those that are left have been opened since.
        let rest = if related.has_unread_nodes { Kind::Unread } else { Kind::Taint(String::new()) };
        count(&mut found, rest, left);
    }
    sorted(found)
}

/// If other nodes have another obstacle, it is right that these do not match.
fn sorted(mut found: Vec<Obstacle>) -> Vec<Obstacle> {
    let rank = |kind: &Kind| match kind {
        Kind::Unread => 2,
        Kind::Selector => 1,
        _ => 0,
    };
    found.sort_by_key(|obstacle| (rank(&obstacle.kind), Reverse(obstacle.nodes)));
    found
}

/// Why a node takes no new pods like this one.
fn closed(pod: &Node, node: &Node) -> Option<Kind> {
    if placement::is_cordoned(node) {
        return Some(Kind::Cordon);
    }
    placement::untolerated(pod, node).map(Kind::Taint)
}

fn count(found: &mut Vec<Obstacle>, kind: Kind, nodes: usize) {
    match found.iter_mut().find(|obstacle| obstacle.kind == kind) {
        _ if nodes == 0 => {}
        Some(obstacle) => obstacle.nodes += nodes,
        None => found.push(Obstacle { nodes, kind }),
    }
}

/// The obstacles in a message such as `0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.
/// preemption: …`.
fn listed(message: &str) -> Vec<Obstacle> {
    let message = message.split(" preemption:").next().unwrap_or_default();
    let Some((_, list)) = message.split_once("nodes are available: ") else { return Vec::new() };
    let items = list.trim_end_matches(['.', ' ']).split(", ");
    items.filter_map(obstacle).collect()
}

fn obstacle(item: &str) -> Option<Obstacle> {
    let (count, said) = item.trim().split_once(' ')?;
    let nodes = count.parse().ok()?;
    let said = said.trim_start_matches("node(s) ").trim_end_matches('.');
    let taint = || {
        let (_, key) = said.split_once('{')?;
        Some(key.split([':', '}', '=']).next()?.trim().to_owned())
    };
    let has = |word: &str| said.contains(word);
    let kind = if has("taint") {
        match taint() {
            Some(key) if key == CORDONED => Kind::Cordon,
            key => Kind::Taint(key.unwrap_or_default()),
        }
    } else if has("were unschedulable") {
        Kind::Cordon
    } else if let Some(resource) = said.strip_prefix("Insufficient ") {
        Kind::TooLittle(resource.to_owned())
    } else if has("Too many pods") {
        Kind::Pods
    } else if has("anti-affinity") || has("pod affinity") {
        Kind::Affinity
    } else if has("node affinity/selector") || has("node selector") {
        Kind::Selector
    } else if has("topology spread") {
        Kind::Spread
    } else if has("free ports") {
        Kind::Port
    } else if has("volume") {
        Kind::Volume
    } else {
        Kind::Other(said.to_owned())
    };
    Some(Obstacle { nodes, kind })
}

impl Obstacle {
    fn told(&self) -> String {
        let count = self.nodes;
        let (is, has, does, satisfies) =
            if count == 1 { ("is", "has", "does", "satisfies") } else { ("are", "have", "do", "satisfy") };
        match &self.kind {
            Kind::Cordon => format!("{count} {is} cordoned"),
            Kind::Taint(key) if DEAD.contains(&key.as_str()) => format!("{count} {does} not answer ({key})"),
            Kind::Taint(key) if key.is_empty() => format!("{count} {has} a taint that it does not tolerate"),
            Kind::Taint(key) => format!("{count} {has} the taint {key}"),
            Kind::TooLittle(resource) => format!("{count} {has} too little {resource}"),
            Kind::Selector => format!("{count} {does} not match its node selector"),
            Kind::Affinity => format!("{count} {does} not match its pod affinity"),
            Kind::Spread => format!("{count} {does} not match its topology spread"),
            Kind::Port => format!("{count} {has} its host port in use"),
            Kind::Volume => format!("{count} cannot have its volume"),
            Kind::Pods => format!("{count} {has} the maximum number of pods"),
            Kind::Other(said) => format!("{count} {satisfies} not: {said}"),
            Kind::Unread if count == 1 => "1 was not looked at".to_owned(),
            Kind::Unread => format!("{count} were not looked at"),
        }
    }

    fn advice(&self, facts: &Facts) -> Option<String> {
        let nodes = &facts.surroundings.related.nodes;
        Some(match &self.kind {
            Kind::Cordon => {
                let names = names(nodes, placement::is_cordoned, "NODE");
                format!("let pods on the node again: kubectl uncordon {names}")
            }
            Kind::Taint(key) if DEAD.contains(&key.as_str()) => {
                let names = names(nodes, |node| placement::has_taint(node, key), "NODE");
                format!("find out why the node does not answer: kubectl describe node {names}")
            }
            // It may be a control-plane node, whose taint has to stay.
            Kind::Taint(key) if key.is_empty() => {
                "tolerate the taint in the pod template, or add a node: kubectl describe nodes lists the taints".to_owned()
            }
            Kind::Taint(key) if CONTROL_PLANE.contains(&key.as_str()) => format!(
                "add a node for other pods, or, only if these pods belong on control-plane nodes, tolerate {key} in the pod template"
            ),
            Kind::Taint(key) if BY_CONTROL_PLANE.iter().any(|prefix| key.starts_with(prefix)) => {
                let names = names(nodes, |node| placement::has_taint(node, key), "NODE");
                format!("see in the conditions of the node why it has the taint: kubectl describe node {names}")
            }
            Kind::Taint(key) => {
                let names = names(nodes, |node| placement::has_taint(node, key), "NODE");
                format!(
                    "tolerate the taint in the pod template, or remove it: kubectl taint nodes {names} {key}-"
                )
            }
            Kind::TooLittle(resource) => format!("request less {resource}, or add a node"),
            Kind::Selector => "correct the node selector in the pod template, or label a node".to_owned(),
            Kind::Affinity => "relax the affinity in the pod template, or add a node".to_owned(),
            Kind::Spread => "relax topologySpreadConstraints in the pod template, or add a node".to_owned(),
            Kind::Port => "remove the host port from the pod template, or add a node".to_owned(),
            Kind::Volume => {
                "see the nodes that the volume can be used on: kubectl describe persistentvolume".to_owned()
            }
            Kind::Pods => "add a node, or run fewer pods".to_owned(),
            Kind::Other(_) | Kind::Unread => return None,
        })
    }
}

fn names(nodes: &[Node], is: impl Fn(&Node) -> bool, otherwise: &str) -> String {
    let names: Vec<&str> = nodes
        .iter()
        .filter(|node| is(node))
        .map(|node| node.identity.name.as_str())
        .take(MAX_NAMES)
        .collect();
    if names.is_empty() { otherwise.to_owned() } else { names.join(" ") }
}

/// The newest preemption, if a pod finds no place: the pod that it replaces may have had to make room. After an older one,
/// every pod has had a place.
pub fn remark(facts: &Facts, cause: Option<&Cause>) -> Option<String> {
    let cause = cause.filter(|cause| cause.reason == "Unschedulable")?;
    let Preemption { pod, by, at } = facts.surroundings.preemptions.last()?;
    let lead = cause.since.zip(*at).map(|(since, at)| since.duration_since(at));
    if lead.is_some_and(|lead| lead > SUCCESSION_TIME) {
        return None;
    }
    let ago = at.map_or_else(String::new, |at| format!(" {} ago", age(facts.now, at)));
    let by = if by.is_empty() {
        "a pod of a higher priority".to_owned()
    } else {
        format!("Pod {by} of a higher priority")
    };
    Some(format!(
        "Pod/{pod} had to make room for {by}{ago}: give its pods a higher priorityClassName, or add a node"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_obstacles_are_read_from_the_message_of_the_scheduler() {
        let told =
            |message: &str| sorted(listed(message)).iter().map(Obstacle::told).collect::<Vec<_>>().join(", ");
        for (message, expected) in [
            (
                "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu. preemption: 0/4 nodes are \
                 available: 1 Preemption is not helpful for scheduling, 3 No preemption victims found.",
                "3 have too little cpu, 1 is cordoned",
            ),
            (
                "0/2 nodes are available: 2 node(s) had untolerated taint(s) {node.kubernetes.io/unreachable: }.",
                "2 do not answer (node.kubernetes.io/unreachable)",
            ),
            (
                "0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: db}.",
                "1 has the taint dedicated",
            ),
            (
                "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
                "3 do not match its node selector",
            ),
            (
                "0/5 nodes are available: 1 node(s) were unschedulable, 4 node(s) didn't match Pod's node affinity/selector.",
                "1 is cordoned, 4 do not match its node selector",
            ),
            ("0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.", ""),
            ("no nodes available to schedule pods", ""),
        ] {
            assert_eq!(told(message), expected, "{message}");
        }
    }
}

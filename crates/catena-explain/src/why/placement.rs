//! A place for a pod: a node that takes it, one that answers, and a volume for each of its claims.

use std::cmp::Reverse;

use catena_api::keys;
use catena_cluster::{Health, Identity, State, condition, list, text};
use catena_terminal::{age, first_of};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt},
};
use serde_json::{Value, json};

use super::{Cause, Facts, Related, edges, reasons, text::MAX_NAMED, warnings};
use crate::Node;

/// The obstacle of nodes that the pod is not meant for: if others have another one, it is right that some do not match.
const SELECTOR: &str = "selector";
/// The required node affinity of a pod, of which a node has to meet one term.
const TERMS: &str =
    "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
/// The end of several remedies.
const ADD_NODE: &str = ", or add a node";
/// The beginnings of the taints that Kubernetes sets on nodes with a trouble, and removes with it.
const SICK: [&str; 2] = ["node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"];

/// Why a pod fits on no node.
pub fn unschedulable(pod: &Node, facts: &Facts) -> Cause {
    let related = &facts.surroundings.related;
    let nodes = &related.nodes;
    let obstacles = obstacles(&pod.health.message);
    let remedies = remedies(obstacles);
    // The scheduler counts nodes, and names neither them nor, today, their taints.
    let (mut cordoned, mut tainted, mut sick, mut closed) = (vec![], vec![], vec![], vec![]);
    if remedies.iter().any(|remedy| remedy.contains('{')) {
        for node in nodes.iter().filter(|node| selects(pod, node)) {
            let name = node.identity.name.as_str();
            // It may be cordoned for its trouble.
            if let Some(trouble) = node_trouble(node) {
                sick.push(name);
                closed.push(format!("{name} is not ready ({})", trouble.reason));
            } else if node.object.data["spec"]["unschedulable"] == true {
                cordoned.push(name);
                closed.push(format!("{name} is cordoned"));
            } else if let Some(taint) = untolerated(pod, node) {
                let is_sick = SICK.iter().any(|of| taint.starts_with(of));
                if is_sick { &mut sick } else { &mut tainted }.push(name);
                closed.push(format!("{name} has the taint {taint}"));
            }
        }
    }
    if nodes.is_empty() {
        cordoned.push("NODE");
        let is_sick = SICK.iter().any(|of| obstacles.contains(of));
        if is_sick { &mut sick } else { &mut tainted }.push("NODE");
    }
    let cause = Cause::with(&pod.identity, &pod.health.reason);
    let said = if obstacles.is_empty() { String::new() } else { format!(": {obstacles}") };
    let closed =
        if closed.is_empty() { String::new() } else { format!("; {}", first_of(&closed, MAX_NAMED)) };
    let meaning = format!("{}{said}{closed}", cause.meaning);
    let cause = cause.meaning(meaning).message(&pod.health.message).since(pod.health.since);
    let claims = edges::claims_of(pod);
    let claims = claims.iter().filter_map(|claim| text(&related.find(claim)?.object, "/spec/volumeName"));
    let mut volumes: Vec<_> = claims.collect();
    volumes.extend(volumes.is_empty().then_some("VOLUME"));
    // A node that the pod does not ask for can stay closed.
    let closed = [("{cordoned}", cordoned), ("{tainted}", tainted), ("{sick}", sick), ("{volumes}", volumes)];
    let is_in_vain = |remedy: &str| closed.iter().any(|(place, of)| of.is_empty() && remedy.contains(place));
    let helpful = remedies.into_iter().filter(|remedy| !is_in_vain(remedy));
    let first = helpful.take(MAX_NAMED).collect::<Vec<_>>().join("; ");
    let first = first.replacen(ADD_NODE, "", first.matches(ADD_NODE).count().saturating_sub(1));
    let names = |of: &[&str]| of[..of.len().min(MAX_NAMED)].join(" ");
    let advice = closed.iter().fold(first, |first, (place, of)| first.replace(place, &names(of)));
    if advice.is_empty() { cause } else { cause.advice(advice) }
}

/// The remedies, that of the obstacle on the most nodes first, and that of the selector last.
fn remedies(obstacles: &str) -> Vec<&'static str> {
    let count = |obstacle: &str| obstacle.split(' ').next().and_then(|count| count.parse::<u64>().ok());
    let mut found: Vec<_> = reasons::part("scheduling")
        .iter()
        .filter_map(|row| {
            let has_words = |obstacle: &&str| row.says.iter().any(|words| obstacle.contains(words.as_str()));
            let of_it = obstacles.split(", ").filter(has_words);
            let nodes = of_it.map(|obstacle| count(obstacle).unwrap_or_default()).max()?;
            Some((row.says.first()? == SELECTOR, Reverse(nodes), row.remedy.as_str()))
        })
        .collect();
    found.sort_by_key(|(is_selector, nodes, _)| (*is_selector, *nodes));
    found.into_iter().map(|(_, _, remedy)| remedy).collect()
}

/// The obstacles in a message such as `0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient cpu.
/// preemption: …`, in its own words.
fn obstacles(message: &str) -> &str {
    let said = message.split(". ").next().unwrap_or_default();
    let said = said.split_once("nodes are available: ").map_or(said, |(_, list)| list);
    said.trim_end_matches(['.', ' '])
}

/// Whether a node has what the node selector and the required node affinity of a pod ask for.
fn selects(pod: &Node, node: &Node) -> bool {
    let mut has = node.object.labels().clone();
    has.insert("metadata.name".to_owned(), node.identity.name.clone());
    let meets = |asked: Value| {
        let asked = serde_json::from_value::<LabelSelector>(asked).ok();
        // `Gt` and `Lt`, which selectors of labels do not know, are taken to be met.
        asked.and_then(|asked| Selector::try_from(asked).ok()).is_none_or(|asked| asked.matches(&has))
    };
    let meets_term = |term: &Value| {
        ["matchExpressions", "matchFields"].iter().all(|part| meets(json!({"matchExpressions": term[part]})))
    };
    let mut terms = list(&pod.object, TERMS).peekable();
    meets(json!({"matchLabels": pod.object.data["spec"]["nodeSelector"]}))
        && (terms.peek().is_none() || terms.any(meets_term))
}

/// The key of the first taint of a node that keeps a pod away.
fn untolerated(pod: &Node, node: &Node) -> Option<String> {
    let is_tolerated = |taint: &Value| list(&pod.object, "/spec/tolerations").any(|by| tolerates(by, taint));
    let keeps_away = |taint: &&Value| taint["effect"] != "PreferNoSchedule" && !is_tolerated(taint);
    let taint = list(&node.object, "/spec/taints").find(keeps_away)?;
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

/// Time after the grace period of a pod in which its kubelet usually reports its end.
const END_DELAY: SignedDuration = SignedDuration::from_secs(30);

/// Why a node is not ready, if it is not.
pub fn node_trouble(node: &Node) -> Option<Cause> {
    let ready = condition(&node.object, "Ready").filter(|ready| ready.status != "True")?;
    let variant = if ready.status == "Unknown" { "silent node" } else { "unready node" };
    let Health { reason, message, since, .. } = Health::said(State::Stuck, &ready);
    let reason = if reason.is_empty() { "NodeNotReady" } else { &reason };
    Some(Cause::with(&node.identity, reason).in_case(variant, &[]).message(message).since(since))
}

/// Pods on nodes that do not answer: those that hang, although others may serve in their place, and those that are still called
/// ready.
pub fn remarks(facts: &Facts) -> Vec<String> {
    let named = facts.asked.all().filter(|node| node.identity.kind == "Pod").filter_map(|pod| {
        let state = match pod.deleted {
            None if pod.health.state == State::Ready => "counts as ready".to_owned(),
            Some(since) if hangs(pod, facts.now) && pod.identity.uid != facts.asked.identity.uid => {
                format!("has been shutting down for {}", age(facts.now, since))
            }
            _ => return None,
        };
        let on = edges::node_of(pod)?;
        let related = &facts.surroundings.related;
        let trouble = match related.find(&on).and_then(node_trouble) {
            Some(cause) => format!("is not ready ({})", cause.reason),
            None if related.is_missing(&on) => "no longer exists".to_owned(),
            None => return None,
        };
        Some(format!("{} {state} on {on}, which {trouble}", pod.identity))
    });
    named.take(MAX_NAMED).collect()
}

/// Whether a pod has been shutting down for longer than its kubelet needs.
pub fn hangs(pod: &Node, now: Timestamp) -> bool {
    let grace = SignedDuration::from_secs(pod.object.metadata.deletion_grace_period_seconds.unwrap_or(0));
    pod.deleted.is_some_and(|since| now.duration_since(since) > grace.saturating_add(END_DELAY))
        && !pod.finalizers.iter().any(|finalizer| finalizer.name == keys::BACKUP_FINALIZER)
}

/// The annotation of the scheduler on a claim whose pod has a node.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The provisioner of a class whose volumes are made by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// The reason of a claim that waits for a pod, and not the pod for it.
pub const WAITS_FOR_POD: &str = "WaitsForPod";

/// Whether the scheduler waits for the volume of a claim.
pub fn has_node(claim: &Node) -> bool {
    claim.object.annotations().contains_key(SELECTED_NODE)
}

/// Whether an object is a claim that waits for a volume.
pub fn is_unbound(claim: &Node) -> bool {
    claim.identity.kind == "PersistentVolumeClaim" && claim.health.state == State::Moving
}

/// Whether it waits for one that nobody makes for it.
pub fn waits_for_somebody(claim: &Node, related: &Related) -> bool {
    let is_by_hand = |class: Identity| {
        let class = related.find(&class);
        class.is_some_and(|class| text(&class.object, "/provisioner") == Some(NO_PROVISIONER))
    };
    is_unbound(claim) && edges::class_of(claim).is_none_or(is_by_hand)
}

/// Why a claim has no volume. Its class exists, if it could be looked for.
pub fn unbound_claim(claim: &Node, facts: &Facts) -> Cause {
    let message = warnings::message(claim, facts);
    let cause = |reason: &str, variant: &str, names: &[(&str, &str)]| {
        Cause::with(&claim.identity, reason).in_case(variant, names).message(&*message).since(claim.created)
    };
    if claim.health.reason == "Lost" {
        let volume = text(&claim.object, "/spec/volumeName").unwrap_or_default();
        // Nothing records the time of the loss.
        return cause("VolumeLost", "lost volume", &[("{volume}", volume)]).since(None);
    }
    if let Some(volume) = edges::volume_of(claim) {
        return cause("WaitsForVolume", "named volume", &[("{volume}", &volume.name)]);
    }
    // Another one may be wiped at this moment, or have the data of somebody else.
    let is_released = |volume: &&Node| {
        let of = |pointer: &str| text(&volume.object, pointer);
        of("/status/phase") == Some("Released")
            && of("/spec/persistentVolumeReclaimPolicy") == Some("Retain")
            && of("/spec/claimRef/namespace") == claim.identity.namespace.as_deref()
            && of("/spec/claimRef/name") == Some(&claim.identity.name)
            && edges::class_of(volume) == edges::class_of(claim)
    };
    let related = &facts.surroundings.related;
    let kept = related.volumes.iter().find(is_released).filter(|_| waits_for_somebody(claim, related));
    if let Some(kept) = kept {
        return cause("NoVolumeFits", "released volume", &[("{volume}", &kept.identity.name)]);
    }
    let Some(named) = edges::class_of(claim) else { return cause("ClaimWithoutClass", "no class", &[]) };
    let class = related.find(&named);
    let of_class = |pointer: &str| class.and_then(|class| text(&class.object, pointer)).unwrap_or_default();
    let named = named.to_string();
    match of_class("/provisioner") {
        NO_PROVISIONER => cause("NoVolumeFits", "volumes by hand", &[("{class}", &named)]),
        _ if of_class("/volumeBindingMode") == "WaitForFirstConsumer" && !has_node(claim) => {
            cause(WAITS_FOR_POD, "unused claim", &[])
        }
        provisioner => {
            let by = if provisioner.is_empty() { String::new() } else { format!(" by {provisioner}") };
            cause("NotProvisioned", "no volume made", &[("{class}", &named), ("{by}", &by)])
        }
    }
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
                "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available.",
                "1 Insufficient cpu",
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

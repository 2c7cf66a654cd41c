//! Readiness is a claim, which is compared with the numbers of the same object and with its pods.

use catena_api::keys;

use crate::{
    chain::{Node, State, replicas},
    cluster::Identity,
};

/// Why an object is not ready although it reports so.
pub fn contradiction(node: &Node, are_pods_read: bool) -> Option<String> {
    if node.health.state != State::Ready {
        return None;
    }
    let (serving, wanted) = replicas(&node.object)?;
    if let Some(serving) = serving.filter(|serving| *serving < wanted) {
        return Some(format!("reports that it is ready, and also that {serving} of {wanted} replicas serve"));
    }
    // An operator may count something else than pods.
    let is_below = |child: &Node| contradiction(child, are_pods_read).is_some();
    let counts_pods = owns_pods(&node.identity)
        || pods(node).any(|pod| is_open(pod.health.state))
        || node.children.iter().any(is_below);
    let ready = ready_pods(node);
    (are_pods_read && counts_pods && ready < wanted)
        .then(|| format!("reports that {wanted} replicas serve, but {ready} of its pods are ready"))
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
    node.all().filter(|below| is_pod(&below.identity))
}

fn is_pod(identity: &Identity) -> bool {
    identity.kind == "Pod" && identity.group().is_empty()
}

/// Whether each replica of a kind is a pod.
fn owns_pods(identity: &Identity) -> bool {
    matches!(
        (identity.group(), identity.kind.as_str()),
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | (keys::GROUP, "BasicReplicaSet")
    )
}

fn is_open(state: State) -> bool {
    matches!(state, State::Moving | State::Unreported | State::Stuck)
}

//! The obstacle between a claim and its volume.

use super::{
    answer::{Cause, Finding},
    facts::Facts,
    related::class_of,
    warnings,
};
use crate::{
    chain::Node,
    object::{Identity, text},
};

/// The annotation of the scheduler on a claim whose pod has a node.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// A claim that has no volume, and the reason.
pub fn check<'n>(claim: &'n Node, facts: &Facts<'n>) -> Option<Finding<'n>> {
    let is_claim = claim.identity.kind == "PersistentVolumeClaim" && claim.identity.group().is_empty();
    if !is_claim || claim.health.state.is_healthy() {
        return None;
    }
    let related = &facts.surroundings.related;
    let class = class_of(claim);
    let message =
        warnings::current(claim, facts).next().map(|warning| warning.message.clone()).unwrap_or_default();
    let cause = |reason: &str, meaning: &str| {
        Cause::with(&claim.identity, reason).meaning(meaning).message(&*message).since(claim.created)
    };
    if claim.health.reason == "Lost" {
        let volume = text(&claim.object, "/spec/volumeName").unwrap_or_default();
        let meaning = format!("has lost its volume: PersistentVolume/{volume} no longer exists");
        // Nothing records the time of the loss.
        return Some(Finding::at(claim, cause("VolumeLost", &meaning).since(None)));
    }
    let Some(class) = class else {
        let meaning = "is not bound, and has no storage class that would make a volume for it";
        return Some(Finding::at(claim, cause("ClaimWithoutClass", meaning)));
    };
    if related.is_missing(&class) {
        let missing = Cause { object: class, ..cause("ClassMissing", "does not exist") };
        return Some(Finding::at(claim, missing));
    }
    let mode = related.find(&class).and_then(|class| text(&class.object, "/volumeBindingMode"));
    let has_node = claim.object.metadata.annotations.iter().flatten().any(|(key, _)| key == SELECTED_NODE);
    let provisioner =
        related.find(&class).and_then(|class| text(&class.object, "/provisioner")).unwrap_or_default();
    let found = if provisioner == "kubernetes.io/no-provisioner" {
        cause(
            "NoVolumeFits",
            &format!("is not bound: volumes of its {class} are made by hand, and none fits"),
        )
    } else if mode == Some("WaitForFirstConsumer") && !has_node {
        cause("WaitsForPod", "is not bound: it waits for the first pod that uses it")
    } else {
        let by = if provisioner.is_empty() { String::new() } else { format!(" by {provisioner}") };
        cause("NotProvisioned", &format!("is not bound: no volume of its {class} has been made for it{by}"))
    };
    let path = std::iter::once(claim).chain(related.find(&class)).collect();
    Some(Finding { cause: found, path })
}

/// A claim that a pod names, and that does not exist.
pub fn missing(claim: &Identity, pod: &Node) -> Cause {
    Cause::with(claim, "ClaimMissing").message(&pod.health.message).since(pod.health.since)
}

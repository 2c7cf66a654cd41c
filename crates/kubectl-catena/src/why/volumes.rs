//! The obstacle between a claim and its volume.

use catena_cluster::text;

use super::{Cause, Facts, edges, warnings};
use crate::chain::Node;

/// The annotation of the scheduler on a claim whose pod has a node.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// Why a claim has no volume. Its class exists, if it could be looked for.
pub fn cause(claim: &Node, facts: &Facts) -> Cause {
    let message = warnings::message(claim, facts);
    let cause = |reason: &str, meaning: &str| {
        Cause::with(&claim.identity, reason).meaning(meaning).message(&*message).since(claim.created)
    };
    if claim.health.reason == "Lost" {
        let volume = text(&claim.object, "/spec/volumeName").unwrap_or_default();
        let meaning = format!("has lost its volume: PersistentVolume/{volume} no longer exists");
        // Nothing records the time of the loss.
        return cause("VolumeLost", &meaning).since(None);
    }
    let Some(named) = edges::class_of(claim) else {
        let meaning = "is not bound, and has no storage class that would make a volume for it";
        return cause("ClaimWithoutClass", meaning);
    };
    let class = facts.surroundings.related.find(&named);
    let of_class = |pointer: &str| class.and_then(|class| text(&class.object, pointer)).unwrap_or_default();
    let has_node = claim.object.metadata.annotations.iter().flatten().any(|(key, _)| key == SELECTED_NODE);
    match of_class("/provisioner") {
        "kubernetes.io/no-provisioner" => {
            let meaning = format!("is not bound: volumes of its {named} are made by hand, and none fits");
            cause("NoVolumeFits", &meaning)
        }
        _ if of_class("/volumeBindingMode") == "WaitForFirstConsumer" && !has_node => {
            cause("WaitsForPod", "is not bound: it waits for the first pod that uses it")
        }
        provisioner => {
            let by = if provisioner.is_empty() { String::new() } else { format!(" by {provisioner}") };
            let meaning = format!("is not bound: no volume of its {named} has been made for it{by}");
            cause("NotProvisioned", &meaning)
        }
    }
}

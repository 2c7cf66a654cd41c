//! Pods that stay as a former template made them until somebody deletes them.

use catena_cluster::{number, text};
use kube::ResourceExt;

use super::{Cause, Facts, objects};
use crate::Node;

/// The cause, or a better one if what is waited for is the update of such pods.
pub fn instead_of(cause: Cause, leaf: &Node, facts: &Facts) -> Cause {
    let is_vague = cause.is_progress || cause.reason.ends_with("ProgressDeadlineExceeded");
    let better = if is_vague { leaf.all().find_map(withheld) } else { of_former(&cause, leaf, facts) };
    better.filter(|_| leaf.deleted.is_none()).unwrap_or(cause)
}

/// The cause if the update strategy of a set leaves pods as they were.
pub fn withheld(set: &Node) -> Option<Cause> {
    let count = |field: &str| number(&set.object, &format!("/status/{field}"));
    let updated = count("updatedReplicas").or_else(|| count("updatedNumberScheduled")).unwrap_or(0);
    let former = count("replicas").or_else(|| count("currentNumberScheduled"))? - updated;
    let reason = if is_by_hand(set) { "OnDelete" } else { "Partition" };
    let is_kept = former > 0 && (is_by_hand(set) || former <= partition(set));
    let names = [("{former}", &*former.to_string()), ("{partition}", &partition(set).to_string())];
    let cause = || Cause::with(&set.identity, reason).in_case(reason, &names);
    (set.identity.group() == "apps" && is_kept).then(cause)
}

/// The cause of a pod that its set replaces only once it is ready, which a former template may prevent for ever.
fn of_former(cause: &Cause, pod: &Node, facts: &Facts) -> Option<Cause> {
    let set = objects::above(pod, facts).filter(|set| set.identity.group() == "apps")?;
    let present = text(&set.object, "/status/updateRevision")?;
    let is_former = pod.object.labels().get("controller-revision-hash").is_some_and(|of| of != present);
    let is_parallel = text(&set.object, "/spec/podManagementPolicy") == Some("Parallel");
    let is_kept = is_former && partition(set) == 0 && (is_by_hand(set) || !is_parallel);
    let names = [("{meaning}", &*cause.meaning), ("{set}", &set.identity.to_string())];
    (cause.object == pod.identity && is_kept).then(|| cause.clone().in_case("former template", &names))
}

fn is_by_hand(set: &Node) -> bool {
    text(&set.object, "/spec/updateStrategy/type") == Some("OnDelete")
}

fn partition(set: &Node) -> i64 {
    number(&set.object, "/spec/updateStrategy/rollingUpdate/partition").unwrap_or(0)
}

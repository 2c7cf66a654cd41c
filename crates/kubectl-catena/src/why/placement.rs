//! The nodes that a pod asks for, and those that are closed to it.

use serde_json::Value;

use crate::chain::Node;

/// Whether a node has the labels of the node selector of a pod.
pub fn selects(pod: &Node, node: &Node) -> bool {
    let wanted = pod.object.data.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let labels = node.object.metadata.labels.as_ref();
    wanted
        .into_iter()
        .flatten()
        .all(|(key, value)| labels.and_then(|labels| labels.get(key)).map(String::as_str) == value.as_str())
}

/// Whether a node takes no new pods.
pub fn is_cordoned(node: &Node) -> bool {
    node.object.data.pointer("/spec/unschedulable").is_some_and(|is| *is == true)
}

/// The key of the first taint of a node that keeps a pod away.
pub fn untolerated(pod: &Node, node: &Node) -> Option<String> {
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

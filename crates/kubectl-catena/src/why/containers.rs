//! The container that keeps a pod from serving: its name where a pod has several, and the memory limit that it exceeds.

use serde_json::Value;

use super::{answer::Cause, reasons::describe};
use crate::chain::Node;

/// The cause that a pod reports, with its container in it.
pub fn named(mut cause: Cause, pod: &Node) -> Cause {
    let list =
        |pointer: &str| pod.object.data.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let of_init = list("/status/initContainerStatuses").map(|container| (container, true));
    let all = of_init.chain(list("/status/containerStatuses").map(|container| (container, false)));
    let Some((container, is_init)) = all.into_iter().find(|(container, _)| is_at_fault(container)) else {
        return cause;
    };
    let name = container["name"].as_str().unwrap_or_default();
    let is_one_of_several = is_init || list("/spec/containers").count() > 1;
    if is_one_of_several {
        cause.advice = cause.advice.replace(" logs {name}", &format!(" logs {{name}} --container {name}"));
    }
    let is_killed = ["/state/terminated/reason", "/lastState/terminated/reason"]
        .iter()
        .any(|pointer| container.pointer(pointer).is_some_and(|reason| reason == "OOMKilled"));
    if let Some(row) = describe("OOMKilled").filter(|_| is_killed) {
        let specs = list("/spec/initContainers").chain(list("/spec/containers"));
        let spec = specs.into_iter().find(|spec| spec["name"] == name);
        let limit = spec.and_then(|spec| spec.pointer("/resources/limits/memory")?.as_str());
        let limit = limit.map_or_else(String::new, |limit| format!(" of {limit}"));
        let container = if is_one_of_several { format!(" (container {name})") } else { String::new() };
        cause.meaning = format!("{}{limit}{container}", row.meaning);
        cause.advice.clone_from(&row.remedy);
    }
    cause
}

/// Whether a container cannot start, or has failed.
fn is_at_fault(container: &Value) -> bool {
    let waits_for = container.pointer("/state/waiting/reason").and_then(Value::as_str).unwrap_or_default();
    let is_waiting = !matches!(waits_for, "" | "ContainerCreating" | "PodInitializing");
    is_waiting || container.pointer("/state/terminated/exitCode").is_some_and(|code| *code != 0)
}

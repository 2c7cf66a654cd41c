//! Why a pod does not serve: it has no node, or a container that cannot start or has exited.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::DynamicObject;
use pod_state::node_trouble;
use serde_json::Value;

use super::{Health, State};
use crate::{
    last_words::last_words,
    object::{conditions, created, text},
};

/// The health of a pod.
pub fn health(pod: &DynamicObject) -> Health {
    let all = conditions(pod);
    let find = |type_: &str| all.iter().find(|condition| condition.type_ == type_);
    let since = |condition: Option<&Condition>| {
        condition
            .map(|condition| condition.last_transition_time.0)
            .filter(|time| *time != Timestamp::default())
    };
    let ready = find("Ready");
    let at = since(ready).or_else(|| created(&pod.metadata));
    match text(pod, "/status/phase").unwrap_or_default() {
        "Succeeded" => return Health::new(State::Done, "Succeeded", ""),
        "Failed" => {
            let ended = containers(pod).find_map(|container| container.pointer("/state/terminated"));
            let code = ended.and_then(|ended| ended["exitCode"].as_i64());
            let message = text(pod, "/status/message").map_or_else(
                || code.map_or_else(String::new, |code| format!("exit code {code}")),
                str::to_owned,
            );
            let reason = text(pod, "/status/reason").unwrap_or("PodFailed");
            return Health::new(State::Failed, reason, message).since(at);
        }
        _ if ready.is_some_and(|ready| ready.status == "True") => {
            return Health::new(State::Ready, "", "").since(at);
        }
        _ => {}
    }
    if let Some(scheduled) = find("PodScheduled").filter(|scheduled| scheduled.status == "False") {
        let when = since(Some(scheduled)).or(at);
        return Health::new(State::Stuck, &scheduled.reason, scheduled.message.clone()).since(when);
    }
    if let Some((reason, message)) = containers(pod).find_map(trouble) {
        return Health::new(State::Stuck, &reason, message).since(at);
    }
    let told = |type_: &str| find(type_).map(|found| (&*found.status, &*found.reason));
    if let Some((reason, message)) = text(pod, "/spec/nodeName").and_then(|node| node_trouble(node, told)) {
        return Health::new(State::Stuck, reason, message).since(at);
    }
    let unready = find("ContainersReady").or(ready).map(|condition| condition.message.clone());
    let reason = if text(pod, "/status/phase") == Some("Running") { "NotReady" } else { "Starting" };
    Health::new(State::Moving, reason, unready.unwrap_or_default()).since(at)
}

/// The numbers of ready and of all containers, as in kubectl.
pub fn numbers(pod: &DynamicObject) -> Option<String> {
    let all = pod.data.pointer("/spec/containers")?.as_array()?.len();
    let statuses = pod.data.pointer("/status/containerStatuses").and_then(Value::as_array);
    let ready = statuses.into_iter().flatten().filter(|container| container["ready"] == true).count();
    Some(format!("{ready}/{all}"))
}

fn containers(pod: &DynamicObject) -> impl Iterator<Item = &Value> {
    let of = |pointer: &str| pod.data.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    of("/status/initContainerStatuses").chain(of("/status/containerStatuses"))
}

/// The problem of a container that cannot start, or has failed.
fn trouble(container: &Value) -> Option<(String, String)> {
    let name = container["name"].as_str().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(waiting) = container.pointer("/state/waiting") {
        let reason = text(&waiting["reason"]);
        if !matches!(reason.as_str(), "" | "ContainerCreating" | "PodInitializing") {
            let said = text(&waiting["message"]);
            let last = container.pointer("/lastState/terminated").map_or_else(String::new, |ended| {
                let (why, code) = (text(&ended["reason"]), ended["exitCode"].as_i64().unwrap_or_default());
                let words = last_words(&text(&ended["message"]));
                let words = words.map_or_else(String::new, |words| format!(", and said: {words}"));
                format!("; its last run exited with {why}, exit code {code}{words}")
            });
            let message = if said.is_empty() { format!("container {name:?}") } else { said };
            return Some((reason, message + &last));
        }
    }
    let ended = container.pointer("/state/terminated").filter(|ended| ended["exitCode"] != 0)?;
    let code = ended["exitCode"].as_i64().unwrap_or_default();
    let reason = text(&ended["reason"]);
    let reason = if reason.is_empty() { "Error".to_owned() } else { reason };
    Some((reason, format!("container {name:?} exited with code {code}")))
}

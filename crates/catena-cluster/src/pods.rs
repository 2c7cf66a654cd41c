//! Why a pod does not serve, with the last words of a container that does not stay up.

use catena_terminal::cut;
use kube::core::DynamicObject;
use pod_state::{Phase, PodState, PrunedPod};
use serde_json::{Value, json};

use super::{Health, State};
use crate::{conditions, created, list, text};

/// The reason of a pod whose containers are ready, and which waits for the condition of a readiness gate.
const GATED: &str = "ReadinessGatesNotReady";
/// What stands before the words of a container in the message about its pod.
pub const CONTAINER_SAYS: &str = ", and said: ";
/// One sentence has to hold the last words of a container.
const MAX_LENGTH: usize = 300;

/// The health of a pod that is not being deleted.
pub fn health(pod: &DynamicObject) -> Health {
    let created = created(&pod.metadata);
    let Ok(known) = serde_json::from_value::<PrunedPod>(json!(pod)) else {
        return Health::new(State::Present, "", "");
    };
    let (state, problem) = match known.state() {
        PodState::Ready => return Health::new(State::Ready, "", "").since(known.ready_since().or(created)),
        PodState::Finished(_) if text(pod, "/status/phase") == Some("Succeeded") => {
            return Health::new(State::Done, "Succeeded", "");
        }
        PodState::Terminating(_) => return Health::new(State::Terminating, "Terminating", ""),
        PodState::Finished(problem) => (State::Failed, problem),
        PodState::NotReady(problem) if problem.is_conclusive => (State::Stuck, problem),
        PodState::NotReady(problem) => (State::Moving, problem),
    };
    let is_starting = state == State::Moving && known.phase() != Phase::Running;
    let conditions = conditions(pod);
    let gated = conditions.iter().find(|found| found.reason == GATED && state == State::Moving);
    // It names the init containers that run, and the one about readiness those that wait for them.
    let initializing =
        conditions.iter().find(|found| found.type_ == "Initialized" && found.status == "False");
    let (reason, said) = match gated {
        _ if is_starting => {
            ("Starting", initializing.map_or(&*problem.message, |found| found.message.as_str()))
        }
        Some(gated) => (GATED, gated.message.as_str()),
        None => (&*problem.reason, &*problem.message),
    };
    let waits = |container: &&Value| container["state"]["waiting"]["reason"] == reason;
    let last = containers(pod).find(waits).and_then(last_run).map(|last| format!("; {last}"));
    let end = last.or_else(|| end(pod, reason)).unwrap_or_default();
    let message = format!("{said}{end}");
    let since = Some(problem.since).filter(|since| *since != jiff::Timestamp::default());
    Health::new(state, reason, message).since(since)
}

/// The statuses of containers, in the order in which `pod_state` looks for a problem.
pub fn containers(pod: &DynamicObject) -> impl Iterator<Item = &Value> {
    list(pod, "/status/containerStatuses").chain(list(pod, "/status/initContainerStatuses"))
}

/// The end of the last run of a container.
#[must_use]
pub fn last_run(container: &Value) -> Option<String> {
    let ended = container.pointer("/lastState/terminated")?;
    let reason = ended["reason"].as_str().unwrap_or_default();
    let code = ended["exitCode"].as_i64().unwrap_or_default();
    let words = words(ended).unwrap_or_default();
    Some(format!("its last run exited with {reason}, exit code {code}{words}"))
}

/// The last words of the container whose failure is the reason, and that is not started again.
fn end(pod: &DynamicObject, reason: &str) -> Option<String> {
    let mut ended = containers(pod).filter_map(|container| container.pointer("/state/terminated"));
    let is_it = |ended: &&Value| reason == "PodFailed" || ended["reason"] == reason;
    words(ended.find(|ended| ended["exitCode"] != 0 && is_it(ended))?)
}

fn words(ended: &Value) -> Option<String> {
    Some(format!("{CONTAINER_SAYS}{}", last_words(ended["message"].as_str()?)?))
}

/// The last error in an output, or else its last line: below an error, its causes may be listed.
#[must_use]
pub fn last_words(output: &str) -> Option<String> {
    let is_error = |line: &&str| {
        ["error: ", "fatal: ", "panicked at"].iter().any(|word| line.to_lowercase().contains(word))
    };
    let line = output.lines().rfind(is_error);
    line.or_else(|| output.lines().rfind(|line| !line.trim().is_empty())).map(shortened)
}

/// A line without its margins, and not too long.
#[must_use]
pub fn shortened(line: &str) -> String {
    cut(line.trim(), MAX_LENGTH).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_waits_for_its_init_containers_names_them() {
        let open = |type_: &str, message: &str| json!({"type": type_, "status": "False", "message": message});
        let conditions = [open("Initialized", "incomplete: [wait]"), open("Ready", "unready: [main]")];
        let pod =
            json!({"metadata": {"name": "a"}, "status": {"phase": "Pending", "conditions": conditions}});
        assert_eq!(health(&serde_json::from_value(pod).unwrap()).message, "incomplete: [wait]");
    }

    #[test]
    fn the_last_error_comes_before_its_causes_and_before_other_lines() {
        let output = "starting\nError: --log \"x\" is not valid\n\nCaused by:\n    0: a level\n";
        assert_eq!(last_words(output).as_deref(), Some("Error: --log \"x\" is not valid"));
        assert_eq!(last_words("starting\nno database\n\n").as_deref(), Some("no database"));
        assert_eq!(last_words(" \n"), None);
        assert_eq!(shortened(&"ä".repeat(400)).chars().count(), 301);
    }
}

//! The state of a pod's containers, written by each container's task, and the pod's status that follows from it.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{
        Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
        ContainerStatus, EphemeralContainer, Pod, PodCondition,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::HOST_IP;

/// Why a container does not run, in a kubelet's words.
pub fn waiting(reason: &str, message: impl Into<String>) -> ContainerStateWaiting {
    ContainerStateWaiting { reason: Some(reason.to_owned()), message: Some(message.into()) }
}

/// All containers of one pod.
pub struct Board(watch::Sender<Vec<ContainerStatus>>);

impl Board {
    /// The containers before their start, with their restarts from a former supervisor.
    pub fn new(pod: &Pod) -> Self {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        Self(watch::Sender::new(containers.map(|container| first_status(container, pod)).collect()))
    }

    /// Changes one container's status.
    pub fn update(&self, name: &str, change: impl FnOnce(&mut ContainerStatus)) {
        self.0.send_if_modified(|containers| {
            let Some(container) = containers.iter_mut().find(|container| container.name == name) else {
                return false;
            };
            let before = container.clone();
            change(container);
            *container != before
        });
    }

    /// Records that the container waits, for this reason.
    pub fn waits(&self, name: &str, waiting: ContainerStateWaiting) {
        self.put(name, ContainerState { waiting: Some(waiting), ..ContainerState::default() });
    }

    /// Records that the container runs as this process.
    pub fn runs(&self, name: &str, pid: u32, started: Timestamp) {
        let running = ContainerStateRunning { started_at: Some(Time(started)) };
        self.put(name, ContainerState { running: Some(running), ..ContainerState::default() });
        self.update(name, |container| container.container_id = Some(format!("{PROCESS_ID}{pid}")));
    }

    /// Records the end of the container.
    pub fn ended(&self, name: &str, end: ContainerStateTerminated) {
        self.put(name, ContainerState { terminated: Some(end), ..ContainerState::default() });
    }

    fn put(&self, name: &str, state: ContainerState) {
        self.update(name, |container| {
            let has_ended = |state: &ContainerState| state.terminated.is_some();
            // The end in the present state is not also the last one before it.
            if has_ended(&state) {
                container.last_state = None;
            } else if container.state.as_ref().is_some_and(has_ended) {
                container.last_state = container.state.take();
            }
            (container.ready, container.started) = (false, Some(state.running.is_some()));
            (container.container_id, container.state) = (None, Some(state));
        });
    }

    /// Follows the changes.
    pub fn follow(&self) -> watch::Receiver<Vec<ContainerStatus>> {
        self.0.subscribe()
    }
}

/// The beginning of a container's id.
const PROCESS_ID: &str = "process://";

/// The process of a container that runs.
pub fn pid(container: &ContainerStatus) -> Option<&str> {
    container.container_id.as_deref()?.strip_prefix(PROCESS_ID)
}

fn first_status(container: &Container, pod: &Pod) -> ContainerStatus {
    let before = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let before = before.into_iter().find(|status| status.name == container.name);
    let ran = before.and_then(|before| before.state.as_ref()).is_some_and(|state| state.waiting.is_none());
    ContainerStatus {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        state: Some(ContainerState {
            waiting: Some(waiting("ContainerCreating", "")),
            ..ContainerState::default()
        }),
        restart_count: before.map_or(0, |before| before.restart_count) + i32::from(ran),
        ..ContainerStatus::default()
    }
}

/// The status as a strategic merge patch; other fields (`PodScheduled` and the like) stay.
pub fn status(pod: &Pod, containers: &[ContainerStatus], address: Ipv4Addr, now: Timestamp) -> Value {
    let phase = phase(pod, containers);
    let unready = containers.iter().filter(|container| !container.ready);
    let unready: Vec<&str> = unready.map(|container| container.name.as_str()).collect();
    let reason = if phase == "Succeeded" { "PodCompleted" } else { "ContainersNotReady" };
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    let previous = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let condition = |kind: &str, holds: bool| {
        let problem = (!holds).then_some((reason, message.as_str()));
        condition(previous, kind, problem, now)
    };
    let ephemeral = pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    let started =
        pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map_or(now, |time| time.0);
    json!({
        "phase": phase,
        "startTime": started,
        "hostIP": HOST_IP,
        "hostIPs": [{ "ip": HOST_IP }],
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": [
            condition("Initialized", true),
            condition("ContainersReady", unready.is_empty()),
            condition("Ready", unready.is_empty()),
        ],
        "containerStatuses": containers,
        "ephemeralContainerStatuses": ephemeral.map(never_run).collect::<Vec<_>>(),
    })
}

fn phase(pod: &Pod, containers: &[ContainerStatus]) -> &'static str {
    let exit_code =
        |container: &ContainerStatus| Some(container.state.as_ref()?.terminated.as_ref()?.exit_code);
    if let Some(codes) = containers.iter().map(exit_code).collect::<Option<Vec<i32>>>() {
        let goes_on = are_restarted(pod) && pod.metadata.deletion_timestamp.is_none();
        let are_good = codes.iter().all(|code| *code == 0);
        return if goes_on {
            "Running"
        } else if are_good {
            "Succeeded"
        } else {
            "Failed"
        };
    }
    let never_ran = |container: &ContainerStatus| {
        let waits = container.state.as_ref().is_some_and(|state| state.waiting.is_some());
        waits && container.last_state.is_none() && container.restart_count == 0
    };
    if containers.iter().any(never_ran) { "Pending" } else { "Running" }
}

/// Whether a container that ends is started again; the supported pods have no other policies than `Always` and `Never`.
pub fn are_restarted(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref()) != Some("Never")
}

fn condition(previous: &[PodCondition], kind: &str, problem: Option<(&str, &str)>, now: Timestamp) -> Value {
    let status = if problem.is_none() { "True" } else { "False" };
    let same = previous.iter().find(|condition| condition.type_ == kind && condition.status == status);
    let since = same.and_then(|condition| condition.last_transition_time.as_ref()).map_or(now, |time| time.0);
    // An explicit null removes a field that an earlier patch has set.
    let (reason, message) = problem.unzip();
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

/// Whether the pod's condition `Ready` is true.
pub fn is_ready(pod: &Pod) -> bool {
    let mut conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// The status of a container that was added to a running pod (`kubectl debug`), which never runs, because a process has
/// nothing to share with it.
fn never_run(container: &EphemeralContainer) -> Value {
    json!({
        "name": container.name,
        "image": container.image.as_deref().unwrap_or_default(),
        "imageID": "",
        "ready": false,
        "restartCount": 0,
        "state": { "terminated": {
            "exitCode": 128,
            "reason": "ContainerCannotRun",
            "message": "the host runner does not do spec.ephemeralContainers: use a cluster with a kubelet",
        } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(exit_code: i32) -> Value {
        json!({ "terminated": { "exitCode": exit_code } })
    }

    fn running() -> Value {
        json!({ "running": {} })
    }

    /// The status of a pod whose containers are in these states.
    fn of(states: &[Value], policy: &str) -> Value {
        let container = |state: &Value| ContainerStatus {
            name: "c".to_owned(),
            ready: state.get("running").is_some(),
            state: Some(serde_json::from_value(state.clone()).unwrap()),
            ..ContainerStatus::default()
        };
        let containers: Vec<_> = states.iter().map(container).collect();
        let pod = json!({ "spec": { "containers": [], "restartPolicy": policy } });
        let pod = serde_json::from_value(pod).unwrap();
        status(&pod, &containers, Ipv4Addr::LOCALHOST, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_phase_follows_the_containers_and_the_policy() {
        let waiting = || json!({ "waiting": { "reason": "ContainerCreating" } });
        for (states, policy, phase) in [
            (&[waiting()][..], "Always", "Pending"),
            (&[running(), waiting()], "Always", "Pending"),
            (&[running()], "Always", "Running"),
            (&[ended(1)], "Always", "Running"),
            (&[ended(0)], "Never", "Succeeded"),
            (&[ended(0), ended(2)], "Never", "Failed"),
            (&[ended(0), running()], "Never", "Running"),
        ] {
            assert_eq!(of(states, policy)["phase"], phase, "{states:?} {policy}");
        }
    }

    #[test]
    fn a_pod_is_ready_when_all_containers_are() {
        assert_eq!(of(&[running(), running()], "Always")["conditions"][2]["status"], "True");
        let one = of(&[running(), ended(1)], "Always");
        assert_eq!(one["conditions"][2]["status"], "False");
        assert_eq!(one["conditions"][2]["reason"], "ContainersNotReady");
        assert_eq!(one["containerStatuses"][1]["state"]["terminated"]["exitCode"], 1);
    }

    #[test]
    fn an_end_becomes_the_last_one_when_the_container_goes_on() {
        let spec = json!({ "containers": [{ "name": "c" }] });
        let board = Board::new(&serde_json::from_value(json!({ "spec": spec })).unwrap());
        let end = |exit_code| ContainerStateTerminated { exit_code, ..ContainerStateTerminated::default() };
        let last = || {
            let containers = board.follow().borrow().clone();
            let last = containers[0].last_state.as_ref()?;
            Some((last.terminated.as_ref()?.exit_code, pid(&containers[0]).map(str::to_owned)))
        };
        board.ended("c", end(1));
        assert_eq!(last(), None);
        board.waits("c", waiting("CrashLoopBackOff", ""));
        board.runs("c", 7, Timestamp::UNIX_EPOCH);
        assert_eq!(last(), Some((1, Some("7".to_owned()))));
        board.ended("c", end(2));
        assert_eq!(last(), None);
        board.runs("c", 8, Timestamp::UNIX_EPOCH);
        assert_eq!(last(), Some((2, Some("8".to_owned()))));
    }

    #[test]
    fn a_debugging_container_is_told_that_it_never_runs() {
        let spec =
            json!({"containers": [], "ephemeralContainers": [{"name": "debugger", "image": "busybox"}]});
        let pod = Pod { spec: Some(serde_json::from_value(spec).unwrap()), ..Pod::default() };
        let status = status(&pod, &[], Ipv4Addr::LOCALHOST, Timestamp::UNIX_EPOCH);
        let told = &status["ephemeralContainerStatuses"][0];
        assert_eq!(told["name"], "debugger");
        assert_eq!(told["state"]["terminated"]["reason"], "ContainerCannotRun");
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut pod = Pod::default();
        let first = status(&pod, &[], Ipv4Addr::LOCALHOST, at(10));
        pod.status = Some(serde_json::from_value(first.clone()).unwrap());
        assert_eq!(first, status(&pod, &[], Ipv4Addr::LOCALHOST, at(20)));
    }
}

//! Whether a pod serves, and if not, why.
//!
//! Only the fields that are read are decoded: 15,000 pods fit in a few megabytes.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::Resource;
use operator_watch::Pruned;
use serde::Deserialize;

/// Time for which a pod may be starting before it is reported as a blocker.
pub const START_TOLERANCE: Duration = Duration::from_secs(30);

/// A pod, as decoded from a list or a watch.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = "Pod")]
pub struct PrunedPod {
    /// Its metadata, without `managedFields`.
    #[serde(deserialize_with = "Pruned::metadata")]
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    reason: String,
    message: String,
    conditions: Vec<PodCondition>,
    init_container_statuses: Vec<Container>,
    container_statuses: Vec<Container>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodCondition {
    r#type: String,
    status: String,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default, deserialize_with = "Pruned::time")]
    last_transition_time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Container {
    name: String,
    state: State,
    restart_count: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct State {
    waiting: Option<Cause>,
    terminated: Option<Cause>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Cause {
    reason: String,
    message: String,
    exit_code: i32,
}

/// `status.phase` of a pod that has not ended, in the order in which a ReplicaSet deletes pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not all of its containers have been started.
    #[default]
    Pending,
    /// Its node does not answer.
    Unknown,
    /// All of its containers have been started.
    Running,
}

/// The phase of life of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum PodState {
    /// It serves.
    Ready,
    /// It does not serve (yet).
    NotReady(PodProblem),
    /// It ended by itself and will not serve again.
    Finished(PodProblem),
    /// It is being deleted, and has until then to end by itself.
    Terminating(Timestamp),
}

/// The reason why a pod does not serve.
#[derive(Clone, Debug, PartialEq)]
pub struct PodProblem {
    /// One word.
    pub reason: Arc<str>,
    /// For people.
    pub message: Arc<str>,
    /// Since when.
    pub since: Timestamp,
    /// Whether the cause is known, and the pod is not just starting.
    pub is_conclusive: bool,
}

impl PrunedPod {
    /// Its phase of life.
    #[must_use]
    pub fn state(&self) -> PodState {
        if let Some(until) = &self.metadata.deletion_timestamp {
            return PodState::Terminating(until.0);
        }
        let created = self.metadata.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default();
        self.status.state(created, &self.spec.node_name)
    }

    /// The name of its node; empty before it is assigned to one.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.spec.node_name
    }

    /// Its phase.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.status.phase.as_str() {
            "Running" => Phase::Running,
            "Unknown" => Phase::Unknown,
            _ => Phase::Pending,
        }
    }

    /// The time since which it is ready, if it is and says so.
    #[must_use]
    pub fn ready_since(&self) -> Option<Timestamp> {
        let ready = self.status.condition("Ready").filter(|ready| ready.status == "True")?;
        Some(ready.last_transition_time.as_ref()?.0)
    }

    /// The number of restarts of the container that was restarted most often.
    #[must_use]
    pub fn restarts(&self) -> i32 {
        self.status.container_statuses.iter().map(|container| container.restart_count).max().unwrap_or(0)
    }
}

impl PodState {
    /// The problem for which the pod is reported as a blocker: a conclusive one at once, and another one when the pod has been
    /// starting for [`START_TOLERANCE`].
    #[must_use]
    pub fn reportable_problem(&self, now: Timestamp) -> Option<&PodProblem> {
        match self {
            Self::NotReady(problem) | Self::Finished(problem) => {
                (problem.is_conclusive || problem.age(now) >= START_TOLERANCE).then_some(problem)
            }
            Self::Ready | Self::Terminating(_) => None,
        }
    }
}

impl PodProblem {
    fn conclusive(reason: &str, message: &str, since: Timestamp) -> Self {
        let reason = if reason.is_empty() { "Unknown" } else { reason };
        Self { reason: reason.into(), message: message.into(), since, is_conclusive: true }
    }

    /// The time since it began.
    #[must_use]
    pub fn age(&self, now: Timestamp) -> Duration {
        Duration::try_from(now.duration_since(self.since)).unwrap_or_default()
    }
}

impl Status {
    fn state(&self, created: Timestamp, node: &str) -> PodState {
        match self.phase.as_str() {
            "Failed" | "Succeeded" => PodState::Finished(self.end(created)),
            _ if self.condition("Ready").is_some_and(|ready| ready.status == "True") => PodState::Ready,
            _ => PodState::NotReady(self.problem(created, node)),
        }
    }

    fn end(&self, created: Timestamp) -> PodProblem {
        let since = self.since("Ready", created);
        if !self.reason.is_empty() {
            return PodProblem::conclusive(&self.reason, &self.message, since);
        }
        let mut ended = self.containers().filter_map(|container| container.state.terminated.as_ref());
        let cause = ended.clone().find(|ended| ended.exit_code != 0).or_else(|| ended.next());
        let message = cause.map(|cause| format!("exit code {}", cause.exit_code)).unwrap_or_default();
        PodProblem::conclusive(&format!("Pod{}", self.phase), &message, since)
    }

    /// The first known cause: no node, a container that cannot start, one that ended, or the node.
    fn problem(&self, created: Timestamp, node: &str) -> PodProblem {
        if let Some(scheduled) =
            self.condition("PodScheduled").filter(|condition| condition.status == "False")
        {
            let since = self.since("PodScheduled", created);
            return PodProblem::conclusive(&scheduled.reason, &scheduled.message, since);
        }
        let since = self.since("Ready", created);
        // First one that waits: after a restart of the node, containers that had run count as failed while init containers run again.
        let mut waiting = self.containers().filter_map(|of| Some((&of.name, of.state.waiting.as_ref()?)));
        let is_cause = |reason: &str| !matches!(reason, "" | "ContainerCreating" | "PodInitializing");
        if let Some((name, waiting)) = waiting.find(|(_, waiting)| is_cause(&waiting.reason)) {
            let said = &waiting.message;
            let message = if said.is_empty() { format!("container {name:?}") } else { said.clone() };
            return PodProblem::conclusive(&waiting.reason, &message, since);
        }
        let mut ended = self.containers().filter_map(|of| Some((&of.name, of.state.terminated.as_ref()?)));
        if let Some((name, ended)) = ended.find(|(_, ended)| ended.exit_code != 0) {
            let message = format!("container {name:?} exited with code {}", ended.exit_code);
            return PodProblem::conclusive(&ended.reason, &message, since);
        }
        let condition = |r#type: &str| self.condition(r#type).map(|found| (&*found.status, &*found.reason));
        if let Some((reason, message)) = node_trouble(node, condition) {
            return PodProblem::conclusive(reason, &message, since);
        }
        let message = self.condition("Ready").map(|ready| ready.message.as_str()).unwrap_or_default();
        PodProblem { reason: "NotReady".into(), message: message.into(), since, is_conclusive: false }
    }

    /// Sidecars stand with the init containers, and are ended after the containers. An init container that fails keeps these from
    /// starting.
    fn containers(&self) -> impl Iterator<Item = &Container> + Clone {
        self.container_statuses.iter().chain(&self.init_container_statuses)
    }

    fn condition(&self, r#type: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.r#type == r#type)
    }

    fn since(&self, r#type: &str, created: Timestamp) -> Timestamp {
        let since = self.condition(r#type).and_then(|condition| condition.last_transition_time.as_ref());
        since.map_or(created, |time| time.0)
    }
}

/// The reason and the message of a pod whose node is not ready, from the status and the reason of its conditions by type:
/// Kubernetes has turned `Ready`, and has left its reason and the containers as the kubelet last reported them.
#[must_use]
pub fn node_trouble<'c>(
    node: &str,
    condition: impl Fn(&str) -> Option<(&'c str, &'c str)>,
) -> Option<(&'static str, String)> {
    let is_marked = condition("Ready") == Some(("False", ""))
        && condition("ContainersReady").is_some_and(|(status, _)| status == "True");
    is_marked.then(|| ("NodeNotReady", format!("its node {node:?} is not ready")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(status: &Value) -> PodState {
        let metadata =
            json!({"name": "web-x", "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z"});
        let pod = json!({"metadata": metadata, "status": status});
        serde_json::from_value::<PrunedPod>(pod).unwrap().state()
    }

    fn reason(status: &Value) -> (String, bool) {
        match state(status) {
            PodState::NotReady(problem) | PodState::Finished(problem) => {
                (problem.reason.to_string(), problem.is_conclusive)
            }
            state => panic!("{state:?}"),
        }
    }

    #[test]
    fn the_first_known_cause_is_the_trouble() {
        let cases = [
            (
                json!({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}),
                "Unschedulable",
            ),
            (
                json!({"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}),
                "ImagePullBackOff",
            ),
            (
                json!({"initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
                "CrashLoopBackOff",
            ),
            (
                json!({"containerStatuses": [{"name": "a", "state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}),
                "Error",
            ),
            (json!({"phase": "Failed", "reason": "Evicted"}), "Evicted"),
            (json!({"phase": "Succeeded"}), "PodSucceeded"),
        ];
        for (status, expected) in cases {
            assert_eq!(reason(&status), (expected.to_owned(), true), "{status}");
        }
    }

    #[test]
    fn a_sidecar_that_was_ended_with_its_pod_is_not_its_trouble() {
        let ended = |code: i32| json!({"state": {"terminated": {"reason": "Error", "exitCode": code}}});
        let status = json!({
            "phase": "Failed", "initContainerStatuses": [ended(143)], "containerStatuses": [ended(1)],
        });
        let PodState::Finished(problem) = state(&status) else { panic!("it has ended") };
        assert_eq!(&*problem.message, "exit code 1");
    }

    #[test]
    fn a_pod_whose_node_is_not_ready_names_the_node() {
        let state = |reason: &str, containers: &str| {
            let conditions = json!([
                {"type": "Ready", "status": "False", "reason": reason, "lastTransitionTime": "2026-01-01T00:05:00Z"},
                {"type": "ContainersReady", "status": containers},
            ]);
            let pod = json!({
                "metadata": {"name": "web-x", "namespace": "shop"}, "spec": {"nodeName": "n1"},
                "status": {"phase": "Running", "conditions": conditions},
            });
            serde_json::from_value::<PrunedPod>(pod).unwrap().state()
        };
        let PodState::NotReady(problem) = state("", "True") else { panic!("it serves") };
        assert_eq!((&*problem.reason, &*problem.message), ("NodeNotReady", "its node \"n1\" is not ready"));
        assert_eq!((problem.since, problem.is_conclusive), ("2026-01-01T00:05:00Z".parse().unwrap(), true));
        for (reason, containers) in
            [("ContainersNotReady", "False"), ("ReadinessGatesNotReady", "True"), ("", "False")]
        {
            let PodState::NotReady(problem) = state(reason, containers) else { panic!("it serves") };
            assert_eq!(&*problem.reason, "NotReady", "{reason}");
        }
    }

    #[test]
    fn a_pod_that_is_starting_is_no_known_trouble() {
        for status in [
            json!({}),
            json!({"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
        ] {
            assert_eq!(reason(&status), ("NotReady".to_owned(), false));
        }
    }

    #[test]
    fn a_pod_blocks_with_a_known_trouble_at_once_and_otherwise_only_after_a_while() {
        let created: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let blocks = |status: &Value, age| {
            state(status).reportable_problem(created + Duration::from_secs(age)).is_some()
        };
        let waiting =
            json!({"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ErrImagePull"}}}]});
        assert!(blocks(&waiting, 0));
        assert_eq!([0, 29, 30].map(|age| blocks(&json!({}), age)), [false, false, true]);
        assert!(!blocks(&json!({"conditions": [{"type": "Ready", "status": "True"}]}), 60));
    }

    #[test]
    fn a_pod_that_is_being_deleted_is_terminating_whatever_its_status_says() {
        let metadata = json!({"name": "web-x", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let pod = json!({"metadata": metadata, "status": {"phase": "Failed"}});
        let state = serde_json::from_value::<PrunedPod>(pod).unwrap().state();
        assert_eq!(state, PodState::Terminating("2026-01-01T00:00:00Z".parse().unwrap()));
    }
}

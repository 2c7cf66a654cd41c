//! The fields of a pod that are read: 15,000 pods fit in a few megabytes.

use catena_api::{BasicReplicaSet, keys};
use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::Pod,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::Resource;
use operator_kit::{
    object::ObjectId,
    watch::{Row, trimmed_metadata, trimmed_time},
    write::owner::controller_of,
};
use serde::Deserialize;

/// A pod, as decoded from the watch.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = "Pod")]
pub struct WatchedPod {
    #[serde(deserialize_with = "trimmed_metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
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
    #[serde(default, deserialize_with = "trimmed_time")]
    last_transition_time: Option<Time>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    state: State,
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

/// A pod in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct PodRow {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// Its controller.
    pub owner: Option<Owner>,
    /// Its revision: [`keys::HASH`].
    pub revision: Box<str>,
    /// Its slot: [`keys::SLOT`].
    pub slot: Option<u32>,
    /// When it was created.
    pub created: Timestamp,
    /// Its deletion cost; pods with a lower one are deleted first.
    pub deletion_cost: i32,
    /// Its phase of life.
    pub state: PodState,
}

/// The controller of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// The controller's uid.
    pub uid: Box<str>,
    /// The controller's name.
    pub name: Box<str>,
}

impl Owner {
    /// Whether it is a former set with the name of this one; both are in one namespace.
    #[must_use]
    pub fn is_former(&self, set: &BasicReplicaSet) -> bool {
        let metadata = &set.metadata;
        Some(&*self.name) == metadata.name.as_deref() && Some(&*self.uid) != metadata.uid.as_deref()
    }
}

/// The phase of life of a pod.
#[derive(Clone, Debug, PartialEq)]
pub enum PodState {
    /// It serves.
    Ready,
    /// It does not serve (yet).
    NotReady(Trouble),
    /// It ended by itself and will not serve again.
    Finished(Trouble),
    /// It is being deleted.
    Terminating,
}

/// The reason why a pod does not serve.
#[derive(Clone, Debug, PartialEq)]
pub struct Trouble {
    /// One word.
    pub reason: Box<str>,
    /// For people.
    pub message: Box<str>,
    /// Since when.
    pub since: Timestamp,
    /// Whether the cause is known, and the pod is not just starting.
    pub is_known: bool,
}

impl Row for PodRow {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    /// An orphan is grouped by its revision, by which its next set looks it up.
    fn group(&self) -> Option<&str> {
        Some(self.owner.as_ref().map_or(&self.revision, |owner| &owner.uid))
    }
}

impl PodRow {
    /// Trims a pod.
    #[must_use]
    pub fn of(pod: WatchedPod) -> Self {
        let WatchedPod { metadata, status } = pod;
        let owner = controller_of(&metadata)
            .map(|owner| Owner { uid: owner.uid.as_str().into(), name: owner.name.as_str().into() });
        let annotation =
            |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).map(String::as_str);
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default();
        let state =
            if metadata.deletion_timestamp.is_some() { PodState::Terminating } else { status.state(created) };
        Self {
            owner,
            revision: annotation(keys::HASH).unwrap_or_default().into(),
            slot: annotation(keys::SLOT).and_then(|slot| slot.parse().ok()),
            deletion_cost: annotation(keys::POD_DELETION_COST)
                .and_then(|cost| cost.parse().ok())
                .unwrap_or(0),
            created,
            state,
            namespace: metadata.namespace.unwrap_or_default().into(),
            name: metadata.name.unwrap_or_default().into(),
            uid: metadata.uid.unwrap_or_default().into(),
        }
    }

    /// Whether it counts for `replicas`.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self.state, PodState::Ready | PodState::NotReady(_))
    }

    /// Whether it serves.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == PodState::Ready
    }
}

impl Status {
    fn state(&self, created: Timestamp) -> PodState {
        match self.phase.as_str() {
            "Failed" | "Succeeded" => PodState::Finished(self.end(created)),
            _ if self.condition("Ready").is_some_and(|ready| ready.status == "True") => PodState::Ready,
            _ => PodState::NotReady(self.trouble(created)),
        }
    }

    fn end(&self, created: Timestamp) -> Trouble {
        let (reason, message) = if self.reason.is_empty() {
            let cause =
                self.container_statuses.iter().find_map(|container| container.state.terminated.as_ref());
            let message = cause.map(|cause| format!("exit code {}", cause.exit_code)).unwrap_or_default();
            (format!("Pod{}", self.phase), message)
        } else {
            (self.reason.clone(), self.message.clone())
        };
        Trouble {
            reason: reason.into(),
            message: message.into(),
            since: self.since("Ready", created),
            is_known: true,
        }
    }

    /// The first known cause: no node, a container that cannot start, or one that ended.
    fn trouble(&self, created: Timestamp) -> Trouble {
        let known = |reason: &str, message: &str, since| Trouble {
            reason: if reason.is_empty() { "Unknown" } else { reason }.into(),
            message: message.into(),
            since,
            is_known: true,
        };
        if let Some(scheduled) =
            self.condition("PodScheduled").filter(|condition| condition.status == "False")
        {
            return known(&scheduled.reason, &scheduled.message, self.since("PodScheduled", created));
        }
        let since = self.since("Ready", created);
        for container in self.init_container_statuses.iter().chain(&self.container_statuses) {
            if let Some(waiting) = &container.state.waiting
                && !matches!(waiting.reason.as_str(), "" | "ContainerCreating" | "PodInitializing")
            {
                let message = if waiting.message.is_empty() {
                    format!("container {:?}", container.name)
                } else {
                    waiting.message.clone()
                };
                return known(&waiting.reason, &message, since);
            }
            if let Some(terminated) = container.state.terminated.as_ref().filter(|ended| ended.exit_code != 0)
            {
                let message =
                    format!("container {:?} exited with code {}", container.name, terminated.exit_code);
                return known(&terminated.reason, &message, since);
            }
        }
        let message = self.condition("Ready").map(|ready| ready.message.as_str()).unwrap_or_default();
        Trouble { reason: "NotReady".into(), message: message.into(), since, is_known: false }
    }

    fn condition(&self, r#type: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.r#type == r#type)
    }

    fn since(&self, r#type: &str, created: Timestamp) -> Timestamp {
        self.condition(r#type)
            .and_then(|condition| condition.last_transition_time.as_ref())
            .map_or(created, |time| time.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn row(status: &Value) -> PodRow {
        let pod = json!({
            "metadata": {
                "name": "web-x", "namespace": "shop", "uid": "p1", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"catena.dev/template-hash": "h", "catena.dev/slot": "2"},
                "ownerReferences": [{"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": "web", "uid": "s1", "controller": true}],
            },
            "status": status,
        });
        PodRow::of(serde_json::from_value(pod).unwrap())
    }

    fn reason(status: &Value) -> (String, bool) {
        match row(status).state {
            PodState::NotReady(trouble) | PodState::Finished(trouble) => {
                (trouble.reason.into(), trouble.is_known)
            }
            state => panic!("{state:?}"),
        }
    }

    #[test]
    fn a_pod_is_kept_by_its_controller_and_slot() {
        let row = row(&json!({"conditions": [{"type": "Ready", "status": "True"}]}));
        assert_eq!((row.group(), row.slot, row.is_ready()), (Some("s1"), Some(2), true));
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
    fn a_pod_that_is_starting_is_no_known_trouble() {
        for status in [
            json!({}),
            json!({"containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "ContainerCreating"}}}]}),
        ] {
            assert_eq!(reason(&status), ("NotReady".to_owned(), false));
        }
    }
}

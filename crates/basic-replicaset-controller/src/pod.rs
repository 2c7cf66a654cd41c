//! A pod in the cache.

use std::sync::Arc;

use catena_api::{BasicReplicaSet, keys};
use jiff::Timestamp;
use operator_kit::write::Ownership;
use operator_watch::{ObjectId, Row};
use pod_state::{Phase, PodState, PrunedPod};

use crate::interner::Interner;

/// A pod in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct PodRow {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
    /// Its controller.
    pub owner: Option<Owner>,
    /// Its revision: [`keys::HASH`].
    pub revision: Arc<str>,
    /// Its slot: [`keys::SLOT`].
    pub slot: Option<u32>,
    /// When it was created.
    pub created: Timestamp,
    /// Its deletion cost; pods with a lower one are deleted first.
    pub deletion_cost: i32,
    /// Its phase of life.
    pub state: PodState,
    /// The time since which it is ready, if it is.
    pub ready_since: Option<Timestamp>,
    /// Its node; empty before it is assigned to one.
    pub node: Arc<str>,
    /// Its phase.
    pub phase: Phase,
    /// The number of restarts of its container that was restarted most often.
    pub restarts: i32,
}

/// The controller of a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// The controller's uid.
    pub uid: Arc<str>,
    /// The controller's name.
    pub name: Arc<str>,
    /// Whether the reference to it names another API version than this program does.
    pub is_outdated: bool,
}

impl Owner {
    /// Whether it is a former set with the name of this one; both are in one namespace.
    #[must_use]
    pub fn is_former(&self, set: &BasicReplicaSet) -> bool {
        let metadata = &set.metadata;
        Some(&*self.name) == metadata.name.as_deref() && Some(&*self.uid) != metadata.uid.as_deref()
    }
}

impl Row for PodRow {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    /// An orphan is indexed by its revision, by which its next set looks it up.
    fn index_key(&self) -> Option<&str> {
        Some(self.owner.as_ref().map_or(&self.revision, |owner| &owner.uid))
    }

    fn is_unchanged(&self, newer: &Self) -> bool {
        self == newer
    }

    /// Nobody is told of fields that only rank pods for deletion.
    fn is_quiet(&self, newer: &Self) -> bool {
        let (node, phase, restarts) = (newer.node.clone(), newer.phase, newer.restarts);
        Self { node, phase, restarts, ..self.clone() } == *newer
    }
}

/// Length of a sha256 in hexadecimal digits.
const LONGEST_HASH: usize = 64;

impl PodRow {
    /// Prunes a pod, and shares with other rows what it has in common with them.
    #[must_use]
    pub fn of(pod: PrunedPod, shared: &Interner) -> Self {
        let mut state = pod.state();
        if let PodState::NotReady(problem) | PodState::Finished(problem) = &mut state {
            problem.reason = shared.intern(&problem.reason);
            problem.message = shared.intern(&problem.message);
        }
        let (phase, restarts, node) = (pod.phase(), pod.restarts(), shared.intern(pod.node()));
        let ready_since = pod.ready_since().filter(|_| state == PodState::Ready);
        let metadata = pod.metadata;
        let owner = Ownership::controller_of(&metadata).map(|owner| Owner {
            uid: shared.intern(&owner.uid),
            name: shared.intern(&owner.name),
            is_outdated: Ownership::is_outdated::<BasicReplicaSet>(owner),
        });
        let annotation =
            |key: &str| metadata.annotations.as_ref().and_then(|all| all.get(key)).map(String::as_str);
        let created = metadata.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default();
        Self {
            owner,
            // Anybody who may create pods can write a longer text, which would stay in memory.
            revision: shared
                .intern(annotation(keys::HASH).filter(|hash| hash.len() <= LONGEST_HASH).unwrap_or_default()),
            slot: annotation(keys::SLOT).and_then(|slot| slot.parse().ok()),
            deletion_cost: annotation(keys::POD_DELETION_COST)
                .and_then(|cost| cost.parse().ok())
                .unwrap_or(0),
            created,
            state,
            ready_since,
            node,
            phase,
            restarts,
            namespace: shared.intern(metadata.namespace.as_deref().unwrap_or_default()),
            name: metadata.name.unwrap_or_default().into(),
            uid: metadata.uid.unwrap_or_default().into(),
        }
    }

    /// Whether it counts for `replicas`.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self.state, PodState::Ready | PodState::NotReady(_))
    }

    /// Whether it ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        matches!(self.state, PodState::Finished(_))
    }

    /// Whether it serves.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == PodState::Ready
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_pod_is_kept_by_its_controller_and_slot() {
        let mut pod = json!({
            "metadata": {
                "name": "web-x", "namespace": "shop", "uid": "p1", "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {"catena.dev/template-hash": "h", "catena.dev/slot": "2"},
                "ownerReferences": [{"apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "name": "web", "uid": "s1", "controller": true}],
            },
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        });
        let row =
            |pod: &Value| PodRow::of(serde_json::from_value(pod.clone()).unwrap(), &Interner::default());
        let is_outdated = |row: PodRow| row.owner.is_some_and(|owner| owner.is_outdated);
        let current = row(&pod);
        assert_eq!((current.index_key(), current.slot, current.is_ready()), (Some("s1"), Some(2), true));
        assert!(!is_outdated(current));
        pod["metadata"]["ownerReferences"][0]["apiVersion"] = "catena.dev/v1alpha0".into();
        assert!(is_outdated(row(&pod)));
    }

    #[test]
    fn what_only_ranks_a_pod_for_deletion_causes_no_pass() {
        let row = |phase: &str, node: &str, ready: &str, restarts: [i32; 2]| {
            let since = "2026-01-01T00:00:00Z";
            let pod = json!({
                "metadata": {"name": "web-x"}, "spec": {"nodeName": node},
                "status": {
                    "phase": phase,
                    "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": since}],
                    "containerStatuses": restarts.map(|count| json!({"name": "c", "restartCount": count})),
                },
            });
            PodRow::of(serde_json::from_value(pod).unwrap(), &Interner::default())
        };
        let pending = row("Pending", "", "False", [0, 0]);
        let running = row("Running", "n1", "False", [2, 9]);
        assert_eq!((&*running.node, running.phase, running.restarts), ("n1", Phase::Running, 9));
        assert!(pending.is_quiet(&running) && pending != running);
        let ready = row("Running", "n1", "True", [2, 9]);
        assert_eq!(ready.ready_since, Some("2026-01-01T00:00:00Z".parse().unwrap()));
        assert!(!running.is_quiet(&ready) && running.ready_since.is_none());
    }

    /// Whoever may create pods can write annotations of 256 KiB onto many of them.
    #[test]
    fn a_text_that_is_no_hash_takes_no_memory() {
        let revision = |hash: &str| {
            let pod = json!({"metadata": {"name": "x", "annotations": {"catena.dev/template-hash": hash}}});
            PodRow::of(serde_json::from_value(pod).unwrap(), &Interner::default()).revision
        };
        let hash = "a".repeat(64);
        assert_eq!((&*revision(&hash), &*revision(&"a".repeat(65))), (hash.as_str(), ""));
    }

    #[test]
    fn pods_that_wait_for_the_same_reason_share_its_texts() {
        let shared = Interner::default();
        let problem = |name: &str| {
            let scheduled = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available: 3 Insufficient cpu."});
            let pod = json!({"metadata": {"name": name}, "status": {"conditions": [scheduled]}});
            match PodRow::of(serde_json::from_value(pod).unwrap(), &shared).state {
                PodState::NotReady(problem) => problem,
                state => panic!("{state:?}"),
            }
        };
        let (one, other) = (problem("a"), problem("b"));
        assert!(Arc::ptr_eq(&one.reason, &other.reason) && Arc::ptr_eq(&one.message, &other.message));
        assert!(one.message.contains("Insufficient"));
    }
}

//! The fields of a Job that are read, and its manifest.

use jiff::Timestamp;
use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use operator_kit::write::Ownership;
use operator_templates::Digest;
use operator_watch::{ObjectId, Pruned, Row};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kind::JobReplicas;

/// Label on each Job and its pods: the uid of the `JobReplicas`. It narrows the watch.
pub const OF: &str = "jobreplicas.example.com/of";
/// Annotation on each Job: the digest of its pod template and the restart token.
pub const REVISION: &str = "jobreplicas.example.com/revision";

/// A Job, as decoded from the watch.
#[derive(Clone, Debug, Deserialize, Resource)]
#[resource(inherit = "Job")]
pub struct WatchedJob {
    #[serde(deserialize_with = "Pruned::metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    ready: i32,
    conditions: Vec<JobCondition>,
}

#[derive(Clone, Debug, Deserialize)]
struct JobCondition {
    r#type: String,
    status: String,
}

/// A Job in the cache.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The uid of its `JobReplicas`.
    pub owner: String,
    /// The name of its `JobReplicas`.
    pub owner_name: String,
    /// Its revision.
    pub revision: String,
    /// When it was created.
    pub created: Timestamp,
    /// Its phase of life.
    pub phase: Phase,
}

/// The phase of life of a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its worker does not serve yet.
    Starting,
    /// Its worker serves.
    Ready,
    /// It ended by itself.
    Ended,
    /// It is being deleted; its worker may still run.
    Terminating,
}

impl Row for JobRow {
    fn id(&self) -> ObjectId<'_> {
        ObjectId { namespace: &self.namespace, name: &self.name, uid: &self.uid }
    }

    fn index_key(&self) -> Option<&str> {
        Some(&self.owner)
    }
}

impl JobRow {
    /// Prunes a Job.
    #[must_use]
    pub fn of(job: WatchedJob) -> Self {
        let WatchedJob { metadata, status } = job;
        let (owner, owner_name) = Ownership::controller_of(&metadata)
            .map(|owner| (owner.uid.clone(), owner.name.clone()))
            .unwrap_or_default();
        let revision = metadata.annotations.as_ref().and_then(|all| all.get(REVISION)).cloned();
        let has_ended = |condition: &JobCondition| {
            matches!(&*condition.r#type, "Complete" | "Failed") && condition.status == "True"
        };
        let phase = if metadata.deletion_timestamp.is_some() {
            Phase::Terminating
        } else if status.conditions.iter().any(has_ended) {
            Phase::Ended
        } else if status.ready > 0 {
            Phase::Ready
        } else {
            Phase::Starting
        };
        Self {
            owner,
            owner_name,
            revision: revision.unwrap_or_default(),
            created: metadata.creation_timestamp.as_ref().map(|time| time.0).unwrap_or_default(),
            phase,
            namespace: metadata.namespace.unwrap_or_default(),
            name: metadata.name.unwrap_or_default(),
            uid: metadata.uid.unwrap_or_default(),
        }
    }

    /// Whether it counts for `replicas`.
    #[must_use]
    pub fn counts(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Ready)
    }
}

/// The revision of new Jobs.
#[must_use]
pub fn revision(set: &JobReplicas) -> String {
    let spec = &set.spec;
    let annotations = json!(spec.pod_annotations).to_string();
    Digest::short(&[&spec.image, &annotations, spec.restarted_at.as_deref().unwrap_or_default()])
}

/// The name of the Job in a slot. It follows from its owner, revision and slot, so that a repeated create meets its own
/// Job instead of creating a second one.
#[must_use]
pub fn name(set: &JobReplicas, slot: usize) -> String {
    let ObjectId { name, uid, .. } = ObjectId::of(set);
    format!("{name}-{}", Digest::short(&[uid, &revision(set), &slot.to_string()]))
}

/// The manifest of a Job.
#[must_use]
pub fn manifest(set: &JobReplicas, name: &str) -> Value {
    let ObjectId { namespace, uid, .. } = ObjectId::of(set);
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": namespace, "labels": {OF: uid},
            "annotations": {REVISION: revision(set)},
            "ownerReferences": [Ownership::owner_reference(set)],
        },
        "spec": {"template": {
            "metadata": {"labels": {OF: uid}, "annotations": set.spec.pod_annotations},
            "spec": {
                "restartPolicy": "OnFailure",
                "automountServiceAccountToken": false,
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "worker", "image": set.spec.image,
                    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                }],
            },
        }},
    })
}

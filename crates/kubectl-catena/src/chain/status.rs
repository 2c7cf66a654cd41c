//! The health of an object of any kind, from its status.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::DynamicObject;

use super::{Health, State, pods};
use crate::{
    object::{conditions, created, deleted, number, text},
    protection,
};

/// The beginning of each version of our kinds.
const OURS: &str = "catena.dev/";

/// The health of an object.
pub fn health(object: &DynamicObject) -> Health {
    if let Some(since) = deleted(&object.metadata) {
        return Health::new(State::Terminating, "Terminating", held_for_backup(object)).since(Some(since));
    }
    let types = object.types.as_ref().map(|types| (types.api_version.as_str(), types.kind.as_str()));
    match types {
        Some(("v1", "Pod")) => return pods::health(object),
        Some(("v1", "PersistentVolumeClaim")) => {
            return match text(object, "/status/phase") {
                Some("Bound") => Health::new(State::Ready, "Bound", ""),
                Some("Lost") => Health::new(State::Stuck, "Lost", "its volume no longer exists"),
                phase => Health::new(State::Moving, phase.unwrap_or("Pending"), ""),
            };
        }
        Some(("batch/v1", "Job")) if !has_ended(object) => return running(object),
        _ => {}
    }
    let is_behind = observed_generation(object)
        .zip(object.metadata.generation)
        .filter(|(observed, generation)| observed != generation);
    if let Some((observed, generation)) = is_behind {
        let message =
            format!("its status is for generation {observed}, but its spec has generation {generation}");
        return Health::new(State::Unreported, "Behind", message).since(changed(object));
    }
    let all = conditions(object);
    if let Some(("apps/v1", "Deployment")) = types
        && let Some(health) = rolling(object, &all)
    {
        return health;
    }
    let is_ours = types.is_some_and(|(api_version, _)| api_version.starts_with(OURS));
    by_conditions(&all, is_ours)
        .or_else(|| by_numbers(object))
        .unwrap_or_else(|| Health::new(State::Present, "", ""))
}

/// The generation that a status is for. A Rollout gives it as a text.
fn observed_generation(object: &DynamicObject) -> Option<i64> {
    let observed = object.data.pointer("/status/observedGeneration")?;
    observed.as_i64().or_else(|| observed.as_str()?.parse().ok())
}

fn has_ended(job: &DynamicObject) -> bool {
    let is_end = |condition: &Condition| matches!(condition.type_.as_str(), "Complete" | "Failed");
    conditions(job).iter().any(|condition| is_end(condition) && condition.status == "True")
}

/// A Job that has not ended. One that runs may have no condition.
fn running(job: &DynamicObject) -> Health {
    let is_suspended = job.data.pointer("/spec/suspend").is_some_and(|is| *is == true);
    if !is_suspended {
        return Health::new(State::Moving, "Running", "").since(created(&job.metadata));
    }
    let since = conditions(job)
        .iter()
        .find(|found| found.type_ == "Suspended")
        .map(|found| found.last_transition_time.0);
    Health::new(State::Stuck, "Suspended", "spec.suspend is true").since(since)
}

/// A Deployment that is available and not finished: its old pods serve while the new ones fail to start.
fn rolling(object: &DynamicObject, all: &[Condition]) -> Option<Health> {
    let holds =
        |type_: &str| all.iter().find(|condition| condition.type_ == type_ && condition.status == "True");
    let (_, progressing) = (holds("Available")?, holds("Progressing")?);
    let wanted = number(object, "/spec/replicas").unwrap_or(1);
    let counts = ["/status/replicas", "/status/updatedReplicas", "/status/availableReplicas"];
    let is_done = counts.iter().all(|pointer| number(object, pointer).unwrap_or(0) == wanted);
    let since = Some(progressing.last_transition_time.0);
    (!is_done).then(|| Health::new(State::Moving, "Progressing", progressing.message.clone()).since(since))
}

/// The last change outside its status.
fn changed(object: &DynamicObject) -> Option<Timestamp> {
    let fields = object.metadata.managed_fields.iter().flatten();
    let changes = fields.filter(|entry| entry.subresource.as_deref() != Some("status"));
    changes.filter_map(|entry| entry.time.as_ref()).map(|time| time.0).max()
}

/// The message of backup-controller on an object that it holds.
fn held_for_backup(object: &DynamicObject) -> String {
    protection::report(&object.metadata)["message"].as_str().unwrap_or_default().to_owned()
}

/// Conditions in the order in which they decide: kstatus's, then commands' and Jobs', then Ready.
fn by_conditions(all: &[Condition], is_ours: bool) -> Option<Health> {
    let find = |type_: &str| all.iter().find(|condition| condition.type_ == type_);
    let is = |type_: &str, status: &str| find(type_).filter(|condition| condition.status == status);
    let said = |state: State, condition: &Condition| {
        let time = condition.last_transition_time.0;
        Health::new(state, &condition.reason, condition.message.clone())
            .since((time != Timestamp::default()).then_some(time))
    };
    // Our definitions say so of a new object. For another project, the word has a meaning of its own, unless the condition
    // has no time because its definition gives it, too.
    let is_pending = |condition: &Condition| {
        matches!(condition.reason.as_str(), "Pending" | "")
            && (is_ours || condition.last_transition_time.0 == Timestamp::default())
    };
    if let Some(done) = ["Succeeded", "Complete"].iter().find_map(|type_| is(type_, "True")) {
        return Some(said(State::Done, done));
    }
    if let Some(failed) = is("Succeeded", "False").or_else(|| is("Failed", "True")) {
        return Some(said(State::Failed, failed));
    }
    if let Some(running) = is("Succeeded", "Unknown") {
        let is_unreported = running.reason == "Pending" && is_pending(running);
        return Some(said(if is_unreported { State::Unreported } else { State::Moving }, running));
    }
    if let Some(late) = is("Progressing", "False").filter(|late| late.reason == "ProgressDeadlineExceeded") {
        return Some(said(State::Stuck, late));
    }
    if let Some(stalled) = ["Stalled", "ReplicaFailure"].iter().find_map(|type_| is(type_, "True")) {
        return Some(said(State::Stuck, stalled));
    }
    if let Some(ready) = ["Ready", "Available"].iter().find_map(|type_| find(type_)) {
        let state = match ready.status.as_str() {
            "True" => State::Ready,
            "Unknown" if is_pending(ready) => State::Unreported,
            _ => State::Moving,
        };
        return Some(said(state, ready));
    }
    if let Some(reconciling) = is("Reconciling", "True") {
        return Some(said(State::Moving, reconciling));
    }
    // A command in progress has only the conditions of its earlier stages. On other kinds, such as those of the Gateway
    // API, Accepted is a final state.
    let is_bound = find("Bound").is_some();
    let last = ["Accepted", "Bound"].iter().find_map(|type_| find(type_))?;
    (is_bound || last.status != "True").then(|| said(State::Moving, last))
}

fn by_numbers(object: &DynamicObject) -> Option<Health> {
    let wanted = number(object, "/spec/replicas")
        .or_else(|| number(object, "/status/desiredNumberScheduled"))
        .filter(|_| object.data.get("status").is_some_and(|status| !status.is_null()))?;
    let ready = ["/status/readyReplicas", "/status/numberReady", "/status/active"]
        .iter()
        .find_map(|pointer| number(object, pointer))
        .or_else(|| omits_zeros(object).then_some(0))?;
    let state = if ready >= wanted { State::Ready } else { State::Moving };
    Some(Health::new(state, "", ""))
}

/// Whether a missing number is zero: on the kinds of Kubernetes. Others may report by fields of other names.
fn omits_zeros(object: &DynamicObject) -> bool {
    let api_version = object.types.as_ref().map_or("", |types| types.api_version.as_str());
    api_version == "v1" || api_version.starts_with("apps/") || api_version.starts_with(OURS)
}

/// The numbers of serving and of desired replicas.
pub fn numbers(object: &DynamicObject) -> Option<String> {
    let types = object.types.as_ref()?;
    if types.kind == "Pod" {
        return pods::numbers(object);
    }
    let wanted =
        number(object, "/spec/replicas").or_else(|| number(object, "/status/desiredNumberScheduled"))?;
    let ready = ["/status/active", "/status/readyReplicas", "/status/numberReady"]
        .iter()
        .find_map(|pointer| number(object, pointer))
        .unwrap_or(0);
    Some(format!("{ready}/{wanted}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn state(api_version: &str, kind: &str, body: Value) -> (State, String) {
        let mut object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}});
        let Value::Object(fields) = body else { panic!("no object") };
        for (field, value) in fields {
            object[field] = value;
        }
        let health = health(&serde_json::from_value(object).unwrap());
        (health.state, health.reason)
    }

    fn with(conditions: &Value) -> Value {
        json!({"status": {"conditions": conditions}})
    }

    #[test]
    fn the_conditions_decide() {
        for (conditions, expected) in [
            (json!([{"type": "Ready", "status": "True", "reason": "Complete"}]), (State::Ready, "Complete")),
            (json!([{"type": "Ready", "status": "False", "reason": "Scaling"}]), (State::Moving, "Scaling")),
            (
                json!([{"type": "Ready", "status": "Unknown", "reason": "Pending"}]),
                (State::Unreported, "Pending"),
            ),
            (
                json!([{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]),
                (State::Moving, "NodeStatusUnknown"),
            ),
            (
                json!([{"type": "Ready", "status": "False", "reason": "X"}, {"type": "Stalled", "status": "True", "reason": "X"}]),
                (State::Stuck, "X"),
            ),
            (
                json!([{"type": "Succeeded", "status": "True", "reason": "Restarted"}]),
                (State::Done, "Restarted"),
            ),
            (json!([{"type": "Succeeded", "status": "False", "reason": "Late"}]), (State::Failed, "Late")),
            (json!([{"type": "Failed", "status": "True", "reason": "Backoff"}]), (State::Failed, "Backoff")),
            (
                json!([{"type": "Bound", "status": "False", "reason": "NoTarget"}]),
                (State::Moving, "NoTarget"),
            ),
            (json!([]), (State::Present, "")),
        ] {
            assert_eq!(state("x.y/v1", "Z", with(&conditions)), (expected.0, expected.1.to_owned()));
        }
    }

    #[test]
    fn a_status_of_an_older_spec_is_not_believed() {
        let body =
            json!({"status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(
            state("catena.dev/v1alpha1", "BasicDeployment", body),
            (State::Unreported, "Behind".into())
        );
    }

    #[test]
    fn a_status_is_behind_since_the_last_change_of_the_rest() {
        let object = json!({"apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment",
            "metadata": {"name": "x", "generation": 2, "managedFields": [
                {"manager": "user", "time": "2026-01-01T00:00:00Z"},
                {"manager": "user", "subresource": "scale", "time": "2026-01-01T00:00:02Z"},
                {"manager": "controller", "subresource": "status", "time": "2026-01-01T00:00:04Z"},
            ]},
            "status": {"observedGeneration": 1},
        });
        let health = health(&serde_json::from_value(object).unwrap());
        assert_eq!(health.since, Some("2026-01-01T00:00:02Z".parse().unwrap()));
    }

    #[test]
    fn a_held_object_reports_the_state_of_its_backup() {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": "x", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {
                "catena.dev/backup-status": json!({"uid": "u", "message": "waiting for the backup"}).to_string(),
            },
        }});
        let health = health(&serde_json::from_value(object).unwrap());
        assert_eq!((health.state, health.message.as_str()), (State::Terminating, "waiting for the backup"));
    }

    #[test]
    fn a_deployment_whose_old_pods_serve_is_not_finished() {
        let deployment = |updated: i64, replicas: i64| {
            json!({
                "spec": {"replicas": 3},
                "status": {
                    "observedGeneration": 2, "replicas": replicas, "updatedReplicas": updated, "availableReplicas": 3,
                    "conditions": [
                        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
                        {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"},
                    ],
                },
            })
        };
        assert_eq!(state("apps/v1", "Deployment", deployment(3, 3)).0, State::Ready);
        assert_eq!(state("apps/v1", "Deployment", deployment(1, 4)).0, State::Moving);
    }

    #[test]
    fn a_claim_without_its_volume_does_not_proceed_by_itself() {
        let claim = |phase: &str| state("v1", "PersistentVolumeClaim", json!({"status": {"phase": phase}}));
        assert_eq!(claim("Bound"), (State::Ready, "Bound".into()));
        assert_eq!(claim("Pending"), (State::Moving, "Pending".into()));
        assert_eq!(claim("Lost"), (State::Stuck, "Lost".into()));
    }

    #[test]
    fn without_conditions_the_numbers_decide() {
        let set = |ready: i64| json!({"spec": {"replicas": 2}, "status": {"readyReplicas": ready}});
        assert_eq!(state("apps/v1", "ReplicaSet", set(2)).0, State::Ready);
        assert_eq!(state("apps/v1", "ReplicaSet", set(1)).0, State::Moving);
    }

    #[test]
    fn a_pod_whose_node_is_not_ready_reports_the_node() {
        let pod = |reason: &str| {
            json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "False", "reason": reason}, {"type": "ContainersReady", "status": "True"},
            ]}})
        };
        assert_eq!(state("v1", "Pod", pod("")), (State::Stuck, "NodeNotReady".into()));
        assert_eq!(state("v1", "Pod", pod("ReadinessGatesNotReady")), (State::Moving, "NotReady".into()));
    }

    #[test]
    fn a_pod_reports_its_first_known_problem() {
        let waiting = |reason: &str| json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": reason}}}]}});
        let pod = |body: Value| state("v1", "Pod", body);
        assert_eq!(pod(waiting("ImagePullBackOff")), (State::Stuck, "ImagePullBackOff".into()));
        assert_eq!(pod(waiting("ContainerCreating")), (State::Moving, "Starting".into()));
        assert_eq!(
            pod(with(&json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]))),
            (State::Stuck, "Unschedulable".into())
        );
        assert_eq!(pod(with(&json!([{"type": "Ready", "status": "True"}]))).0, State::Ready);
        assert_eq!(
            pod(json!({"status": {"phase": "Failed", "reason": "Evicted"}})),
            (State::Failed, "Evicted".into())
        );
        assert_eq!(
            pod(
                json!({"status": {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 1}}}]}})
            ),
            (State::Stuck, "Error".into())
        );
    }
}

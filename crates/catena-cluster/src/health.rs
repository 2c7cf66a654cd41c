//! The health of an object of any kind: its state with the reason for it, from its status.

use catena_terminal::Tone;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::DynamicObject;
use serde::Serialize;
use serde_json::Value;

use super::pods;
use crate::{condition, conditions, created, deleted, last_write, list, number, protection, text};

/// The beginning of each version of our kinds.
const OURS: &str = "catena.dev/";
const CLAIM: (&str, &str) = ("v1", "PersistentVolumeClaim");
const DAEMON_SET: (&str, &str) = ("apps/v1", "DaemonSet");

/// The state in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum State {
    /// It serves as desired.
    Ready,
    /// It has succeeded.
    Done,
    /// It exists; its kind reports no more.
    Present,
    /// It is in progress.
    Moving,
    /// Its controller has not yet reported on its current spec.
    Unreported,
    /// It does not proceed by itself.
    Stuck,
    /// It has failed.
    Failed,
    /// It is being deleted.
    Terminating,
}

/// The state of an object, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// The state.
    pub state: State,
    /// One word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl State {
    /// Whether it needs no attention.
    #[must_use]
    pub fn is_healthy(self) -> bool {
        matches!(self, Self::Ready | Self::Done | Self::Present)
    }

    /// How it is shown.
    #[must_use]
    pub fn tone(self) -> Tone {
        match self {
            Self::Ready | Self::Done => Tone::Good,
            Self::Present => Tone::Plain,
            Self::Moving | Self::Terminating | Self::Unreported => Tone::Moving,
            Self::Stuck | Self::Failed => Tone::Bad,
        }
    }
}

impl Health {
    /// A state with its reason.
    #[must_use]
    pub fn new(state: State, reason: &str, message: impl Into<String>) -> Self {
        Self { state, reason: reason.to_owned(), message: message.into(), since: None }
    }

    /// A state with the words of a condition.
    #[must_use]
    pub fn said(state: State, condition: &Condition) -> Self {
        let since = Some(condition.last_transition_time.0).filter(|since| *since != Timestamp::default());
        Self::new(state, &condition.reason, condition.message.clone()).since(since)
    }

    /// With its beginning.
    #[must_use]
    pub fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }
}

/// The health of an object.
#[must_use]
pub fn health(object: &DynamicObject) -> Health {
    if let Some(since) = deleted(&object.metadata) {
        let report = protection::report(&object.metadata);
        let message = report["message"].as_str().unwrap_or_default();
        return Health::new(State::Terminating, "Terminating", message).since(Some(since));
    }
    let phase = text(object, "/status/phase").unwrap_or_default();
    match (types(object), phase) {
        (("v1", "Pod"), _) => return pods::health(object),
        (("v1", "Namespace"), "Active") => return Health::new(State::Ready, "Active", ""),
        (CLAIM, "Bound") => return Health::new(State::Ready, "Bound", ""),
        (CLAIM, "Lost") => return Health::new(State::Stuck, "Lost", "its volume no longer exists"),
        (CLAIM, phase) => return Health::new(State::Moving, phase, ""),
        _ => {}
    }
    let is_unready = object.data["status"]["readyToUse"] == false;
    behind(object)
        .or_else(|| ended(object))
        .or_else(|| (types(object) == ("batch/v1", "Job")).then(|| job(object)))
        .or_else(|| by_conditions(object))
        .or_else(|| by_numbers(object))
        .or_else(|| Some(Health::new(State::Stuck, "", error(object)?)))
        .or_else(|| is_unready.then(|| Health::new(State::Moving, "", "")))
        .unwrap_or_else(|| Health::new(State::Present, "", ""))
}

/// The API version and the kind of an object; empty if it does not say them.
fn types(object: &DynamicObject) -> (&str, &str) {
    object.types.as_ref().map_or(("", ""), |types| (&*types.api_version, &*types.kind))
}

/// A status that is about an older spec, unless the condition that decides is about the present one. Some kinds write the
/// generation as a text. The numbers of a workload that nobody has looked at are zeros.
fn behind(object: &DynamicObject) -> Option<Health> {
    let generation = object.metadata.generation?;
    let observed = object.data.pointer("/status/observedGeneration");
    let observed =
        observed.and_then(|observed| observed.as_i64().or_else(|| observed.as_str()?.parse().ok()));
    let decides = |found: &Condition| {
        found.type_ == "Ready" || (found.type_.as_str(), found.status.as_str()) == ("Stalled", "True")
    };
    let deciding = conditions(object).into_iter().filter(decides);
    let reported: Vec<i64> =
        observed.into_iter().chain(deciding.filter_map(|found| found.observed_generation)).collect();
    let (api_version, _) = types(object);
    let is_short = |(serving, wanted): (Option<i64>, i64)| serving.unwrap_or(0) < wanted;
    let lacks_pods = || api_version == "apps/v1" && replicas(object).is_some_and(is_short);
    let message = match reported.first() {
        Some(observed) if !reported.contains(&generation) => {
            format!("its status is for generation {observed}, but its spec has generation {generation}")
        }
        None if types(object) == DAEMON_SET || lacks_pods() => {
            "its status has no observedGeneration".to_owned()
        }
        _ => return None,
    };
    Some(Health::new(State::Unreported, "Behind", message).since(changed(object)))
}

/// The last change outside its status.
fn changed(object: &DynamicObject) -> Option<Timestamp> {
    last_write(&object.metadata, |entry| entry.subresource.as_deref() != Some("status"))
}

/// The end of an object, from our own conditions, those of Jobs, or those and the phases of other operators.
#[must_use]
pub fn ended(object: &DynamicObject) -> Option<Health> {
    let all = conditions(object);
    let is = |type_: &str, status: &str| {
        all.iter().find(|condition| condition.type_ == type_ && condition.status == status)
    };
    if let Some(done) = is("Succeeded", "True").or_else(|| is("Complete", "True")) {
        return Some(Health::said(State::Done, done));
    }
    if let Some(failed) = is("Succeeded", "False").or_else(|| is("Failed", "True")) {
        return Some(Health::said(State::Failed, failed));
    }
    let phase = text(object, "/status/phase").unwrap_or_default();
    let state = match phase.to_lowercase().as_str() {
        "succeeded" | "completed" | "complete" | "done" => State::Done,
        "failed" | "failedvalidation" | "partiallyfailed" | "error" => State::Failed,
        _ => {
            // A failed Workflow of Argo is completed, too, and a Rollout that serves.
            let completed = is("Completed", "True").filter(|_| number(object, "/spec/replicas").is_none())?;
            let has_failed = matches!(completed.reason.as_str(), "Failed" | "Error");
            return Some(Health::said(if has_failed { State::Failed } else { State::Done }, completed));
        }
    };
    let said = text(object, "/status/message").or_else(|| error(object)).unwrap_or_default();
    Some(Health::new(state, phase, said))
}

/// What went wrong, in the fields of other projects.
fn error(object: &DynamicObject) -> Option<&str> {
    let fields = ["error", "error/message", "failureReason", "validationErrors/0"];
    fields.iter().find_map(|field| text(object, &format!("/status/{field}")).filter(|said| !said.is_empty()))
}

/// A Job that has not ended. One that runs may have no condition.
fn job(job: &DynamicObject) -> Health {
    if job.data.pointer("/spec/suspend").is_none_or(|is| *is != true) {
        return Health::new(State::Moving, "Running", "").since(created(&job.metadata));
    }
    let since = condition(job, "Suspended").map(|found| found.last_transition_time.0);
    Health::new(State::Stuck, "Suspended", "spec.suspend is true").since(since)
}

/// Conditions in the order in which they decide: those of commands, then kstatus's, then Ready.
fn by_conditions(object: &DynamicObject) -> Option<Health> {
    let all = conditions(object);
    let find = |type_: &str| all.iter().find(|condition| condition.type_ == type_);
    let is = |type_: &str, status: &str| find(type_).filter(|condition| condition.status == status);
    // Our definitions say so of a new object. For another project, the word has a meaning of its own, unless the condition
    // has no time because its definition gives it, too.
    let is_pending = |condition: &Condition| {
        matches!(condition.reason.as_str(), "Pending" | "")
            && (types(object).0.starts_with(OURS) || condition.last_transition_time.0 == Timestamp::default())
    };
    if let Some(running) = is("Succeeded", "Unknown") {
        let is_unreported = running.reason == "Pending" && is_pending(running);
        return Some(Health::said(if is_unreported { State::Unreported } else { State::Moving }, running));
    }
    // Its pods may be well, and are not the ones that its spec asks for.
    let lags = || {
        replicas(object).is_some_and(|(_, wanted)| number(object, "/status/updatedReplicas") < Some(wanted))
    };
    let paused = is("Progressing", "Unknown").filter(|found| found.reason == "DeploymentPaused" && lags());
    if let Some(paused) = paused {
        return Some(Health { reason: "Paused".into(), ..Health::said(State::Stuck, paused) });
    }
    let late = is("Progressing", "False").filter(|late| late.reason == "ProgressDeadlineExceeded");
    let stalled = || ["Stalled", "ReplicaFailure"].iter().find_map(|type_| is(type_, "True"));
    if let Some(stuck) = late.or_else(stalled).or_else(|| is("NamesAccepted", "False")) {
        return Some(Health::said(State::Stuck, stuck));
    }
    if let Some(ready) = ["Ready", "Available", "Established"].iter().find_map(|type_| find(type_)) {
        let state = match ready.status.as_str() {
            "True" if lacks_replicas(object, &ready.type_) => {
                let progress = find("Progressing").unwrap_or(ready);
                if is_halted(object, &progress.reason) {
                    return Some(Health::said(State::Stuck, progress));
                }
                let moving = Health::said(State::Moving, progress);
                return Some(Health { reason: "Progressing".into(), ..moving });
            }
            "True" => State::Ready,
            "Unknown" if is_pending(ready) => State::Unreported,
            _ => State::Moving,
        };
        return Some(Health::said(state, ready));
    }
    if let Some(reconciling) = is("Reconciling", "True") {
        return Some(Health::said(State::Moving, reconciling));
    }
    // A command in progress has only the conditions of its earlier stages. On other kinds, such as those of the Gateway
    // API, Accepted is a final state.
    let is_bound = find("Bound").is_some();
    let last = ["Accepted", "Bound"].iter().find_map(|type_| find(type_))?;
    (is_bound || last.status != "True").then(|| Health::said(State::Moving, last))
}

/// Whether a Rollout of Argo waits for somebody. Some pauses have an end, and a paused Deployment is scaled nevertheless.
fn is_halted(rollout: &DynamicObject, reason: &str) -> bool {
    let step = number(rollout, "/status/currentStepIndex").unwrap_or_default();
    let duration = format!("/spec/strategy/canary/steps/{step}/pause/duration");
    let has_end = rollout.data.pointer(&duration).is_some()
        || number(rollout, "/spec/strategy/blueGreen/autoPromotionSeconds")
            .is_some_and(|seconds| seconds > 0);
    let is_paused_by_hand = rollout.data["spec"]["paused"] == true;
    reason == "RolloutAborted" || reason == "RolloutPaused" && (is_paused_by_hand || !has_end)
}

/// Whether an object that is ready by a condition counts fewer replicas than it should have. What is only available may still
/// have old ones, which serve while the new ones fail to start.
fn lacks_replicas(object: &DynamicObject, by: &str) -> bool {
    let Some((serving, wanted)) = replicas(object) else { return false };
    if by != "Available" {
        return serving.is_some_and(|serving| serving < wanted);
    }
    let counts = ["/status/replicas", "/status/updatedReplicas", "/status/availableReplicas"];
    let counts = counts.map(|pointer| number(object, pointer));
    counts.iter().any(Option::is_some) && counts.iter().any(|count| count.unwrap_or(0) != wanted)
}

fn by_numbers(object: &DynamicObject) -> Option<Health> {
    let (serving, wanted) =
        replicas(object).filter(|_| object.data.get("status").is_some_and(|status| !status.is_null()))?;
    let serving = serving.or_else(|| omits_zeros(object).then_some(0))?;
    // Its old pods may serve beside new ones that do not start.
    let is_rolling =
        types(object) == DAEMON_SET && text(object, "/spec/updateStrategy/type") == Some("RollingUpdate");
    if is_rolling && number(object, "/status/updatedNumberScheduled").unwrap_or(0) < wanted {
        return Some(Health::new(State::Moving, "Progressing", ""));
    }
    Some(Health::new(if serving >= wanted { State::Ready } else { State::Moving }, "", ""))
}

/// Whether a missing number is zero: on the kinds of Kubernetes. Others may report by fields of other names.
fn omits_zeros(object: &DynamicObject) -> bool {
    let (api_version, _) = types(object);
    api_version == "v1" || api_version.starts_with("apps/") || api_version.starts_with(OURS)
}

/// The numbers of serving replicas, if it counts them, and of desired ones.
#[must_use]
pub fn replicas(object: &DynamicObject) -> Option<(Option<i64>, i64)> {
    let first = |pointers: &[&str]| pointers.iter().find_map(|pointer| number(object, pointer));
    let wanted = first(&["/spec/replicas", "/status/desiredNumberScheduled"])?;
    Some((first(&["/status/active", "/status/readyReplicas", "/status/numberReady"]), wanted))
}

/// The numbers of serving and of desired replicas, or of the containers of a pod, as in kubectl.
#[must_use]
pub fn numbers(object: &DynamicObject) -> Option<String> {
    if let Some(containers) = object.data.pointer("/spec/containers").and_then(Value::as_array) {
        let statuses = list(object, "/status/containerStatuses");
        let ready = statuses.filter(|container| container["ready"] == true).count();
        return Some(format!("{ready}/{}", containers.len()));
    }
    let (serving, wanted) = replicas(object)?;
    Some(format!("{}/{wanted}", serving.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use catena_api::keys;
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
    fn the_conditions_of_a_command_may_be_in_an_annotation_but_not_those_of_others() {
        for (group, uid, expected) in [
            ("ops.example", "one", (State::Failed, "Late")),
            ("ops.example", "copy", (State::Moving, "Bound")),
            ("apps", "one", (State::Moving, "Bound")),
            ("catena.dev", "one", (State::Moving, "Bound")),
        ] {
            let record = json!({"uid": "one", "conditions": [{"type": "Succeeded", "status": "False", "reason": "Late"}]});
            let metadata = json!({"uid": uid, "annotations": {(keys::RUN): record.to_string()}});
            let bound = json!([{"type": "Bound", "status": "True", "reason": "Bound"}]);
            let (found, reason) = state(
                &format!("{group}/v1"),
                "Drain",
                json!({"metadata": metadata, "status": {"conditions": bound}}),
            );
            assert_eq!((found, &*reason), expected);
        }
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
            // K8up: the end is one condition, and how it ended its reason.
            (
                json!([{"type": "Completed", "status": "True", "reason": "Succeeded"}]),
                (State::Done, "Succeeded"),
            ),
            (json!([{"type": "Completed", "status": "True", "reason": "Failed"}]), (State::Failed, "Failed")),
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
        let of = |observed: Value, type_: &str, at: i64| {
            let condition = json!({"type": type_, "status": "True", "reason": "X", "observedGeneration": at});
            let status = json!({"observedGeneration": observed, "conditions": [condition]});
            state("cert-manager.io/v1", "Certificate", json!({"status": status})).0
        };
        assert_eq!(of(Value::Null, "Ready", 1), State::Unreported);
        assert_eq!(of(Value::Null, "Ready", 2), State::Ready);
        assert_eq!(of((-1).into(), "Ready", 2), State::Ready);
        assert_eq!(of((-1).into(), "Stalled", 2), State::Stuck);
        assert_eq!(of(2.into(), "Ready", 1), State::Ready, "its controller has seen the present one");
        assert_eq!(of(Value::Null, "Known", 1), State::Present, "another condition decides nothing");
    }

    #[test]
    fn a_workload_that_nobody_has_looked_at_is_unreported() {
        for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
            let of =
                |status: Value| state("apps/v1", kind, json!({"spec": {"replicas": 2}, "status": status})).0;
            assert_eq!(of(json!({})), State::Unreported);
            assert_eq!(of(json!({"replicas": 0})), State::Unreported);
            assert_eq!(of(json!({"replicas": 0, "observedGeneration": 2})), State::Moving);
        }
    }

    #[test]
    fn the_numbers_of_a_new_daemon_set_of_kubernetes_are_not_believed() {
        let of = |api_version: &str| {
            let status = json!({"desiredNumberScheduled": 0, "numberReady": 0});
            let metadata = json!({"name": "x", "generation": 1});
            let set = json!({"apiVersion": api_version, "kind": "DaemonSet", "metadata": metadata, "status": status});
            let health = health(&serde_json::from_value(set).unwrap());
            (health.state, health.message)
        };
        assert_eq!(of("apps/v1"), (State::Unreported, "its status has no observedGeneration".into()));
        assert_eq!(of("apps.kruise.io/v1alpha1").0, State::Ready);
    }

    #[test]
    fn a_generation_may_be_written_as_a_text() {
        let observed = |generation: &str| {
            let conditions = json!([{"type": "Available", "status": "True"}]);
            let status = json!({"observedGeneration": generation, "conditions": conditions});
            state("argoproj.io/v1alpha1", "Rollout", json!({"status": status})).0
        };
        assert_eq!(observed("1"), State::Unreported);
        assert_eq!(observed("2"), State::Ready);
        assert_eq!(observed("7d9f8c6b5"), State::Ready, "a hash, as of its first versions");
    }

    #[test]
    fn what_says_that_it_is_ready_is_compared_with_its_numbers() {
        let of = |type_: &str, numbers: &Value| {
            let mut status = numbers.clone();
            status["conditions"] = json!([
                {"type": type_, "status": "True"},
                {"type": "Completed", "status": "True"},
            ]);
            state("argoproj.io/v1alpha1", "Rollout", json!({"spec": {"replicas": 5}, "status": status}))
        };
        let all = json!({"replicas": 5, "updatedReplicas": 5, "availableReplicas": 5, "readyReplicas": 5});
        assert_eq!(of("Available", &all).0, State::Ready);
        assert_eq!(of("Ready", &all).0, State::Ready);
        let some = json!({"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3});
        assert_eq!(of("Available", &some), (State::Moving, "Progressing".into()));
        assert_eq!(of("Ready", &some), (State::Moving, "Progressing".into()));
        let old = json!({"replicas": 5, "updatedReplicas": 1, "availableReplicas": 5, "readyReplicas": 5});
        assert_eq!(of("Available", &old).0, State::Moving);
        assert_eq!(of("Available", &json!({})).0, State::Ready, "it counts none");
    }

    #[test]
    fn a_rollout_waits_for_somebody_only_if_it_was_aborted_or_pauses_for_an_unknown_time() {
        let of = |available: &str, status: &str, reason: &str, spec: Value| {
            let mut spec = spec;
            spec["replicas"] = 5.into();
            let body = json!({"spec": spec, "status": {
                "replicas": 5, "updatedReplicas": 1, "availableReplicas": 5, "readyReplicas": 4, "currentStepIndex": 1,
                "conditions": [
                    {"type": available, "status": "True"},
                    {"type": "Progressing", "status": status, "reason": reason},
                ],
            }});
            state("argoproj.io/v1alpha1", "Rollout", body).0
        };
        let steps = |pause: Value| {
            let steps = json!([{"setWeight": 20}, {"pause": pause}]);
            json!({"strategy": {"canary": {"steps": steps}}})
        };
        let paused = |spec| of("Available", "Unknown", "RolloutPaused", spec);
        assert_eq!(paused(steps(json!({}))), State::Stuck);
        assert_eq!(paused(steps(json!({"duration": "10m"}))), State::Moving);
        let mut by_hand = steps(json!({"duration": 600}));
        by_hand["paused"] = true.into();
        assert_eq!(paused(by_hand), State::Stuck);
        let promoted = |seconds: i64| json!({"strategy": {"blueGreen": {"autoPromotionSeconds": seconds}}});
        assert_eq!([0, 60].map(|seconds| paused(promoted(seconds))), [State::Stuck, State::Moving]);
        let aborted = of("Available", "False", "RolloutAborted", steps(json!({"duration": "10m"})));
        assert_eq!(aborted, State::Stuck);
        // To others, it means that nothing is to be done.
        for available in ["Available", "Ready"] {
            assert_eq!(of(available, "False", "AsExpected", json!({})), State::Moving);
        }
    }

    #[test]
    fn a_job_runs_until_it_ends_unless_it_is_suspended() {
        let job = |conditions: Value| state("batch/v1", "Job", with(&conditions));
        assert_eq!(job(json!([])), (State::Moving, "Running".into()));
        let resumed = json!([{"type": "Suspended", "status": "False"}]);
        assert_eq!(job(resumed), (State::Moving, "Running".into()));
        let suspended = state("batch/v1", "Job", json!({"spec": {"suspend": true}}));
        assert_eq!(suspended, (State::Stuck, "Suspended".into()));
        assert_eq!(job(json!([{"type": "Complete", "status": "True"}])).0, State::Done);
    }

    #[test]
    fn an_end_may_be_a_phase() {
        let phase = |phase: &str| {
            let object = json!({
                "apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": "x"},
                "status": {"phase": phase, "message": "no disk"},
            });
            ended(&serde_json::from_value(object).unwrap()).map(|health| (health.state, health.message))
        };
        assert_eq!(phase("Completed"), Some((State::Done, "no disk".into())));
        assert_eq!(phase("Failed"), Some((State::Failed, "no disk".into())));
        assert_eq!(phase("InProgress"), None);
    }

    #[test]
    fn a_backup_that_failed_says_so_by_its_phase_or_by_an_error() {
        for (api_version, status, expected) in [
            (
                "velero.io/v1",
                json!({"phase": "FailedValidation", "validationErrors": ["no place"]}),
                State::Failed,
            ),
            ("velero.io/v1", json!({"phase": "PartiallyFailed", "failureReason": "no place"}), State::Failed),
            ("postgresql.cnpg.io/v1", json!({"phase": "failed", "error": "no place"}), State::Failed),
            (
                "snapshot.storage.k8s.io/v1",
                json!({"readyToUse": false, "error": {"message": "no place"}}),
                State::Stuck,
            ),
        ] {
            let object = json!({"apiVersion": api_version, "kind": "Backup", "metadata": {"name": "x"}, "status": status});
            let health = health(&serde_json::from_value(object).unwrap());
            assert_eq!((health.state, &*health.message), (expected, "no place"), "{api_version}");
        }
    }

    #[test]
    fn a_snapshot_that_is_not_usable_yet_is_under_way() {
        let snapshot = |is: bool| {
            let status = json!({"status": {"readyToUse": is}});
            state("snapshot.storage.k8s.io/v1", "VolumeSnapshot", status).0
        };
        assert_eq!([true, false].map(snapshot), [State::Present, State::Moving]);
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
        // It is scaled also while it is paused.
        let mut paused = deployment(2, 2);
        paused["status"]["conditions"][1] =
            json!({"type": "Progressing", "status": "Unknown", "reason": "DeploymentPaused"});
        paused["spec"]["replicas"] = 2.into();
        assert_eq!(state("apps/v1", "Deployment", paused).0, State::Moving);
    }

    #[test]
    fn a_daemon_set_whose_old_pods_serve_is_not_finished() {
        let of = |strategy: &str, updated: Value| {
            let status = json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "numberReady": 3, "updatedNumberScheduled": updated});
            let body = json!({"spec": {"updateStrategy": {"type": strategy}}, "status": status});
            state("apps/v1", "DaemonSet", body).0
        };
        assert_eq!(of("RollingUpdate", 3.into()), State::Ready);
        assert_eq!(of("RollingUpdate", 1.into()), State::Moving);
        assert_eq!(of("RollingUpdate", Value::Null), State::Moving, "zero is left out");
        assert_eq!(of("OnDelete", 1.into()), State::Ready);
    }

    #[test]
    fn a_claim_without_its_volume_does_not_proceed_by_itself() {
        let claim = |phase: &str| state("v1", "PersistentVolumeClaim", json!({"status": {"phase": phase}}));
        assert_eq!(claim("Bound"), (State::Ready, "Bound".into()));
        assert_eq!(claim("Pending"), (State::Moving, "Pending".into()));
        assert_eq!(claim("Lost"), (State::Stuck, "Lost".into()));
    }

    #[test]
    fn a_namespace_and_a_definition_tell_whether_they_can_be_used() {
        let namespace = json!({"status": {"phase": "Active"}});
        assert_eq!(state("v1", "Namespace", namespace).0, State::Ready);
        for (status, expected) in [("True", State::Ready), ("False", State::Moving)] {
            let established =
                with(&json!([{"type": "Established", "status": status, "reason": "NotAccepted"}]));
            assert_eq!(state("apiextensions.k8s.io/v1", "CustomResourceDefinition", established).0, expected);
        }
    }

    #[test]
    fn without_conditions_the_numbers_decide() {
        let set = |ready: i64| json!({"spec": {"replicas": 2}, "status": {"observedGeneration": 2, "readyReplicas": ready}});
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
        // Neither its node nor a probe is at fault.
        let gated = "ReadinessGatesNotReady";
        assert_eq!(state("v1", "Pod", pod(gated)), (State::Moving, gated.into()));
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
        let ended = |code: i64, said: &str| json!({"name": "a", "state": {"terminated": {"reason": "Error", "exitCode": code, "message": said}}});
        for (status, message) in [
            (
                json!({"containerStatuses": [ended(0, "bye"), ended(1, "no space")]}),
                "exit code 1, and said: no space",
            ),
            (
                json!({"initContainerStatuses": [ended(2, "no db")], "containerStatuses": [ended(0, "")]}),
                "exit code 2, and said: no db",
            ),
            (
                json!({"containerStatuses": [{"name": "b", "state": {"waiting": {"reason": "ErrImagePull", "message": "no image"}}}, ended(1, "no space")]}),
                "no image",
            ),
            (
                json!({"reason": "Evicted", "message": "low on memory", "containerStatuses": [ended(137, "x")]}),
                "low on memory",
            ),
        ] {
            let mut body =
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "status": status});
            if body.pointer("/status/containerStatuses/0/state/waiting").is_none() {
                body["status"]["phase"] = "Failed".into();
            }
            assert_eq!(health(&serde_json::from_value(body).unwrap()).message, message);
        }
        // After a restart of the node, the init containers run again.
        let initialising = json!({"status": {
            "initContainerStatuses": [{"name": "migrate", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}}],
            "containerStatuses": [{"name": "main", "state": {"terminated": {"reason": "Unknown", "exitCode": 255}}}],
        }});
        assert_eq!(pod(initialising), (State::Stuck, "CrashLoopBackOff".into()));
        assert_eq!(pod(with(&json!([{"type": "Ready", "status": "True"}]))).0, State::Ready);
        assert_eq!(
            pod(json!({"status": {"phase": "Failed", "reason": "Evicted"}})),
            (State::Failed, "Evicted".into())
        );
        assert_eq!(
            pod(
                json!({"status": {"phase": "Running", "containerStatuses": [{"name": "a", "state": {"terminated": {"reason": "Error", "exitCode": 1}}}]}})
            ),
            (State::Stuck, "Error".into())
        );
    }
}

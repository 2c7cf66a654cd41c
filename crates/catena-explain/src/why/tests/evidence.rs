//! Nothing is claimed that was not seen: each claim is compared with the objects that show whether it is true.

use catena_cluster::Identity;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{WEB, scene::*};
use crate::why::{
    controllers::{Controllers, Installation, Verdict},
    facts::{Related, Surroundings, Warning},
    read::alone,
};

const ROLLOUT: &str = "argoproj.io/v1alpha1";

fn rollout(body: Value) -> DynamicObject {
    object(ROLLOUT, "Rollout", "web", Some(WEB), body)
}

/// A Rollout that calls itself available, with the numbers of its serving and wanted replicas.
fn available(serving: i64, wanted: i64) -> Value {
    let conditions = [condition("Available", "True", "AvailableReason", "")];
    json!({"spec": {"replicas": wanted}, "status": {"readyReplicas": serving, "conditions": conditions}})
}

fn below(owner: &str, mut pod: DynamicObject) -> DynamicObject {
    pod.metadata.owner_references.as_mut().unwrap()[0].uid = owner.into();
    pod
}

fn warned(about: &str, reason: &str, message: &str, count: i32) -> Surroundings {
    let (about, by) = (about.to_owned(), "an-operator".to_owned());
    let (reason, message) = (reason.to_owned(), message.to_owned());
    let at = THEN.parse().ok();
    Surroundings { warnings: vec![Warning { about, by, reason, message, count, at, since: at }], ..calm() }
}

#[test]
fn an_object_is_called_ready_only_if_as_many_pods_are() {
    let well = [deployment(ready()), set(ready())];
    let gone = ask_exactly(WEB, &well, &calm());
    assert_eq!((gone.well, gone.exit_code()), (false, 5));
    let expected = "BasicDeployment/web is not ready: BasicReplicaSet/web reports that all replicas serve (3), but 0 of its pods are ready (StatusContradictory";
    assert!(gone.sentence.starts_with(expected), "{}", gone.sentence);
    let two = [&well[..], &[serving("web-1"), serving("web-2")]].concat();
    let stale = ask_exactly(WEB, &two, &without("basic-replicaset-controller"));
    let stale = stale.root_cause.unwrap();
    let says = "it reports that all replicas serve (3), but 2 of its pods are ready";
    assert_eq!((&*stale.reason, &*stale.message), ("ControllerNotRunning", says));
    let crashing = waiting("web-3", "CrashLoopBackOff", "back-off");
    let pods = [serving("web-1"), serving("web-2"), crashing];
    let answer = ask(WEB, &[&well[..], &pods].concat(), &calm());
    assert_eq!((answer.well, answer.root_cause.unwrap().object.name.as_str()), (false, "web-3"));
}

#[test]
fn a_rollout_that_has_fewer_replicas_than_it_wants_is_not_called_ready() {
    let answer = ask("Rollout/web", &[object(ROLLOUT, "Rollout", "web", None, available(3, 5))], &calm());
    assert_eq!(
        (answer.well, answer.sentence.as_str()),
        (
            false,
            "Rollout/web reports that it is ready, and also that 3 of 5 replicas serve (StatusContradictory)."
        )
    );
    assert!(ask("Rollout/web", &[object(ROLLOUT, "Rollout", "web", None, available(5, 5))], &calm()).well);
}

#[test]
fn a_generation_that_is_given_as_a_text_is_compared() {
    let at = |observed: &str| {
        let mut body = available(5, 5);
        body["metadata"] = json!({"generation": 7});
        body["status"]["observedGeneration"] = observed.into();
        ask("Rollout/web", &[object(ROLLOUT, "Rollout", "web", None, body)], &calm())
    };
    assert!(at("7").well);
    assert_eq!(at("6").root_cause.unwrap().reason, "NotObserved");
    // Earlier versions gave a hash.
    assert!(at("5f7b9c").well);
}

#[test]
fn the_pod_that_a_status_names_is_blamed_also_below_an_object_that_calls_itself_available() {
    let body = not_ready("Progressing", "3 of 5", json!({"kind": "Pod", "name": "web-x"}));
    let pod = below("Rollout/web", waiting("web-x", "ImagePullBackOff", "not found"));
    let answer = ask(WEB, &[deployment(body), rollout(available(5, 5)), pod], &calm());
    assert_eq!(answer.root_cause.unwrap().reason, "ImagePullBackOff");
    let evidence: Vec<_> = answer.evidence.iter().map(|evidence| evidence.object.kind.as_str()).collect();
    assert_eq!(evidence, ["Pod", "Rollout", "BasicDeployment"]);
}

#[test]
fn the_blocker_that_a_status_names_is_followed_whatever_the_kind_and_wherever_it_is() {
    let blocked = json!({"status": {"blockedBy": {"apiVersion": "v1", "kind": "Pod", "name": "web-x", "reason": "Jammed"}}});
    let shop = || object("example.com/v1", "Shop", "web", None, blocked.clone());
    let about = |found: Vec<DynamicObject>| {
        let related = Related { found: found.into_iter().filter_map(alone).collect(), ..Related::default() };
        ask_exactly("Shop/web", &[shop()], &Surroundings { related, ..calm() })
    };
    let cause = about(vec![waiting("web-x", "ImagePullBackOff", "not found")]).root_cause.unwrap();
    assert_eq!((cause.object.to_string().as_str(), cause.reason.as_str()), ("Pod/web-x", "ImagePullBackOff"));
    // It may not be read, or is gone: it is quoted.
    let unread = about(vec![]);
    assert_eq!((unread.well, unread.root_cause.unwrap().reason.as_str()), (false, "Jammed"));
    // It serves by now, and the object does not say so.
    let stale = about(vec![serving("web-x")]).root_cause.unwrap();
    assert_eq!(stale.meaning, "reports that Pod/web-x blocks it");
}

#[test]
fn a_warning_is_quoted_also_about_an_object_that_has_a_child() {
    let issuing = json!({"status": {"conditions": [condition("Ready", "False", "DoesNotExist", "Issuing")]}});
    let certificate = object("cert-manager.io/v1", "Certificate", "tls", None, issuing);
    let request =
        object("cert-manager.io/v1", "CertificateRequest", "tls-1", Some("Certificate/tls"), json!({}));
    let objects = [certificate, request];
    let surroundings = warned("Certificate/tls", "RequestFailed", "the issuer says no", 7);
    let cause = ask("Certificate/tls", &objects, &surroundings).root_cause.unwrap();
    assert_eq!(cause.message, "Issuing\nWarning RequestFailed (x7, an-operator, 3m ago): the issuer says no");
    assert!(cause.advice.starts_with("follow the message"), "{}", cause.advice);
    let calm = ask("Certificate/tls", &objects, &calm()).root_cause.unwrap();
    assert_eq!(calm.advice, "wait; it reports no obstacle");
}

#[test]
fn words_that_only_another_project_knows_are_quoted() {
    let conditions = [
        condition("Synced", "False", "ComparisonError", "no such revision"),
        condition("Known", "True", "Yes", ""),
    ];
    let status = json!({"status": {"conditions": conditions, "phase": "Degraded"}});
    let answer = ask("Shop/web", &[object("example.com/v1", "Shop", "web", None, status)], &calm());
    assert_eq!(answer.sentence, "Shop/web is not ready (Degraded).");
    assert_eq!(answer.remarks, ["Shop/web: it reports Synced False: ComparisonError, no such revision"]);
    // A renewal fails while the present certificate is valid.
    let valid = json!({"status": {"conditions": [condition("Ready", "True", "Ready", "")]}});
    let certificate = [object("cert-manager.io/v1", "Certificate", "tls", None, valid)];
    let answer =
        ask("Certificate/tls", &certificate, &warned("Certificate/tls", "Failed", "the issuer says no", 1));
    assert_eq!(answer.remarks, ["Warning Failed (an-operator, 3m ago): the issuer says no"]);
}

#[test]
fn an_object_that_has_just_changed_is_not_blamed_on_its_controller() {
    let at = |time: &str| {
        let entry = json!({"manager": "kubectl", "time": time, "fieldsV1": {"f:spec": {}}});
        let body = json!({"metadata": {"generation": 2, "managedFields": [entry]}, "status": {"observedGeneration": 1}});
        ask("Shop/web", &[object("example.com/v1", "Shop", "web", None, body)], &calm())
            .root_cause
            .unwrap()
            .advice
    };
    assert_eq!(at("2026-01-01T00:09:58Z"), "ask again in some seconds");
    assert!(at(THEN).starts_with("check that the controller"));
}

#[test]
fn a_suspended_job_is_told_to_be_suspended() {
    let suspended = json!({
        "spec": {"suspend": true}, "status": {"conditions": [condition("Suspended", "True", "JobSuspended", "Job suspended")]},
    });
    let answer = ask("Job/train", &[object("batch/v1", "Job", "train", None, suspended)], &calm());
    assert_eq!(answer.sentence, "Job/train is suspended (Suspended for 3m).");
    let advice = answer.root_cause.unwrap().advice;
    assert!(advice.contains("kubectl -n shop patch job.batch/train"), "{advice}");
    let resumed = json!({"spec": {"suspend": false}, "status": {"conditions": [condition("Suspended", "False", "JobResumed", "")]}});
    let resumed = ask("Job/train", &[object("batch/v1", "Job", "train", None, resumed)], &calm());
    assert_eq!(resumed.root_cause.unwrap().reason, "Running");
}

#[test]
fn old_pods_that_a_finalizer_keeps_are_told_beside_those_that_serve() {
    let metadata = json!({"deletionTimestamp": THEN, "finalizers": ["example.com/drain"]});
    let old = object("v1", "Pod", "web-0", Some("BasicReplicaSet/web"), json!({"metadata": metadata}));
    let pods = [serving("web-1"), serving("web-2"), serving("web-3"), old];
    let answer = ask(WEB, &[&[deployment(ready()), set(ready())][..], &pods].concat(), &calm());
    assert!(answer.sentence.starts_with("BasicDeployment/web is ready"), "{}", answer.sentence);
    assert_eq!(
        answer.remarks,
        ["Pod/web-0 was deleted 3m ago, and the finalizer example.com/drain keeps it"]
    );
}

/// A sidecar ends after the container that failed, by a signal.
#[test]
fn the_container_that_failed_is_told_and_not_the_sidecar_that_was_ended_with_it() {
    let ended = |code: i64, said: &str| json!({"state": {"terminated": {"reason": "Error", "exitCode": code, "message": said}}});
    let mut pod = pod_of_two(&ended(143, "bye"), &ended(1, "no database"));
    pod.data["status"]["phase"] = "Failed".into();
    let cause = ask(WEB, &blocked_by_pod(pod, "PodFailed"), &calm()).root_cause.unwrap();
    assert_eq!(cause.message, "exit code 1, and said: no database");
    assert!(cause.advice.ends_with("logs web-x"), "{}", cause.advice);
}

/// A pod with these statuses of its init container and its container.
fn pod_of_two(init: &Value, main: &Value) -> DynamicObject {
    let status = |name: &str, state: &Value| {
        let mut status = state.clone();
        status["name"] = name.into();
        status
    };
    let mut pod = pod(
        "web-x",
        json!({
            "phase": "Running",
            "initContainerStatuses": [status("migrate", init)], "containerStatuses": [status("main", main)],
        }),
    );
    let limits = json!({"limits": {"memory": "64Mi"}});
    pod.data["spec"] = json!({
        "initContainers": [{"name": "migrate"}], "containers": [{"name": "main", "resources": limits}],
    });
    pod
}

#[test]
fn the_container_at_fault_and_the_limit_that_it_exceeds_are_named() {
    let back_off = |last: Value| {
        let waits = json!({"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"});
        json!({"state": {"waiting": waits}, "lastState": {"terminated": last}})
    };
    let ended = json!({"state": {"terminated": {"exitCode": 0}}});
    let cause = |init: &Value, main: &Value| {
        ask(WEB, &blocked_by_pod(pod_of_two(init, main), "CrashLoopBackOff"), &calm()).root_cause.unwrap()
    };
    let by_init = cause(&back_off(json!({"reason": "Error", "exitCode": 1})), &json!({"state": {}}));
    assert!(by_init.advice.contains("logs web-x --container migrate --previous"), "{}", by_init.advice);
    let killed = cause(&ended, &back_off(json!({"reason": "OOMKilled", "exitCode": 137})));
    assert_eq!(killed.meaning, "exceeded its memory limit of 64Mi");
    assert_eq!(
        (killed.reason.as_str(), killed.advice.as_str()),
        ("CrashLoopBackOff", "raise the memory limit, or reduce the memory usage")
    );
    // It exceeded its limit once, and now waits for something else, or ended otherwise.
    let mut pulls = back_off(json!({"reason": "OOMKilled", "exitCode": 137}));
    pulls["state"] = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
    assert_eq!(cause(&ended, &pulls).meaning, "cannot pull its image");
    pulls["state"] = json!({"terminated": {"reason": "Error", "exitCode": 1}});
    assert_eq!(cause(&ended, &pulls).meaning, "has a container that failed");
}

#[test]
fn a_controller_runs_only_if_one_of_its_pods_holds_the_lease() {
    let verdict =
        |seen: Vec<Installation>| Controllers { seen, unseen: None }.verdict("command-binder", now());
    let held_by_pod = |is: Option<bool>| {
        let mut seen = controller("command-binder", "2026-01-01T00:09:55Z");
        seen.lease.as_mut().unwrap().is_held_by_pod = is;
        seen
    };
    assert_eq!(verdict(vec![held_by_pod(Some(true))]), Verdict::Runs);
    // Who may not read pods sees only that somebody renews it.
    assert_eq!(verdict(vec![held_by_pod(None)]), Verdict::Runs);
    let Verdict::Down(down) = verdict(vec![held_by_pod(Some(false))]) else { panic!("it is no pod") };
    assert!(down.ends_with("is held by command-binder-abc, which is none of its pods"), "{}", down);
}

#[test]
fn a_deployment_that_only_has_the_labels_of_a_controller_does_not_run_it() {
    let dead = || controller("command-binder", "2026-01-01T00:04:00Z");
    let labelled = Installation { namespace: "tenant".into(), lease: None, pods: Some((1, 1)), ..dead() };
    let seen = Controllers::new(vec![labelled, dead()], None);
    assert!(matches!(seen.verdict("command-binder", now()), Verdict::Down(_)));
}

#[test]
fn the_missing_namespace_of_a_backup_is_told_instead_of_a_right_that_nobody_can_grant() {
    let message = "jobs.batch is forbidden: User \"system:serviceaccount:catena-system:backup-controller\" cannot create resource \"jobs\" in API group \"batch\" in the namespace \"vault\"";
    let report = json!({"uid": WEB, "state": "Blocked", "reason": "Forbidden", "message": message});
    let mut body = ready();
    body["metadata"] = json!({
        "deletionTimestamp": THEN, "finalizers": ["catena.dev/backup"],
        "annotations": {"catena.dev/backup-status": report.to_string()},
    });
    let held = [deployment(body)];
    let missing = vec![Identity::new("v1", "Namespace", None, "vault")];
    let surroundings = Surroundings { related: Related { missing, ..Related::default() }, ..calm() };
    let cause = ask(WEB, &held, &surroundings).root_cause.unwrap();
    assert_eq!(cause.reason, "NamespaceMissing");
    assert!(cause.advice.starts_with("create the namespace vault"), "{}", cause.advice);
    assert_eq!(ask(WEB, &held, &calm()).root_cause.unwrap().reason, "Forbidden");
}

#[test]
fn a_command_that_was_never_bound_is_not_said_to_have_been_bound() {
    let refused = |reason: &str| {
        let bound = json!({"status": {"conditions": [condition("Bound", "False", reason, "why")]}});
        let objects = [deployment(ready()), command("r1", false, bound)];
        ask("BasicDeploymentRestart/r1", &objects, &calm()).root_cause.unwrap()
    };
    let replaced = refused("TargetReplaced");
    assert_eq!(replaced.meaning, "is for another object than the one that has the name of its target now");
    assert!(refused("TargetNotFound").advice.contains("for a former target"), "only a new command helps");
    // Its own kind is meant, and not the one of a child.
    assert_eq!(refused("KindNotServed").meaning, "is for a kind that the cluster does not serve");
}

#[test]
fn a_bound_command_on_which_nobody_reports_is_not_called_under_way() {
    let bound = json!({"status": {"conditions": [condition("Bound", "True", "Bound", "")]}});
    let objects = [deployment(ready()), command("r1", true, bound)];
    let cause = ask("BasicDeploymentRestart/r1", &objects, &calm()).root_cause.unwrap();
    assert_eq!((cause.reason.as_str(), cause.is_progress), ("NotCarriedOut", false));
}

#[test]
fn a_message_of_a_megabyte_is_cut() {
    let message = "ä".repeat(500_000);
    let told = explained(WEB, &refused("Invalid", &message), &calm());
    assert!(told.len() < 20_000 && told.contains("… (1000000 bytes in all)"), "{} bytes", told.len());
}

#[test]
fn an_advice_names_the_group_of_a_kind_that_has_one() {
    let pending = json!({"metadata": {"deletionTimestamp": THEN, "finalizers": ["catena.dev/backup"]}});
    let job = object("batch.volcano.sh/v1alpha1", "Job", "train", None, pending);
    let advice = ask("Job/train", &[job], &calm()).root_cause.unwrap().advice;
    assert!(advice.contains("release job.batch.volcano.sh/train --reason"), "{advice}");
}

/// A container can print the words of any gatekeeper.
#[test]
fn the_output_of_a_container_is_no_refusal_of_a_write() {
    for words in
        ["json: unknown field \"colour\"", "User \"app\" cannot login", "admission webhook \"x\" denied"]
    {
        let last = json!({"reason": "Error", "exitCode": 1, "message": words});
        let crashes =
            json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": last}});
        let pod = pod_of_two(&json!({"state": {}}), &crashes);
        let cause = ask(WEB, &blocked_by_pod(pod, "CrashLoopBackOff"), &calm()).root_cause.unwrap();
        assert_eq!(cause.meaning, "has a container that exits again and again");
        assert!(cause.message.ends_with(words), "{}", cause.message);
    }
}

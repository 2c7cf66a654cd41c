//! Objects of other projects, of which only conditions and numbers are known.

use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::scene::*;

#[test]
fn an_accepted_gateway_and_a_kind_without_a_count_of_ready_replicas_are_well() {
    let accepted = json!({"status": {"conditions": [
        condition("Accepted", "True", "Accepted", ""), condition("Programmed", "True", "Programmed", ""),
    ]}});
    let gateway = object("gateway.networking.k8s.io/v1", "Gateway", "web", None, accepted);
    let pool = json!({"spec": {"replicas": 3}, "status": {"replicas": 3}});
    let pool = object("kafka.example.com/v1", "NodePool", "pool", None, pool);
    for (asked, object) in [("Gateway/web", gateway), ("NodePool/pool", pool)] {
        let answer = ask(asked, &[object], &calm());
        assert!(answer.well, "{}", answer.sentence);
    }
}

#[test]
fn a_daemon_set_without_a_node_and_what_is_scaled_to_zero_are_told_to_run_nothing() {
    let daemons = json!({"status": {"observedGeneration": 1, "desiredNumberScheduled": 0, "numberReady": 0}});
    let daemons = object("apps/v1", "DaemonSet", "agent", None, daemons);
    let idle = json!({"spec": {"replicas": 0}, "status": {"observedGeneration": 1, "replicas": 0}});
    let idle = object("apps/v1", "StatefulSet", "db", None, idle);
    for (asked, object, told) in
        [("DaemonSet/agent", daemons, "no node has what"), ("StatefulSet/db", idle, "spec.replicas is 0")]
    {
        let answer = ask(asked, &[object], &calm());
        assert!(answer.well && answer.remarks.iter().any(|remark| remark.contains(told)), "{answer:?}");
    }
}

#[test]
fn a_service_without_a_ready_endpoint_is_told() {
    let service = |spec: Value| object("v1", "Service", "web", None, json!({"spec": spec}));
    let slice = |endpoints: Value| {
        object(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            "web-x",
            Some("Service/web"),
            json!({"endpoints": endpoints}),
        )
    };
    let (selects, by_hand) = (json!({"selector": {"app": "web", "tier": "a"}}), json!({}));
    let ready = |is: Value| json!([{"conditions": {"ready": is}}, {"conditions": {"ready": false}}]);
    for (spec, endpoints, is_told) in [
        (&selects, json!([]), true),
        (&selects, Value::Null, true),
        (&selects, ready(json!(false)), true),
        // To its readers, what is not known is ready.
        (&selects, ready(Value::Null), false),
        (&selects, ready(json!(true)), false),
        (&by_hand, json!([]), false),
    ] {
        let unseen = ask("Service/web", &[service(spec.clone())], &calm()).remarks;
        assert_eq!(unseen, [""; 0], "nothing is claimed of what was not read");
        let told = ask("Service/web", &[service(spec.clone()), slice(endpoints)], &calm()).remarks;
        let command = "`kubectl -n shop get pods --selector app=web,tier=a`";
        assert_eq!(told.iter().any(|remark| remark.contains(command)), is_told, "{spec}: {told:?}");
    }
}

#[test]
fn nobody_is_told_to_wait_for_what_has_failed_for_a_reason_that_only_its_controller_knows() {
    let failed =
        json!({"status": {"conditions": [condition("Ready", "False", "InstallFailed", "timed out")]}});
    let release = object("helm.example.com/v2", "HelmRelease", "web", None, failed);
    let told = explained("HelmRelease/web", &[release], &calm());
    assert!(told.contains("timed out") && told.contains("follow the message"), "{told}");
    assert!(!told.contains("reports no obstacle"), "{told}");
}

/// Another project may mean something else by a word of ours.
#[test]
fn the_advice_for_our_kinds_is_not_given_for_the_same_word_of_another_project() {
    let reports = |conditions: Value| {
        object("bank.example.com/v1", "Account", "ada", None, json!({"status": {"conditions": conditions}}))
    };
    for reason in ["Forbidden", "NotUnique", "BackupFailed", "Invalid", "NotReady", "Unschedulable"] {
        let account = reports(json!([condition("Ready", "False", reason, "the account is overdrawn")]));
        let cause = ask("Account/ada", &[account], &calm()).root_cause.unwrap();
        assert_eq!((cause.reason.as_str(), cause.meaning.as_str()), (reason, "is not ready"));
        assert!(cause.advice.starts_with("follow the message"), "{reason}: {}", cause.advice);
    }
    for message in ["json: unknown field \"bases2\"", "User \"app\" cannot log in"] {
        let account = reports(json!([condition("Ready", "False", "BuildFailed", message)]));
        assert_eq!(ask("Account/ada", &[account], &calm()).root_cause.unwrap().meaning, "is not ready");
    }
    // The words of the API server are the same for everybody.
    let message =
        "pods \"ada\" is forbidden: exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2";
    let account = reports(json!([condition("Ready", "False", "Forbidden", message)]));
    let cause = ask("Account/ada", &[account], &calm()).root_cause.unwrap();
    assert!(cause.advice.starts_with("raise the quota"), "{}", cause.advice);
}

#[test]
fn pending_is_no_silence_on_the_kind_of_another_project() {
    for type_ in ["Ready", "Succeeded"] {
        let pending = json!({"status": {"conditions": [
            condition(type_, "Unknown", "Pending", "3 approvals are missing"),
        ]}});
        let release = object("pipes.example.com/v1", "Run", "r1", None, pending);
        let cause = ask("Run/r1", &[release], &calm()).root_cause.unwrap();
        assert_eq!(
            (cause.reason.as_str(), cause.message.as_str(), cause.meaning.as_str()),
            ("Pending", "3 approvals are missing", "is not ready"),
        );
    }
}

#[test]
fn an_object_is_no_command_because_its_own_controller_reports_that_it_is_bound() {
    let by = |manager: &str| {
        let entry = json!({"manager": manager, "subresource": "status", "fieldsV1": {"f:status": {}}});
        let status = json!({"conditions": [condition("Bound", "False", "NotFound", "no such Secret")]});
        let body = json!({"metadata": {"managedFields": [entry]}, "status": status});
        let binding = object("binding.example.com/v1", "SecretBinding", "db", None, body);
        ask("SecretBinding/db", &[binding], &calm()).root_cause.unwrap()
    };
    assert_eq!(by("binding-operator").meaning, "is not ready");
    assert_eq!(by("command-binder").meaning, "met a concurrent change");
}

/// Only the words of command-runner have a row.
#[test]
fn the_word_of_the_operator_that_carries_out_a_command_is_not_taken_for_ours() {
    let told = |is_recorded: bool| {
        let record = json!({"uid": "Drain/d1", "conditions": []}).to_string();
        let annotations = if is_recorded { json!({(catena_api::keys::RUN): record}) } else { json!({}) };
        let conditions = [
            condition("Bound", "True", "Bound", ""),
            condition("Succeeded", "Unknown", "Queued", "3 nodes come first"),
        ];
        let body = json!({"metadata": {"annotations": annotations}, "status": {"conditions": conditions}});
        let drain = object("ops.example.com/v1", "Drain", "d1", Some("BasicDeployment/web"), body);
        ask("Drain/d1", &[deployment(ready()), drain], &calm()).root_cause.unwrap().meaning
    };
    assert!(told(true).starts_with("waits for"));
    assert_eq!(told(false), "is in progress");
}

/// Flux has no other generation of an object that has failed ever since.
#[test]
fn a_condition_that_is_about_the_present_spec_is_quoted_and_one_about_a_former_is_not_believed() {
    let at = |status: &str, observed: i64| {
        let mut ready = condition("Ready", status, "BuildFailed", "no such path");
        ready["observedGeneration"] = observed.into();
        let status = json!({"observedGeneration": -1, "conditions": [ready]});
        let body = json!({"metadata": {"generation": 2}, "status": status});
        ask("Shop/web", &[object("example.com/v1", "Shop", "web", None, body)], &calm())
    };
    assert_eq!(at("False", 2).root_cause.unwrap().message, "no such path");
    assert_eq!(at("True", 1).root_cause.unwrap().reason, "NotObserved");
}

#[test]
fn a_pod_that_was_replaced_weeks_ago_is_not_blamed() {
    let unready = json!({
        "spec": {"replicas": 1}, "status": {"observedGeneration": 1, "replicas": 1, "readyReplicas": 0},
    });
    let objects = [
        object("apps/v1", "ReplicaSet", "web", None, unready),
        owned_pod("web-a", &json!({"phase": "Failed", "reason": "Evicted"})),
        owned_pod(
            "web-b",
            &json!({"phase": "Pending", "containerStatuses": [{
                "name": "main", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}},
            }]}),
        ),
    ];
    let told = explained("ReplicaSet/web", &objects, &calm());
    assert!(told.contains("Pod/web-b") && !told.contains("web-a"), "{told}");
}

/// The next try is what counts.
#[test]
fn a_try_that_failed_before_the_present_one_is_not_blamed() {
    let job = object("batch/v1", "Job", "dump", None, json!({"status": {"active": 1}}));
    let tried = |name: &str, created: &str, status: Value| {
        let body = json!({"metadata": {"creationTimestamp": created}, "status": status});
        object("v1", "Pod", name, Some("Job/dump"), body)
    };
    let failed = json!({"phase": "Failed", "conditions": [condition("Ready", "False", "PodFailed", "")]});
    let image = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
    let waits = json!({"phase": "Pending", "containerStatuses": [{"name": "main", "state": image}]});
    let first = || tried("dump-a", "2026-01-01T00:05:00Z", failed.clone());
    let second = tried("dump-b", "2026-01-01T00:08:00Z", waits.clone());
    let cause = |objects: &[DynamicObject]| ask("Job/dump", objects, &calm()).root_cause.unwrap().object.name;
    assert_eq!(cause(&[job.clone(), first(), second]), "dump-b");
    // It is not in the place of one that failed after it began.
    let beside = tried("dump-b", "2026-01-01T00:06:00Z", waits);
    assert_eq!(cause(&[job.clone(), first(), beside]), "dump-a");
    assert_eq!(cause(&[job, first()]), "dump-a");
}

/// A new object that serves may be one more. Of a Job, each pod is another try.
#[test]
fn one_that_failed_is_blamed_beside_a_later_one_that_serves_unless_these_are_tries() {
    let blamed = |api_version: &str, kind: &str| {
        let owner = format!("{kind}/db");
        let pod = |name: &str, created: &str, status: Value| {
            let body = json!({"metadata": {"creationTimestamp": created}, "status": status});
            object("v1", "Pod", name, Some(&owner), body)
        };
        let unready = condition("Ready", "False", "PodFailed", "");
        let failed = json!({"phase": "Failed", "conditions": [unready]});
        let serves = json!({"phase": "Running", "conditions": [condition("Ready", "True", "", "")]});
        let body = json!({"status": {"conditions": [condition("Ready", "False", "Degraded", "1 of 2")]}});
        let objects = [
            object(api_version, kind, "db", None, body),
            pod("db-1", "2026-01-01T00:05:00Z", failed),
            pod("db-2", "2026-01-01T00:08:00Z", serves),
        ];
        ask_exactly(&owner, &objects, &calm()).root_cause.unwrap().object.to_string()
    };
    assert_eq!(blamed("db.example.com/v1", "Cluster"), "Pod/db-1");
    assert_eq!(blamed("argoproj.io/v1alpha1", "Rollout"), "Rollout/db");
    assert_eq!(blamed("batch/v1", "Job"), "Job/db");
}

#[test]
fn a_schedule_is_well_while_its_job_runs() {
    let schedule = object("batch/v1", "CronJob", "dump", None, json!({"spec": {}}));
    let job = object("batch/v1", "Job", "dump-1", Some("CronJob/dump"), json!({"status": {"active": 1}}));
    let answer = ask("CronJob/dump", &[schedule, job], &calm());
    assert!(answer.well, "{}", answer.sentence);
}

fn owned_pod(name: &str, status: &Value) -> DynamicObject {
    object("v1", "Pod", name, Some("ReplicaSet/web"), json!({"status": status}))
}

#[test]
fn children_that_are_well_or_have_no_status_are_no_progress_of_their_owner() {
    let unready = |reason: &str| condition("Ready", "False", reason, "as it says");
    let refused = json!({"status": {"conditions": [unready("SecretSyncedError")]}});
    let external = object("external-secrets.io/v1", "ExternalSecret", "db", None, refused);
    let secret = object("v1", "Secret", "db", Some("ExternalSecret/db"), json!({}));
    let told = explained("ExternalSecret/db", &[external, secret], &calm());
    assert!(told.contains("follow the message"), "{told}");
    let conditions = [unready("ClusterIsNotReady")];
    let status =
        json!({"conditions": conditions, "phase": "Not enough disk space", "phaseReason": "db-1 is full"});
    let cluster = object(
        "postgresql.cnpg.io/v1",
        "Cluster",
        "db",
        Some("BasicDeployment/web"),
        json!({"status": status}),
    );
    let service =
        object("v1", "Service", "db-rw", Some("Cluster/db"), json!({"status": {"loadBalancer": {}}}));
    let mut pod = serving("db-1");
    pod.metadata.owner_references.as_mut().unwrap()[0].uid = "Cluster/db".into();
    let web = deployment(not_ready("Progressing", "0 of 3", Value::Null));
    let told = explained("BasicDeployment/web", &[web, cluster, service, pod], &calm());
    assert!(told.contains("follow the message"), "{told}");
    assert!(told.contains("Cluster/db: its status.phaseReason is db-1 is full"), "{told}");
}

#[test]
fn an_object_that_claims_to_be_ready_is_not_believed_while_no_pod_of_its_workload_is() {
    let ask = |pod: DynamicObject| {
        let database = json!({"status": {"conditions": [condition("Ready", "True", "Up", "")]}});
        let numbers = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2});
        let workload = json!({"spec": {"replicas": 2}, "status": numbers});
        let set = json!({"spec": {"replicas": 2}, "status": {"observedGeneration": 1, "replicas": 2}});
        let objects = [
            object("db.example.com/v1", "Database", "lies", None, database),
            object("apps/v1", "Deployment", "lies-pg", Some("Database/lies"), workload),
            object("apps/v1", "ReplicaSet", "web", Some("Deployment/lies-pg"), set),
            pod,
        ];
        ask_exactly("Database/lies", &objects, &calm())
    };
    let image = json!({"waiting": {"reason": "ImagePullBackOff", "message": "not found"}});
    let waits = json!({"phase": "Pending", "containerStatuses": [{"name": "main", "state": image}]});
    let answer = ask(owned_pod("web-a", &waits));
    assert_eq!((answer.well, answer.exit_code()), (false, 5));
    let says = "Database/lies is not ready: Pod/web-a cannot pull its image";
    assert!(answer.sentence.starts_with(says), "{}", answer.sentence);
    // Fewer than all may be enough for it.
    let serves = json!({"phase": "Running", "conditions": [condition("Ready", "True", "", "")]});
    assert!(ask(owned_pod("web-a", &serves)).well);
}

#[test]
fn what_is_unknown_for_a_time_is_quoted_and_not_only_waited_for() {
    let ask = |status: &str, since: &str, more: Value| {
        let mut ready = condition("Ready", status, "NodeUnreachable", "primary has not answered");
        ready["lastTransitionTime"] = since.into();
        let status = json!({"conditions": [ready, more]});
        let database = object("db.example.com/v1", "Database", "db", None, json!({"status": status}));
        ask_exactly("Database/db", &[database], &calm()).root_cause.unwrap()
    };
    let other = condition("Synced", "True", "Synced", "");
    for status in ["Unknown", "false"] {
        let cause = ask(status, THEN, other.clone());
        assert_eq!(cause.message, "primary has not answered");
        assert!(cause.advice.starts_with("follow the message"), "{status}: {}", cause.advice);
    }
    let reconciling = condition("Reconciling", "True", "Progressing", "");
    for (since, more) in [("2026-01-01T00:09:55Z", other), (THEN, reconciling)] {
        assert!(ask("Unknown", since, more).is_progress, "{since}");
    }
}

/// The exit code 0 means that it is known to need no attention.
#[test]
fn an_object_that_reports_to_be_unwell_is_not_well_in_whatever_words() {
    let ask = |status: Value| {
        let shop = object("example.com/v1", "Shop", "web", None, json!({"status": status}));
        ask_exactly("Shop/web", &[shop], &calm())
    };
    let says = |type_: &str, status: &str, reason: &str| json!({"conditions": [condition(type_, status, reason, "as it says")]});
    for (status, reason) in [
        (json!({"health": {"status": "Degraded", "message": "as it says"}}), "Degraded"),
        (json!({"state": "error", "message": "as it says"}), "error"),
        // The words about another state are about that.
        (
            json!({"health": {"status": "Degraded"}, "operationState": {"phase": "Failed", "message": "as it says"}}),
            "Failed",
        ),
        (json!({"ready": false, "message": "as it says"}), "NotReady"),
        (says("Healthy", "False", "QuorumLost"), "QuorumLost"),
        (says("ReconcileError", "True", "NoAccess"), "NoAccess"),
        (says("InvalidSpec", "True", ""), "NotReady"),
        (says("ScalingActive", "False", "FailedGetScale"), "FailedGetScale"),
    ] {
        let answer = ask(status);
        assert_eq!((answer.well, answer.exit_code()), (false, 5), "{reason}");
        let cause = answer.root_cause.unwrap();
        assert_eq!((cause.reason.as_str(), cause.message.as_str()), (reason, "as it says"));
        assert!(cause.advice.starts_with("follow the message"), "{reason}: {}", cause.advice);
    }
    for status in [
        json!({"health": {"status": "Healthy"}, "operationState": {"phase": "Succeeded", "message": "synced"}}),
        says("ScaledToZero", "False", "NotScaledToZero"),
        says("ScalingActive", "False", "ScalingDisabled"),
        says("Healthy", "True", "Healthy"),
        json!({"ready": true, "state": "active", "message": "as it says"}),
    ] {
        assert!(ask(status.clone()).well, "{status}");
    }
}

/// As cert-manager reports on the steps to a certificate.
#[test]
fn what_is_said_of_a_state_that_does_not_last_is_the_obstacle() {
    let reason = "Waiting for HTTP-01 challenge propagation: wrong status code '404', expected '200'";
    let of = |kind: &str, name: &str, owner: Option<&str>, status: Value| {
        object("acme.cert-manager.io/v1", kind, name, owner, json!({"status": status}))
    };
    let unready = json!({"conditions": [
        condition("Ready", "False", "DoesNotExist", "Issuing certificate as Secret does not exist"),
    ]});
    let challenge = |state: &str, reason: &str| {
        of(
            "Challenge",
            "web-1-1",
            Some("Order/web-1"),
            json!({"state": state, "reason": reason, "processing": true}),
        )
    };
    let objects = |challenge: DynamicObject| {
        [
            of("Certificate", "web", None, unready.clone()),
            of("Order", "web-1", Some("Certificate/web"), json!({"state": "pending"})),
            challenge,
        ]
    };
    let answer = ask_exactly("Certificate/web", &objects(challenge("pending", reason)), &calm());
    assert_eq!(answer.sentence, "Certificate/web is not ready: Challenge/web-1-1 is not ready (pending).");
    let cause = answer.root_cause.unwrap();
    assert!(cause.message == reason && cause.advice.starts_with("follow the message"), "{cause:?}");
    assert_eq!(answer.remarks, ["Challenge/web-1-1: its status.state is pending"; 0]);
    let alone = ask_exactly("Challenge/web-1-1", &[challenge("pending", reason)], &calm());
    assert_eq!((alone.well, alone.exit_code()), (false, 5));
    // Nothing is made of a state without a word, nor of one that lasts.
    for done in [challenge("pending", ""), challenge("valid", "Successfully authorized domain")] {
        let answer = ask_exactly("Certificate/web", &objects(done), &calm());
        assert_eq!(answer.root_cause.unwrap().object.kind, "Certificate");
    }
    let valid = ask_exactly("Challenge/web-1-1", &[challenge("valid", "Successfully authorized")], &calm());
    assert!(
        valid.well && valid.remarks.join("; ").contains("its status.reason is Successfully"),
        "{valid:?}"
    );
}

#[test]
fn who_claims_to_be_ready_with_too_few_replicas_is_told_both() {
    let ask = |more: Value| {
        let conditions = json!([condition("Ready", "True", "Up", ""), more]);
        let status = json!({"readyReplicas": 1, "conditions": conditions});
        let body = json!({"spec": {"replicas": 3}, "status": status});
        ask_exactly("Database/db", &[object("db.example.com/v1", "Database", "db", None, body)], &calm())
    };
    let answer = ask(Value::Null);
    let says =
        "Database/db reports that it is ready, and also that 1 of 3 replicas serve (StatusContradictory).";
    assert_eq!(answer.sentence, says);
    assert!(answer.root_cause.unwrap().advice.starts_with("ask again in some seconds"));
    // It says what it is doing.
    let answer = ask(condition("Progressing", "True", "ScalingUp", "2 are starting"));
    assert_eq!(answer.root_cause.unwrap().message, "2 are starting");
}

/// In the words of the Job controller.
#[test]
fn a_job_that_has_failed_is_to_be_created_again() {
    for (reason, message, says) in [
        (
            "DeadlineExceeded",
            "Job was active longer than specified deadline",
            "its spec.activeDeadlineSeconds",
        ),
        (
            "BackoffLimitExceeded",
            "Job has reached the specified backoff limit",
            "its spec.backoffLimit allows",
        ),
        (
            "PodFailurePolicy",
            "Container main for pod shop/late-x failed with exit code 42 matching FailJob rule at index 0",
            "its spec.podFailurePolicy gives up after such a failure of a pod",
        ),
    ] {
        let failed = json!({"status": {"conditions": [condition("Failed", "True", reason, message)]}});
        let job = object("batch/v1", "Job", "late", None, failed);
        let cause = ask("Job/late", &[job], &calm()).root_cause.unwrap();
        assert!(
            cause.meaning.starts_with("has failed, because") && cause.meaning.ends_with(says),
            "{cause:?}"
        );
        assert!(cause.advice.contains("then create the Job again"), "{}", cause.advice);
        assert_eq!(cause.message, message);
    }
}

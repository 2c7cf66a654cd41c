//! The sentence and the evidence for each cause, as a person reads them.

mod commands;
mod contents;
mod controllers;
mod deletions;
mod evidence;
mod foreign_kinds;
mod installations;
mod leases;
mod notes;
mod placement;
mod pods;
mod progress;
mod reasons;
mod requests;
mod scene;
mod scenes;
mod troubles;
mod volumes;
mod warnings;
mod worlds;

use catena_cluster::{Gap, Identity, protection::ProtectedKinds};
use kube::core::{DynamicObject, TypeMeta};
use serde_json::{Value, json};

use super::{
    controllers::Controllers as OurControllers,
    facts::{Surroundings, Warning},
};
use scene::*;

const WEB: &str = "BasicDeployment/web";

#[test]
fn a_ready_object_is_reported_as_ready() {
    let objects = [deployment(ready()), set(ready())];
    insta::assert_snapshot!(explained(WEB, &objects, &calm()), @"BasicDeployment/web is ready: 3/3 serve.");
}

#[test]
fn an_object_whose_dependents_could_not_be_read_is_not_called_well() {
    let gap = Gap { what: "pods".into(), why: "no permission".into() };
    let blind =
        || Surroundings { gaps: vec![gap.clone()], hides_dependents: true, is_incomplete: true, ..calm() };
    let silent = [object("example.com/v1", "Shop", "web", None, json!({}))];
    let answer = ask("Shop/web", &silent, &blind());
    assert_eq!((answer.well, answer.exit_code()), (false, 1));
    insta::assert_snapshot!(explained("Shop/web", &silent, &blind()), @r"
    Shop/web exists, but its dependents could not all be read: whether it is well is unknown.

    not read: pods (no permission)
    ");
    let answer = ask("Shop/web", &silent, &Surroundings { hides_dependents: false, ..blind() });
    assert_eq!((answer.well, answer.exit_code()), (true, 0));
    let only_reports = ask(WEB, &[deployment(ready()), set(ready())], &blind());
    assert_eq!((only_reports.well, only_reports.exit_code()), (false, 1));
    let says =
        "BasicDeployment/web reports that it is ready: 3/3 serve, but its dependents could not all be read";
    assert!(only_reports.sentence.starts_with(says), "{}", only_reports.sentence);
    let pods = ["web-1", "web-2", "web-3"].map(serving);
    let confirmed = ask(WEB, &[&[deployment(ready()), set(ready())][..], &pods].concat(), &blind());
    assert_eq!((confirmed.well, confirmed.exit_code()), (true, 0));
    let answer = ask(WEB, &refused("Invalid", "no image"), &blind());
    assert_eq!((answer.well, answer.exit_code()), (false, 5));
}

#[test]
fn a_rollback_is_mentioned_while_the_object_is_ready() {
    let mut body = ready();
    let held = condition(
        "RolledBack",
        "True",
        "Rollback",
        "revision 1 stays until the spec or the template changes",
    );
    body["status"]["conditions"].as_array_mut().unwrap().push(held);
    insta::assert_snapshot!(explained(WEB, &[deployment(body), set(ready())], &calm()), @r"
    BasicDeployment/web is ready: 3/3 serve.

    Note: it was rolled back: revision 1 stays until the spec or the template changes.
    ");
}

#[test]
fn after_a_rollback_to_a_bad_revision_the_spec_is_not_to_blame() {
    let pod = waiting("web-x", "ImagePullBackOff", "Back-off pulling image \"missing:1\"");
    let mut objects = blocked_by_pod(pod, "ImagePullBackOff");
    let held = condition(
        "RolledBack",
        "True",
        "Rollback",
        "revision 1 stays until the spec or the template changes",
    );
    objects[0].data["status"]["conditions"].as_array_mut().unwrap().push(held);
    insta::assert_snapshot!(explained(WEB, &objects, &calm()));
}

#[test]
fn an_image_that_cannot_be_pulled() {
    let pod = waiting("web-x", "ImagePullBackOff", "Back-off pulling image \"missing:1\"");
    insta::assert_snapshot!(explained(WEB, &blocked_by_pod(pod, "ImagePullBackOff"), &calm()));
}

#[test]
fn a_container_that_crashes_again_and_again() {
    let pod = waiting("web-x", "CrashLoopBackOff", "back-off 2m40s restarting failed container=main");
    insta::assert_snapshot!(explained(WEB, &blocked_by_pod(pod, "CrashLoopBackOff"), &calm()));
}

#[test]
fn a_pod_that_fits_on_no_node() {
    let status = json!({"phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable", "0/3 nodes are available: 3 Insufficient cpu.")]});
    insta::assert_snapshot!(explained(WEB, &blocked_by_pod(pod("web-x", status), "Unschedulable"), &calm()));
}

#[test]
fn an_image_that_runs_as_root() {
    let message = "container has runAsNonRoot and image will run as root";
    let pod = waiting("web-x", "CreateContainerConfigError", message);
    insta::assert_snapshot!(explained(WEB, &blocked_by_pod(pod, "CreateContainerConfigError"), &calm()));
}

#[test]
fn a_job_whose_pod_cannot_start() {
    let job = object(
        "batch/v1",
        "Job",
        "dump",
        None,
        json!({"spec": {"backoffLimit": 2}, "status": {"active": 1}}),
    );
    let mut pod = waiting("dump-x", "ErrImagePull", "not found");
    pod.metadata.owner_references.as_mut().unwrap()[0].uid = "Job/dump".into();
    let cause = ask("Job/dump", &[job.clone(), pod], &calm()).root_cause.unwrap();
    let advice = "correct the image or the pull secret in the pod template of Job/dump";
    assert_eq!((&*cause.reason, &*cause.advice), ("ErrImagePull", advice));
    assert_eq!(ask("Job/dump", &[job], &calm()).root_cause.unwrap().reason, "Running");
}

#[test]
fn an_object_without_a_status_is_judged_by_its_dependents() {
    let cron = object("batch/v1", "CronJob", "dump", None, json!({"spec": {}}));
    let job = object("batch/v1", "Job", "dump-1", Some("CronJob/dump"), json!({"status": {"active": 1}}));
    let mut pod = waiting("dump-1-x", "ImagePullBackOff", "not found");
    pod.metadata.owner_references.as_mut().unwrap()[0].uid = "Job/dump-1".into();
    let answer = ask("CronJob/dump", &[cron.clone(), job, pod], &calm());
    assert_eq!((answer.well, answer.root_cause.unwrap().object.kind.as_str()), (false, "Pod"));
    // One that runs is followed to an obstacle, and is no news otherwise.
    let running =
        || object("batch/v1", "Job", "dump-1", Some("CronJob/dump"), json!({"status": {"active": 1}}));
    let mut starting = waiting("dump-1-x", "ContainerCreating", "");
    starting.metadata.owner_references.as_mut().unwrap()[0].uid = "Job/dump-1".into();
    let above = object("example.com/v1", "Shop", "web", None, json!({}));
    let owned = object("batch/v1", "CronJob", "dump", Some("Shop/web"), json!({"spec": {}}));
    let told = |asked: &str, objects: &[DynamicObject], about: &str, reason: &str, message: &str| {
        let (about, reason, message) = (about.into(), reason.into(), message.into());
        let warnings = vec![Warning { about, reason, message, at: THEN.parse().ok(), ..Warning::default() }];
        ask_exactly(asked, objects, &Surroundings { warnings, ..calm() })
    };
    let objects = [above, owned, running(), starting];
    for asked in ["CronJob/dump", "Shop/web"] {
        assert!(told(asked, &objects, "Pod/other", "FailedMount", "").well, "{asked}");
        let mount = told(asked, &objects, "Pod/dump-1-x", "FailedMount", "no such secret");
        assert_eq!(mount.root_cause.unwrap().reason, "FailedMount", "{asked}");
    }
    let quota = "pods \"dump-1-x\" is forbidden: exceeded quota: small, requested: pods=1";
    let refused = told("CronJob/dump", &[cron.clone(), running()], "Job/dump-1", "FailedCreate", quota);
    assert_eq!(refused.root_cause.unwrap().meaning, "is refused by an exhausted ResourceQuota (small)");
    // What was refused before is no news once a pod runs, whether it is ready or not.
    let unready =
        [condition("Ready", "False", "ContainersNotReady", "containers with unready status: [helper]")];
    let mut half_done = self::pod("dump-1-x", json!({"phase": "Running", "conditions": unready}));
    half_done.metadata.owner_references.as_mut().unwrap()[0].uid = "Job/dump-1".into();
    let objects = [cron.clone(), running(), half_done];
    assert!(told("CronJob/dump", &objects, "Job/dump-1", "FailedCreate", quota).well);
    // A finished one no longer counts.
    let conditions = [condition("Failed", "True", "BackoffLimitExceeded", "")];
    let failed = json!({"status": {"conditions": conditions}});
    let failed = object("batch/v1", "Job", "dump-1", Some("CronJob/dump"), failed);
    assert!(ask("CronJob/dump", &[cron, failed], &calm()).well);
}

#[test]
fn a_target_reference_alone_does_not_make_a_command() {
    let body = json!({"spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}});
    let scaler = object("autoscaling.k8s.io/v1", "VerticalPodAutoscaler", "web", None, body);
    assert!(ask("VerticalPodAutoscaler/web", &[scaler], &calm()).well);
}

#[test]
fn a_pod_whose_readiness_probe_fails() {
    let status = json!({
        "phase": "Running", "conditions": [condition("Ready", "False", "ContainersNotReady", "containers with unready status: [main]")],
    });
    let mut surroundings = calm();
    surroundings.warnings.push(Warning {
        about: "Pod/web-x".into(),
        by: "kubelet".into(),
        reason: "Unhealthy".into(),
        message: "Readiness probe failed: HTTP 503".into(),
        at: None,
        ..Warning::default()
    });
    insta::assert_snapshot!(explained(WEB, &blocked_by_pod(pod("web-x", status), "NotReady"), &surroundings));
}

#[test]
fn a_blocker_that_is_gone_is_named_as_it_was_reported() {
    let body = || {
        not_ready("Progressing", "2 of 3", blocker("Pod", "web-x", "Evicted", "The node was low on memory"))
    };
    insta::assert_snapshot!(ask(WEB, &[deployment(body()), set(body())], &calm()).sentence);
}

#[test]
fn a_pod_that_was_fixed_meanwhile_is_not_blamed() {
    let objects = blocked_by_pod(serving("web-x"), "ImagePullBackOff");
    let answer = ask(WEB, &objects, &calm());
    let cause = answer.root_cause.unwrap();
    assert_eq!((cause.object.kind.as_str(), cause.reason.as_str()), ("BasicReplicaSet", "Progressing"));
}

#[test]
fn a_template_that_does_not_exist() {
    let message = "spec.template: there is no template \"lost\"; use one of those configured (default)";
    insta::assert_snapshot!(explained(WEB, &refused("TemplateNotFound", message), &calm()));
}

#[test]
fn a_child_that_is_refused_is_followed_to_the_child() {
    let message = "Pod \"web-x\" is rejected: spec.containers[0].image: Required value";
    let body = || not_ready("Invalid", message, blocker("BasicReplicaSet", "web", "Invalid", message));
    insta::assert_snapshot!(explained(WEB, &[deployment(body()), set(body())], &calm()));
}

#[test]
fn gatekeepers_are_distinguished_by_the_message_of_the_server() {
    let said = |message: &str| ask(WEB, &refused("Forbidden", message), &calm()).sentence;
    let sentences = [
        "pods \"web-x\" is forbidden: exceeded quota: two-pods, requested: pods=1, used: pods=2, limited: pods=2",
        "pods \"web-x\" is forbidden: failed quota: limits: must specify limits.cpu for: main",
        "admission webhook \"images.example.com\" denied the request: only images of registry.example.com",
        "failed calling webhook \"images.example.com\": connection refused",
        "conversion webhook for shops.example/v2, Kind=Shop failed: Post \"https://shops\": connection refused",
        "pods \"web-x\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'b' denied request: no latest",
        "pods \"web-x\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false",
        "pods is forbidden: User \"system:serviceaccount:catena-system:x\" cannot create resource \"pods\" in API group \"\"",
        "unable to create new content in namespace shop because it is being terminated",
        "pods \"web-x\" is forbidden: error looking up service account shop/web: serviceaccount \"web\" not found",
        "pods \"web-x\" is forbidden: [minimum memory usage per Container is 1Gi, but request is 16Mi]",
        "pods \"web-x\" is forbidden: no PriorityClass with name high was found",
        "pods \"web-x\" is forbidden: pod rejected: RuntimeClass \"gvisor\" not found",
        "create not allowed while custom resource definition is terminating",
        "something else",
    ]
    .map(said)
    .join("\n");
    insta::assert_snapshot!(sentences);
}

#[test]
fn a_controller_that_is_not_running() {
    let silent = || {
        json!({"spec": {"replicas": 3}, "status": {"conditions": [
            {"type": "Ready", "status": "Unknown", "reason": "Pending", "message": "the controller has not reported yet", "lastTransitionTime": "1970-01-01T00:00:00Z"},
        ]}})
    };
    let objects = [deployment(silent())];
    insta::assert_snapshot!("lease", explained(WEB, &objects, &without("basic-deployment-controller")));
    let mut nothing = calm();
    nothing.controllers.seen.clear();
    insta::assert_snapshot!("not_installed", ask(WEB, &objects, &nothing).sentence);
    let installs = "helm upgrade --install basic-deployment-controller charts/basic-deployment-controller ";
    let advises = |surroundings: &Surroundings| ask(WEB, &objects, surroundings).root_cause.unwrap().advice;
    assert!(advises(&nothing).contains(installs), "{}", advises(&nothing));
    // A chart leaves the Lease of its controller behind.
    let mut uninstalled = without("basic-deployment-controller");
    assert!(advises(&uninstalled).starts_with("see why: kubectl catena why"), "{}", advises(&uninstalled));
    uninstalled.controllers.seen.iter_mut().for_each(|seen| seen.pods = None);
    assert!(advises(&uninstalled).contains(installs), "{}", advises(&uninstalled));
    let mut scaled = calm();
    scaled.controllers.seen[0].pods = Some((0, 0));
    insta::assert_snapshot!("scaled_to_0", ask(WEB, &objects, &scaled).sentence);
    let command =
        "let it run: kubectl -n catena-system scale deployment/shop-basic-deployment-controller --replicas=1";
    assert_eq!(advises(&scaled), command);
    let unseen = Surroundings {
        controllers: OurControllers { seen: Vec::new(), unseen: Some("no permission".into()) },
        ..Surroundings::default()
    };
    insta::assert_snapshot!("unseen", ask(WEB, &objects, &unseen).sentence);
    insta::assert_snapshot!("it_runs", ask(WEB, &objects, &calm()).sentence);
}

#[test]
fn a_controller_further_down_that_is_not_running() {
    let mut child = set(ready());
    child.metadata.generation = Some(2);
    let objects = [deployment(not_ready("Progressing", "2 of 3 replicas are serving", Value::Null)), child];
    insta::assert_snapshot!(explained(WEB, &objects, &without("basic-replicaset-controller")));
}

#[test]
fn an_object_is_not_called_well_while_its_controller_is_not_running() {
    let objects = [deployment(ready()), set(ready())];
    let answer = ask(WEB, &objects, &without("basic-replicaset-controller"));
    assert_eq!((answer.well, answer.exit_code()), (false, 1));
    insta::assert_snapshot!(explained(WEB, &objects, &without("basic-replicaset-controller")));
}

#[test]
fn an_object_held_by_a_finalizer() {
    let metadata = json!({
        "deletionTimestamp": THEN, "finalizers": ["example.com/cleanup"],
        "managedFields": [{"manager": "example-operator", "fieldsV1": {"f:metadata": {"f:finalizers": {"v:\"example.com/cleanup\"": {}}}}}],
    });
    let mut body = ready();
    body["metadata"] = metadata;
    insta::assert_snapshot!(explained(WEB, &[deployment(body)], &calm()));
}

#[test]
fn an_object_held_for_its_backup() {
    let status = json!({"uid": "BasicDeployment/web", "state": "Failed", "attempt": 2, "backup": "Job backups/web-2", "since": THEN, "reason": "BackupFailed", "message": "the backup failed; the next attempt is due at 00:12"});
    let mut body = ready();
    body["metadata"] = json!({
        "deletionTimestamp": THEN, "finalizers": ["catena.dev/backup"],
        "annotations": {"catena.dev/backup-status": status.to_string()},
    });
    let objects = [deployment(body)];
    insta::assert_snapshot!("held_for_backup", explained(WEB, &objects, &calm()));
    insta::assert_snapshot!(
        "held_without_controller",
        ask(WEB, &objects, &without("backup-controller")).sentence
    );
    let entries = |kinds: &[&str]| {
        let kinds = kinds.iter().map(|kind| ("catena.dev".to_owned(), (*kind).to_owned()));
        let protected = ProtectedKinds { current: kinds.collect(), ..ProtectedKinds::default() };
        Surroundings { protected: Some(protected), ..calm() }
    };
    let with_entry = ask(WEB, &objects, &entries(&["BasicDeployment"]));
    assert_eq!(with_entry.root_cause.unwrap().reason, "BackupFailed");
    insta::assert_snapshot!("held_without_entry", explained(WEB, &objects, &entries(&[])));
}

#[test]
fn a_parent_that_waits_for_its_dependents() {
    let mut parent = ready();
    parent["metadata"] = json!({"deletionTimestamp": THEN, "finalizers": ["foregroundDeletion"]});
    let mut child = ready();
    child["metadata"] = json!({"deletionTimestamp": THEN, "finalizers": ["example.com/cleanup"]});
    insta::assert_snapshot!(explained(WEB, &[deployment(parent), set(child)], &calm()));
}

#[test]
fn a_pod_whose_node_is_gone() {
    let body =
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:05:30Z", "deletionGracePeriodSeconds": 30}});
    let pod = object("v1", "Pod", "web-x", None, body);
    insta::assert_snapshot!(ask("Pod/web-x", &[pod], &calm()).sentence);
}

#[test]
fn a_paused_rollout() {
    let message = "2 of 3 replicas are serving; spec.paused is true, so that nothing but the replicas of the child is changed";
    insta::assert_snapshot!(
        ask(WEB, &[deployment(not_ready("Paused", message, Value::Null)), set(ready())], &calm()).sentence
    );
}

#[test]
fn commands_in_every_state() {
    let bound = || condition("Bound", "True", "Bound", "");
    let status = |conditions: Vec<Value>| json!({"status": {"conditions": conditions}});
    let running =
        || status(vec![bound(), condition("Succeeded", "Unknown", "Restarting", "1 of 3 replicas are new")]);
    let queued = || status(vec![bound(), condition("Succeeded", "Unknown", "Queued", "")]);
    let said = |name: &str, objects: &[DynamicObject], surroundings: &Surroundings| {
        explained(&format!("BasicDeploymentRestart/{name}"), objects, surroundings)
    };
    let well = || deployment(ready());

    let failed = status(vec![
        bound(),
        condition("Succeeded", "False", "DeadlineExceeded", "1 of 3 replicas were new"),
    ]);
    insta::assert_snapshot!("command_failed", said("r1", &[well(), command("r1", true, failed)], &calm()));
    let refused =
        status(vec![bound(), condition("Succeeded", "False", "RevisionNotFound", "there is no revision 7")]);
    insta::assert_snapshot!("command_refused", said("r1", &[well(), command("r1", true, refused)], &calm()));
    insta::assert_snapshot!(
        "command_under_way",
        said("r1", &[well(), command("r1", true, running())], &calm())
    );
    let both = [well(), command("r1", true, running()), command("r2", true, queued())];
    insta::assert_snapshot!("command_queued", said("r2", &both, &calm()));
    let mut objects = blocked_by_pod(waiting("web-x", "ErrImagePull", "not found"), "ErrImagePull");
    objects.push(command("r1", true, running()));
    insta::assert_snapshot!("command_of_a_blocked_target", said("r1", &objects, &calm()));
    let waits = status(vec![condition("Bound", "False", "TargetForbidden", "you may not restart it")]);
    insta::assert_snapshot!("command_not_bound", said("r1", &[well(), command("r1", false, waits)], &calm()));
    let alone = [well(), command("r1", false, json!({}))];
    insta::assert_snapshot!("command_without_binder", said("r1", &alone, &without("command-binder")));
    let bound = [well(), command("r1", true, json!({}))];
    insta::assert_snapshot!("command_without_runner", said("r1", &bound, &without("command-runner")));
    let target = Identity { kind: "BasicDeployment".into(), name: "web".into(), ..Identity::default() };
    let lost = Surroundings { missing_target: Some(target), ..calm() };
    insta::assert_snapshot!("command_without_target", said("r1", &[command("r1", false, json!({}))], &lost));
    insta::assert_snapshot!("target_with_commands", explained(WEB, &both, &calm()));
}

#[test]
fn a_command_whose_write_is_refused_names_the_gatekeeper() {
    let told = |kind: &str, reason: &str, message: &str| {
        let conditions =
            [condition("Bound", "True", "Bound", ""), condition("Succeeded", "Unknown", reason, message)];
        let mut command = command("r1", true, json!({"status": {"conditions": conditions}}));
        let (group, kind) = kind.split_once('/').unwrap();
        command.types = Some(TypeMeta { api_version: format!("{group}/v1"), kind: kind.into() });
        ask("BasicDeploymentRestart/r1", &[deployment(ready()), command], &calm()).root_cause.unwrap()
    };
    let policy = "basicdeployments \"web\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding 'b' denied request: no";
    let cause = told("catena.dev/BasicDeploymentRestart", "Invalid", policy);
    assert_eq!(cause.meaning, "has a write refused by a ValidatingAdmissionPolicy (freeze)");
    let webhook = "failed calling webhook \"guard.example.com\": no such service";
    let cause = told("catena.dev/BasicDeploymentRestart", "WriteFailed", webhook);
    assert!(cause.advice.starts_with("check that the pods of the webhook are running"), "{}", cause.advice);
    let right = "deployments \"web\" is forbidden: User \"system:serviceaccount:c:r\" cannot patch resource \"deployments\" in API group \"apps\"";
    let cause = told("shoes.dev/RolloutRestart", "Forbidden", right);
    assert!(cause.advice.starts_with("grant the right"), "{}", cause.advice);
    assert!(!cause.is_progress && cause.message == right, "{cause:?}");
}

#[test]
fn a_command_that_the_binder_has_not_reported_on() {
    let objects = [deployment(ready()), command("r1", false, json!({}))];
    insta::assert_snapshot!(explained("BasicDeploymentRestart/r1", &objects, &calm()));
}

#[test]
fn a_foreign_command_is_explained_by_an_event_of_the_binder() {
    let command = |metadata: Value| {
        object("shoes.dev/v1", "Polish", "p1", None, json!({"spec": {"shoes": "red"}, "metadata": metadata}))
    };
    let mut surroundings = calm();
    surroundings.warnings.push(Warning {
        about: "Polish/p1".into(),
        by: "command-binder".into(),
        reason: "TargetNotFound".into(),
        message: "there is no ConfigMap \"red\"; create it, or delete this command".into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    });
    insta::assert_snapshot!(explained("Polish/p1", &[command(json!({}))], &surroundings));
    let write = json!([{"manager": "command-binder", "time": THEN, "fieldsV1": {"f:metadata": {}}}]);
    let bound =
        command(json!({"annotations": {"catena.dev/bound-to": "ConfigMap/red"}, "managedFields": write}));
    assert!(ask("Polish/p1", &[bound], &surroundings).well);
    surroundings.warnings[0].by = "polisher".into();
    assert!(ask("Polish/p1", &[command(json!({}))], &surroundings).well);
}

#[test]
fn a_foreign_workload_is_explained_by_its_last_warning() {
    let set = object(
        "apps/v1",
        "StatefulSet",
        "db",
        None,
        json!({"spec": {"replicas": 1}, "status": {"observedGeneration": 1, "readyReplicas": 0}}),
    );
    let mut surroundings = calm();
    surroundings.warnings.push(Warning {
        about: "StatefulSet/db".into(),
        by: "statefulset-controller".into(),
        reason: "FailedCreate".into(),
        message:
            "create Pod db-0 failed: pods \"db-0\" is forbidden: exceeded quota: none, requested: pods=1"
                .into(),
        at: None,
        ..Warning::default()
    });
    insta::assert_snapshot!(explained("StatefulSet/db", &[set], &surroundings));
}

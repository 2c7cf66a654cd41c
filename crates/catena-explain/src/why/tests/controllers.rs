//! Scenes of controllers and of other writers: who is at fault in the first seconds, and who keeps changing a child.

use catena_cluster::Identity;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{
    scene::*,
    scenes::{Scene, assert_right},
};
use crate::why::{
    answer::Cause,
    controllers::{Installation, PodTrouble},
    facts::{RefusedSettings, Related, Surroundings, Warning},
    read::alone,
};

const WEB: &str = "BasicDeployment/web";
const JUST_NOW: &str = "2026-01-01T00:09:50Z";

fn new(mut body: Value) -> Value {
    body["metadata"] = json!({"creationTimestamp": JUST_NOW});
    body
}

#[test]
fn in_the_first_seconds_the_controller_that_does_not_run_is_blamed() {
    let starting = not_ready("Scaling", "0 of 3 pods are serving", Value::Null);
    assert_right(&[
        Scene {
            name: "the controller of the child does not run",
            asked: WEB,
            objects: vec![deployment(new(unreported())), set(new(unreported()))],
            surroundings: without("basic-replicaset-controller"),
            says: "BasicDeployment/web is not ready: BasicReplicaSet/web is not reconciled, because no basic-replicaset-controller is running",
            advises: "see why: kubectl catena why deployment/shop-",
        },
        Scene {
            name: "its own controller does not run",
            asked: WEB,
            objects: vec![deployment(new(unreported()))],
            surroundings: without("basic-deployment-controller"),
            says: "BasicDeployment/web is not reconciled, because no basic-deployment-controller is running",
            advises: "see why: kubectl catena why deployment/shop-",
        },
        Scene {
            name: "both run, and the pods start",
            asked: WEB,
            objects: vec![deployment(new(unreported())), set(new(starting))],
            surroundings: calm(),
            says: "BasicDeployment/web is not ready: BasicReplicaSet/web is progressing",
            advises: "wait",
        },
        Scene {
            name: "a pod cannot start",
            asked: WEB,
            objects: vec![
                deployment(new(unreported())),
                set(new(not_ready("Scaling", "0 of 3", Value::Null))),
                waiting("web-x", "ImagePullBackOff", "not found"),
            ],
            surroundings: calm(),
            says: "BasicDeployment/web is not ready: Pod/web-x cannot pull its image",
            advises: "correct the image",
        },
        Scene {
            name: "its own controller runs, and has done nothing for minutes",
            asked: WEB,
            objects: vec![deployment(unreported()), set(ready())],
            surroundings: calm(),
            says: "BasicDeployment/web has not been reconciled by basic-deployment-controller, which is running",
            advises: "logs of basic-deployment-controller",
        },
    ]);
}

#[test]
fn a_set_that_cannot_make_its_old_pods_again_is_not_told_to_wait() {
    let message = "1 of 3 pods are serving; pods of the revision that served last are not made again";
    assert_right(&[Scene {
        name: "no pod is at fault",
        asked: WEB,
        objects: vec![
            deployment(not_ready("Updating", "1 of 3 replicas are serving", Value::Null)),
            set(not_ready("LastServedUnusable", message, Value::Null)),
            serving("web-1"),
        ],
        surroundings: calm(),
        says: "BasicDeployment/web is not ready: BasicReplicaSet/web cannot make pods of the revision that served last again",
        advises: "correct spec, or set it back",
    }]);
}

fn written(by: &str, at: &str) -> Value {
    json!({"manager": by, "operation": "Update", "time": at, "fieldsV1": {"f:spec": {"f:parameters": {}}}})
}

/// The BasicDeployment whose controller reports a fight in these words.
fn fought(message: &str) -> DynamicObject {
    let itself = blocker("BasicDeployment", "web", "RepeatedWrites", message);
    deployment(not_ready("RepeatedWrites", message, itself))
}

#[test]
fn a_fight_is_told_as_far_as_its_message_names_the_two() {
    let of_nobody = "the same apply of BasicReplicaSet \"web\" is repeated again and again: either it has no effect, or somebody undoes it";
    let of_a_namesake = "somebody else keeps changing spec.replicas of BasicReplicaSet \"web\"";
    let about_the_label =
        "the field manager \"the \\\"best\\\"\" keeps changing metadata.labels of BasicReplicaSet \"web\"";
    assert_right(&[
        Scene {
            name: "no manager is blamed",
            asked: WEB,
            objects: vec![fought(of_nobody), set(ready())],
            surroundings: calm(),
            says: "BasicDeployment/web has a controller that repeats the same write again and again (RepeatedWrites",
            advises: "stop the other writer",
        },
        Scene {
            name: "whoever it is has no name of its own",
            asked: WEB,
            objects: vec![fought(of_a_namesake), set(ready())],
            surroundings: calm(),
            says: "BasicDeployment/web does not come to rest: BasicReplicaSet/web is changed again and again by somebody else",
            advises: "stop the other writer",
        },
        Scene {
            name: "the child belongs to nobody meanwhile",
            asked: WEB,
            objects: vec![fought(about_the_label)],
            surroundings: calm(),
            says: "BasicDeployment/web has a child that is changed again and again by the \"best\" (RepeatedWrites",
            advises: "stop the other writer",
        },
    ]);
}

#[test]
fn an_autoscaler_a_webhook_and_a_field_manager_that_may_be_the_somebody_else_are_named() {
    let contested = fought("somebody else keeps changing spec.replicas of BasicReplicaSet \"web\"");
    let owns =
        |by: &str, field: &str| json!({"manager": by, "fieldsV1": {"f:spec": {(format!("f:{field}")): {}}}});
    let mut body = ready();
    body["metadata"] = json!({"managedFields": [
        owns("basic-deployment-controller", "replicas"), owns("kube-controller-manager", "replicas"), owns("argocd", "template"),
    ]});
    let scaler = |name: &str, of: &str| {
        let target = json!({"apiVersion": GROUP, "kind": "BasicReplicaSet", "name": of});
        object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            name,
            None,
            json!({"spec": {"scaleTargetRef": target}}),
        )
    };
    let webhook = |name: &str, resource: &str| json!({"name": name, "rules": [{"apiGroups": ["catena.dev"], "resources": [resource]}]});
    let mut elsewhere = webhook("elsewhere.example.com", "basicreplicasets");
    elsewhere["namespaceSelector"] = json!({"matchLabels": {"kubernetes.io/metadata.name": "other"}});
    let webhooks = json!([
        webhook("sizes.example.com", "basicreplicasets"),
        webhook("pods.example.com", "pods"),
        elsewhere,
    ]);
    let webhooks = object(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "sizes",
        None,
        json!({"webhooks": webhooks}),
    );
    let writers = [scaler("web", "web"), scaler("other", "other"), webhooks];
    let writers = writers.into_iter().filter_map(alone).collect();
    let surroundings = Surroundings { related: Related { writers, ..Related::default() }, ..calm() };
    assert_eq!(
        ask(WEB, &[contested, set(body)], &surroundings).remarks,
        [
            "HorizontalPodAutoscaler/web scales BasicReplicaSet/web",
            "MutatingWebhookConfiguration/sizes may change BasicReplicaSet/web when it is written: sizes.example.com",
            "the field manager kube-controller-manager also owns spec.replicas of BasicReplicaSet/web",
        ]
    );
}

#[test]
fn somebody_who_keeps_changing_a_child_is_named() {
    let message =
        "the field manager \"kubectl-edit\" keeps changing spec.replicas of BasicReplicaSet \"web\"";
    let contested = fought(message);
    let managed = |mut body: Value, by: &str| {
        body["metadata"] = json!({"managedFields": [
            written("basic-deployment-controller", THEN), written(by, JUST_NOW),
        ]});
        set(body)
    };
    let fought_over = managed(ready(), "kubectl-edit");
    let ended = [condition("Bound", "True", "Bound", ""), condition("Succeeded", "True", "Restarted", "")];
    let done = command("r1", true, json!({"status": {"conditions": ended}}));
    let says = "BasicDeployment/web does not come to rest: BasicReplicaSet/web is changed again and again by kubectl-edit";
    let scaling = not_ready("Scaling", "2 of 3 pods are serving", Value::Null);
    let mut blocked = blocked_by_pod(waiting("web-x", "ErrImagePull", "not found"), "ErrImagePull");
    blocked[0] = contested.clone();
    let said = ask(WEB, &[contested.clone(), fought_over.clone()], &calm());
    assert_eq!(said.root_cause.unwrap().message, message);
    assert_right(&[
        Scene {
            name: "a fight about the child",
            asked: WEB,
            objects: vec![contested.clone(), fought_over.clone()],
            surroundings: calm(),
            says,
            advises: "stop the other writer",
        },
        Scene {
            name: "it comes before the progress that it causes",
            asked: WEB,
            objects: vec![contested.clone(), managed(scaling, "kubectl-edit")],
            surroundings: calm(),
            says,
            advises: "stop the other writer",
        },
        Scene {
            name: "the field has just been changed back",
            asked: WEB,
            objects: vec![contested.clone(), managed(ready(), "basic-deployment-controller")],
            surroundings: calm(),
            says,
            advises: "stop the other writer",
        },
        Scene {
            name: "another manager has written another field later",
            asked: WEB,
            objects: vec![contested.clone(), managed(ready(), "argocd")],
            surroundings: calm(),
            says,
            advises: "stop the other writer",
        },
        Scene {
            name: "asked about the child",
            asked: "BasicReplicaSet/web",
            objects: vec![contested.clone(), fought_over.clone()],
            surroundings: calm(),
            says: "BasicReplicaSet/web is changed again and again by kubectl-edit",
            advises: "stop the other writer",
        },
        Scene {
            name: "a command that has succeeded meanwhile",
            asked: "BasicDeploymentRestart/r1",
            objects: vec![contested, fought_over.clone(), done],
            surroundings: calm(),
            says: "BasicDeploymentRestart/r1 has succeeded.",
            advises: "",
        },
        Scene {
            name: "an edit that is not fought about",
            asked: WEB,
            objects: vec![deployment(ready()), fought_over],
            surroundings: calm(),
            says: "BasicDeployment/web is ready: 3/3 serve.",
            advises: "",
        },
        Scene {
            name: "an obstacle that stays comes first",
            asked: WEB,
            objects: blocked,
            surroundings: calm(),
            says: "BasicDeployment/web is not ready: Pod/web-x cannot pull its image",
            advises: "keeps changing",
        },
    ]);
}

#[test]
fn a_queued_command_leads_to_the_cause_of_the_first_one() {
    let status = |reason: &str| {
        json!({"status": {"conditions": [
            condition("Bound", "True", "Bound", ""), condition("Succeeded", "Unknown", reason, ""),
        ]}})
    };
    let mut objects = blocked_by_pod(waiting("web-x", "ErrImagePull", "not found"), "ErrImagePull");
    objects.push(command("r1", true, status("Restarting")));
    objects.push(command("r2", true, status("Queued")));
    let mut first = blocked_by_pod(waiting("web-x", "ErrImagePull", "not found"), "ErrImagePull");
    first.push(command("r1", true, status("Queued")));
    first.push(command("r2", true, status("Queued")));
    let scene = |objects| Scene {
        name: "behind a command whose target is blocked",
        asked: "BasicDeploymentRestart/r2",
        objects,
        surroundings: calm(),
        // The leaf is the cause; the evidence shows the older command on the way to it.
        says: "BasicDeploymentRestart/r2 is not finished: Pod/web-x cannot pull its image (ErrImagePull",
        advises: "correct the image",
    };
    let evidence: Vec<String> = ask("BasicDeploymentRestart/r2", &objects, &calm())
        .evidence
        .iter()
        .map(|evidence| evidence.object.to_string())
        .collect();
    assert!(evidence.contains(&"BasicDeploymentRestart/r1".to_owned()), "{evidence:?}");
    assert_right(&[scene(objects), scene(first)]);
}

fn trouble(state: &str, runs: bool) -> PodTrouble {
    PodTrouble {
        told: format!("its pod catena-system/sets-abc {state}, and says: the kind Widget is not served"),
        runs,
        is_stuck: !runs,
    }
}

/// The controller of the child, with pods as its Deployment counts them.
fn sets(available: i64, renewed: &str, trouble: PodTrouble) -> Surroundings {
    let mut surroundings = without("basic-replicaset-controller");
    let seen = surroundings.controllers.seen.last_mut().unwrap();
    *seen = Installation {
        pods: Some((available, 1)),
        trouble: Some(trouble),
        is_updating: true,
        ..controller("basic-replicaset-controller", renewed)
    };
    surroundings
}

#[test]
fn a_controller_whose_pod_runs_is_told_with_what_holds_it() {
    let objects = || vec![deployment(not_ready("Progressing", "0 of 3", Value::Null)), set(unreported())];
    let (stale, fresh) = ("2026-01-01T00:04:00Z", "2026-01-01T00:09:55Z");
    let scene = |name, surroundings, says| Scene {
        name,
        asked: WEB,
        objects: objects(),
        surroundings,
        says,
        advises: "see why: kubectl catena why deployment/shop-basic-replicaset-controller -n catena-system, and its logs: kubectl -n catena-system logs deployment/",
    };
    let mut unmade = sets(0, stale, trouble("", true));
    let seen = unmade.controllers.seen.last_mut().unwrap();
    let refusal = "pods \"sets-\" is forbidden: error looking up service account catena-system/sets: serviceaccount \"sets\" not found";
    (seen.trouble, seen.refusal) = (None, Some(refusal.to_owned()));
    let mut scenes = vec![
        scene(
            "not ready for a watch",
            sets(0, stale, trouble("is running, but not ready (NotReady)", true)),
            "BasicDeployment/web is not ready: BasicReplicaSet/web is not reconciled, because basic-replicaset-controller is running, but does not work: its pod catena-system/sets-abc is running, but not ready (NotReady), and says: the kind Widget is not served (ControllerNotRunning",
        ),
        scene(
            "no pod for want of a ServiceAccount",
            unmade,
            "BasicDeployment/web is not ready: BasicReplicaSet/web is not reconciled, because no basic-replicaset-controller is running: no pod of its Deployment catena-system/shop-basic-replicaset-controller is available, and none can be created: pods \"sets-\" is forbidden: error looking up service account catena-system/sets: serviceaccount \"sets\" not found (ControllerNotRunning",
        ),
        scene(
            "a stale Lease",
            sets(1, stale, trouble("is ready, but has not renewed its Lease", true)),
            "BasicDeployment/web is not ready: BasicReplicaSet/web is not reconciled, because basic-replicaset-controller is running, but does not work: its pod catena-system/sets-abc is ready, but has not renewed its Lease",
        ),
        scene(
            "a crash loop",
            sets(0, stale, trouble("has a container that exits again and again (CrashLoopBackOff)", false)),
            "BasicDeployment/web is not ready: BasicReplicaSet/web is not reconciled, because basic-replicaset-controller does not start: its pod catena-system/sets-abc has a container that exits again and again (CrashLoopBackOff), and says: the kind Widget is not served",
        ),
    ];
    scenes.push(Scene {
        name: "a new pod crashes while the old one works",
        asked: WEB,
        objects: vec![deployment(ready()), set(ready())],
        surroundings: sets(1, fresh, trouble("exits again and again", false)),
        says: "BasicDeployment/web is ready: 3/3 serve.",
        advises: "the update of basic-replicaset-controller does not finish: its pod catena-system/sets-abc exits again and again",
    });
    assert_right(&scenes);
}

/// Settings of basic-deployment-controller that were refused.
pub(super) fn refused_settings(text: &str) -> Surroundings {
    let config_map = Identity {
        api_version: "v1".into(),
        kind: "ConfigMap".into(),
        namespace: Some("catena-system".into()),
        name: "deployments".into(),
        uid: "m".into(),
    };
    let message =
        "templates.db: unexpected end of file; this process keeps the previous settings until that is fixed";
    let refused = RefusedSettings {
        controller: "basic-deployment-controller".into(),
        cause: Cause::with(&config_map, "SettingsRefused").message(message).since(THEN.parse().ok()),
        text: text.into(),
    };
    Surroundings { refused_settings: vec![refused], ..calm() }
}

#[test]
fn settings_that_were_refused_are_told() {
    let mut lost = refused("TemplateNotFound", "there is no template \"db\"");
    lost[0].data["spec"]["template"] = "db".into();
    let settings = "templates: {default: x, db: '{% if'}";
    assert_right(&[
        Scene {
            name: "beside an object that is well",
            asked: WEB,
            objects: vec![deployment(ready()), set(ready())],
            surroundings: refused_settings(settings),
            says: "BasicDeployment/web is ready: 3/3 serve.",
            advises: "basic-deployment-controller does not take its newer settings because of a mistake, those of ConfigMap/deployments in catena-system: templates.db",
        },
        Scene {
            name: "a template that only they bring",
            asked: WEB,
            objects: lost.clone(),
            surroundings: refused_settings(settings),
            says: "BasicDeployment/web is not ready: ConfigMap/deployments in namespace catena-system brings its template \"db\", but basic-deployment-controller does not take its newer settings",
            advises: "kubectl -n catena-system events --for configmap/deployments",
        },
        Scene {
            name: "a template that they do not bring either",
            asked: WEB,
            objects: lost,
            surroundings: refused_settings("templates: {default: x}"),
            says: "BasicDeployment/web names a template that does not exist",
            advises: "does not take its newer settings",
        },
    ]);
}

#[test]
fn an_object_of_a_declared_kind_that_command_binder_overlooks_has_a_note() {
    let polish = |metadata: Value| {
        object("shoes.dev/v1", "Polish", "p1", None, json!({"spec": {"shoes": "red"}, "metadata": metadata}))
    };
    let answer = |object: Value, is_declared_command: bool| {
        let surroundings = Surroundings { is_declared_command, ..calm() };
        ask("Polish/p1", &[polish(object)], &surroundings)
    };
    let silent = answer(json!({}), true);
    assert_eq!((silent.well, silent.exit_code()), (false, 1));
    assert_eq!(
        silent.sentence,
        "Polish/p1 exists, but may be a command that is not bound: whether it is well is unknown."
    );
    let told = silent.remarks.join("; ");
    assert!(
        told.starts_with(
            "if it is a command, it is not bound, and no warning of command-binder tells why: check"
        ),
        "{told}"
    );
    let bound = json!({"annotations": {"catena.dev/bound-to": "x"}});
    let new = json!({"creationTimestamp": "2026-01-01T00:09:58Z"});
    for (object, is_declared) in [(json!({}), false), (new, true)] {
        let answer = answer(object, is_declared);
        assert!(answer.well && answer.remarks.is_empty(), "{answer:?}");
    }
    // It is bound, and nobody carries it out.
    let idle = answer(bound, true);
    assert_eq!((idle.well, idle.exit_code(), idle.root_cause), (false, 1, None));
    assert!(idle.sentence.contains("nobody reports that it is carried out"), "{}", idle.sentence);
    let status = json!({"conditions": [condition("Succeeded", "True", "Polished", "")]});
    let done = object("shoes.dev/v1", "Polish", "p1", None, json!({"status": status}));
    let done = ask("Polish/p1", &[done], &Surroundings { is_declared_command: true, ..calm() });
    assert!(done.well && done.remarks.is_empty(), "{done:?}");
}

#[test]
fn a_command_of_another_project_is_not_bound_while_command_binder_does_not_run() {
    let polish = || vec![object("shoes.dev/v1", "Polish", "p1", None, json!({"spec": {"shoes": "red"}}))];
    let scene = |name, is_declared_command, surroundings: Surroundings, says, advises| Scene {
        name,
        asked: "Polish/p1",
        objects: polish(),
        surroundings: Surroundings { is_declared_command, ..surroundings },
        says,
        advises,
    };
    let mut none = calm();
    none.controllers.seen.retain(|seen| seen.controller != "command-binder");
    assert_right(&[
        scene(
            "its Lease is stale",
            true,
            without("command-binder"),
            "Polish/p1 is not reconciled, because no command-binder is running: its Lease catena-system/shop-command-binder was last renewed 6m ago, by command-binder-abc (ControllerNotRunning).",
            "see why: kubectl catena why deployment/shop-",
        ),
        scene(
            "it is not installed",
            true,
            none,
            "Polish/p1 is not reconciled, because no command-binder is running: it is not installed (ControllerNotRunning).",
            "helm upgrade --install command-binder charts/command-binder --namespace catena-system --create-namespace",
        ),
        scene(
            "its kind is not declared as one of commands",
            false,
            without("command-binder"),
            "Polish/p1 exists; its kind does not report whether it is ready.",
            "",
        ),
    ]);
}

#[test]
fn a_status_of_a_command_that_cannot_be_written_is_no_progress_of_it_or_of_the_next_one() {
    let reason_at = |warned: &str| {
        let write = json!([{"manager": "command-runner", "subresource": "status", "time": THEN}]);
        let conditions =
            [condition("Bound", "True", "Bound", ""), condition("Succeeded", "Unknown", "Running", "")];
        let body = json!({"metadata": {"managedFields": write}, "status": {"conditions": conditions}});
        let waiting = json!({"metadata": {"creationTimestamp": "2026-01-01T00:08:00Z"}});
        let objects = [deployment(ready()), command("r1", true, body), command("r2", true, waiting)];
        let mut surroundings = calm();
        surroundings.warnings.push(Warning {
            about: "BasicDeploymentRestart/r1".into(),
            by: "command-runner".into(),
            reason: "StatusRefused".into(),
            at: warned.parse().ok(),
            ..Warning::default()
        });
        ["r1", "r2"].map(|name| {
            let asked = format!("BasicDeploymentRestart/{name}");
            ask(&asked, &objects, &surroundings).root_cause.unwrap().reason
        })
    };
    assert_eq!(reason_at("2026-01-01T00:08:00Z"), ["StatusRefused", "StatusRefused"]);
    assert_eq!(reason_at(THEN), ["Running", "Queued"], "it was written since");
}

#[test]
fn a_command_that_is_reported_in_an_annotation_is_explained_by_that() {
    // In its own status, it is known by who wrote that.
    let by = |manager: &str| json!({"manager": manager, "subresource": "status", "time": THEN});
    let write = json!([by("command-binder"), by("command-runner")]);
    let conditions =
        [condition("Bound", "True", "Bound", ""), condition("Succeeded", "Unknown", "RuleFailed", "")];
    let body = json!({"metadata": {"managedFields": write}, "status": {"conditions": conditions}});
    let polish = object("shoes.dev/v1", "Polish", "p1", Some(WEB), body);
    let surroundings = Surroundings { is_declared_command: true, ..calm() };
    let cause = ask("Polish/p1", &[deployment(ready()), polish], &surroundings).root_cause.unwrap();
    assert_eq!(cause.meaning, "waits, because it cannot be determined whether it may run");
    let reason = |status: &str, reason: &str| {
        let uid = "Polish/p1";
        let record = json!({"uid": uid, "conditions": [condition("Succeeded", status, reason, "")]});
        let metadata = json!({"annotations": {"catena.dev/run": record.to_string()}});
        let polish = object("shoes.dev/v1", "Polish", "p1", Some(WEB), json!({"metadata": metadata}));
        let mut surroundings = calm();
        surroundings.is_declared_command = true;
        surroundings.warnings.push(Warning {
            about: uid.into(),
            by: "command-binder".into(),
            reason: "TargetNotFound".into(),
            ..Warning::default()
        });
        let answer = ask(uid, &[deployment(ready()), polish], &surroundings);
        if let Some(cause) = answer.root_cause.as_ref().filter(|cause| cause.reason == "RuleFailed") {
            assert_eq!(cause.meaning, "waits, because it cannot be determined whether it may run");
            assert!(cause.advice.starts_with("correct the expression"), "{}", cause.advice);
        }
        (answer.well, answer.root_cause.map(|cause| cause.reason))
    };
    assert_eq!(reason("Unknown", "RuleFailed"), (false, Some("RuleFailed".into())));
    assert_eq!(reason("True", "Complete"), (true, None));
    assert_eq!(reason("Unknown", "Paused"), (false, Some("Paused".into())));
    assert_eq!(reason("False", "Superseded"), (false, Some("Superseded".into())));
}

#[test]
fn a_command_that_is_reported_in_an_annotation_is_not_bound_for_the_reason_that_command_binder_tells() {
    let uid = "Polish/p1";
    let record = json!({"uid": uid, "conditions": [condition("Succeeded", "Unknown", "NotBound", "")]});
    let metadata = json!({"annotations": {"catena.dev/run": record.to_string()}});
    let polish = object("shoes.dev/v1", "Polish", "p1", None, json!({"metadata": metadata}));
    let mut surroundings = calm();
    surroundings.warnings.push(Warning {
        about: uid.into(),
        by: "command-binder".into(),
        reason: "OwnershipRefused".into(),
        ..Warning::default()
    });
    let cause = ask(uid, &[polish], &surroundings).root_cause.unwrap();
    assert_eq!(cause.reason, "OwnershipRefused");
}

#[test]
fn a_warning_of_command_binder_counts_until_it_binds_the_command() {
    let polish = |manager: &str, time: &str| {
        let write = json!([{"manager": manager, "time": time, "fieldsV1": {"f:metadata": {}}}]);
        let metadata = json!({"labels": {"catena.dev/target-uid": "x"}, "managedFields": write});
        object("shoes.dev/v1", "Polish", "p1", None, json!({"metadata": metadata}))
    };
    let mut surroundings = calm();
    surroundings.warnings.push(Warning {
        about: "Polish/p1".into(),
        by: "command-binder".into(),
        reason: "TargetReplaced".into(),
        message: "another object".into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    });
    for (manager, bound_at, is_well) in [
        ("command-binder", "2026-01-01T00:08:00Z", true),
        ("command-binder", THEN, true),
        // It was bound before, and its target has been replaced since.
        ("command-binder", "2026-01-01T00:06:00Z", false),
        // Anybody can set a label.
        ("kubectl", "2026-01-01T00:08:00Z", false),
    ] {
        let answer = ask("Polish/p1", &[polish(manager, bound_at)], &surroundings);
        assert_eq!(answer.well, is_well, "{manager} {bound_at}: {answer:?}");
    }
}

#[test]
fn a_finished_command_whose_ttl_is_over_has_a_note() {
    let objects = |ttl: Value, finished: &str| {
        let outcome = [condition("Succeeded", "True", "Restarted", "")];
        let mut done =
            command("r1", true, json!({"status": {"completionTime": finished, "conditions": outcome}}));
        done.data["spec"]["ttlSecondsAfterFinished"] = ttl;
        [deployment(ready()), done]
    };
    let remarks = |ttl: Value, finished: &str, reaper: &str| {
        let mut surroundings = calm();
        surroundings.controllers.seen.push(controller("command-reaper", reaper));
        ask("BasicDeploymentRestart/r1", &objects(ttl, finished), &surroundings).remarks.join("; ")
    };
    let (runs, silent) = ("2026-01-01T00:09:55Z", "2026-01-01T00:04:00Z");
    let told = remarks(json!(60), THEN, runs);
    assert!(
        told.starts_with("its TTL has been over for 2m: command-reaper keeps it, as a command"),
        "{told}"
    );
    let told = remarks(json!(60), THEN, silent);
    assert!(told.starts_with("its TTL has been over for 2m: no command-reaper is running"), "{told}");
    assert_eq!(remarks(json!(600), THEN, runs), "");
    assert_eq!(remarks(Value::Null, THEN, runs), "");
    let mut surroundings = calm();
    surroundings.controllers.unseen = Some("no permission".into());
    let unknown =
        ask("BasicDeploymentRestart/r1", &objects(json!(60), THEN), &surroundings).remarks.join("; ");
    assert_eq!(
        unknown,
        "its TTL has been over for 2m: whether command-reaper is running is unknown (no permission)"
    );
    assert_eq!(remarks(json!(0), "2026-01-01T00:09:58Z", runs), "");
    surroundings.warnings.push(Warning {
        about: "BasicDeploymentRestart/r1".into(),
        by: "command-reaper".into(),
        reason: "Forbidden".into(),
        message: "it may not be deleted".into(),
        ..Warning::default()
    });
    let refused = ask("BasicDeploymentRestart/r1", &objects(json!(60), THEN), &surroundings).remarks;
    assert_eq!(
        refused[0],
        "its TTL has been over for 2m: command-reaper warns of Forbidden: it may not be deleted"
    );
}

#[test]
fn a_command_that_waits_for_a_paused_target_leads_to_the_field_of_that() {
    let waits =
        [condition("Bound", "True", "Bound", ""), condition("Succeeded", "Unknown", "Paused", "it waits")];
    let restart = command("r1", true, json!({"status": {"conditions": waits}}));
    let cause = ask("BasicDeploymentRestart/r1", &[deployment(ready()), restart.clone()], &calm())
        .root_cause
        .unwrap();
    let advice = "let it go on, with all changes that wait in its spec: kubectl -n shop patch basicdeployment.catena.dev/web --type merge ";
    assert!(cause.advice.starts_with(advice), "{}", cause.advice);
    // A pod that fails is not what it waits for.
    let crash = waiting("web-x", "CrashLoopBackOff", "back-off");
    let objects = [&blocked_by_pod(crash, "CrashLoopBackOff")[..], &[restart]].concat();
    let sentence = ask("BasicDeploymentRestart/r1", &objects, &calm()).sentence;
    assert!(
        sentence.starts_with("BasicDeploymentRestart/r1 waits, because its target is paused"),
        "{sentence}"
    );
}

#[test]
fn a_spec_that_is_not_followed_is_the_cause_whatever_its_pods_suffer_from() {
    for reason in ["Paused", "ChangedWhilePaused", "KindNotListed"] {
        let blocker = blocker("Pod", "web-x", "ImagePullBackOff", "no such image");
        let pod = object("v1", "Pod", "web-x", None, json!({}));
        let said = ask(WEB, &[deployment(not_ready(reason, "why", blocker)), set(ready()), pod], &calm());
        assert_eq!(said.root_cause.unwrap().reason, reason);
    }
}

//! Events explain an object whose status does not.

use serde_json::{Value, json};

use super::{WEB, scene::*};
use crate::why::facts::{Surroundings, Warning};

/// Four minutes before the last transition of the conditions in these scenes.
const LONG_BEFORE: &str = "2026-01-01T00:03:00Z";
/// Less than a probe needs to fail before the condition turns.
const JUST_BEFORE: &str = "2026-01-01T00:06:40Z";

fn warned(about: &str, warnings: &[(&str, &str)]) -> Surroundings {
    warned_at(THEN, about, warnings)
}

fn warned_at(time: &str, about: &str, warnings: &[(&str, &str)]) -> Surroundings {
    let warning = |(reason, message): &(&str, &str)| Warning {
        about: about.to_owned(),
        by: "quota-operator".to_owned(),
        reason: (*reason).to_owned(),
        message: (*message).to_owned(),
        at: time.parse().ok(),
        ..Warning::default()
    };
    Surroundings { warnings: warnings.iter().map(warning).collect(), ..calm() }
}

#[test]
fn an_unreported_object_is_shown_with_its_newest_warnings() {
    let surroundings = warned(
        WEB,
        &[
            ("Old", "before"),
            ("Denied", "first"),
            ("Slow", "for long"),
            ("Failed", "not yet"),
            ("Denied", "again"),
        ],
    );
    let pending = json!({"status": {"conditions": [condition("Ready", "Unknown", "Pending", "")]}});
    let cause = ask(WEB, &[deployment(pending)], &surroundings).root_cause.unwrap();
    assert_eq!(cause.reason, "NotObserved");
    let lines: Vec<_> = cause.message.lines().collect();
    assert_eq!(
        lines,
        [
            "Warning Denied (quota-operator, 3m ago): again",
            "Warning Failed (quota-operator, 3m ago): not yet",
            "Warning Slow (quota-operator, 3m ago): for long",
        ]
    );
}

#[test]
fn a_warning_that_each_pod_of_a_node_has_explains_none() {
    let dns = Warning {
        about: "Pod/web-x".into(),
        reason: "DNSConfigForming".into(),
        message: "Nameserver limits were exceeded".into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    };
    let objects = blocked_by_pod(waiting("web-x", "ContainerCreating", ""), "Starting");
    let answer = ask(WEB, &objects, &Surroundings { warnings: vec![dns], ..calm() });
    assert!(!answer.root_cause.unwrap().message.contains("Nameserver"), "{}", answer.sentence);
}

#[test]
fn a_message_of_the_status_is_not_repeated() {
    let behind = deployment(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}));
    insta::assert_snapshot!(explained(WEB, &[behind], &warned(WEB, &[("Denied", "no room")])));
}

#[test]
fn an_object_without_a_status_is_shown_with_its_warnings() {
    let map = object("v1", "ConfigMap", "settings", None, json!({}));
    let surroundings = warned("ConfigMap/settings", &[("InvalidSettings", "the key colour is missing")]);
    insta::assert_snapshot!(explained("ConfigMap/settings", &[map], &surroundings), @r"
    ConfigMap/settings exists; its kind does not report whether it is ready.

    Note: Warning InvalidSettings (quota-operator, 3m ago): the key colour is missing.
    ");
}

#[test]
fn a_warning_that_something_timed_out_does_not_hide_the_older_one_that_tells_why() {
    let conditions = [condition("PodScheduled", "True", "", ""), condition("Ready", "False", "", "")];
    let creating = pod("web-x", json!({"phase": "Pending", "conditions": conditions}));
    let surroundings = warned(
        "Pod/web-x",
        &[
            (
                "FailedAttachVolume",
                "Multi-Attach error for volume \"pvc-0a1b\" Volume is already used by pod(s) csi-old-7d9c",
            ),
            (
                "FailedMount",
                "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[]: timed out waiting for the condition",
            ),
        ],
    );
    let cause = ask(WEB, &blocked_by_pod(creating, "NotReady"), &surroundings).root_cause.unwrap();
    assert_eq!(cause.reason, "FailedAttachVolume");
    assert_eq!(cause.meaning, "needs a volume that is still attached to another node (pvc-0a1b)");
    let lines: Vec<_> = cause.message.lines().collect();
    assert!(lines[0].ends_with("csi-old-7d9c"), "{lines:?}");
    assert!(
        lines[1].starts_with("Warning FailedMount (quota-operator, 3m ago): Unable to attach"),
        "{lines:?}"
    );
}

#[test]
fn a_warning_from_before_the_last_success_is_not_the_message_of_an_unready_pod() {
    let said = |time: &str| {
        let unready = condition("Ready", "False", "ContainersNotReady", "unready: [main]");
        let unready = pod("web-x", json!({"phase": "Running", "conditions": [unready]}));
        let surroundings = warned_at(time, "Pod/web-x", &[("FailedMount", "no such secret")]);
        ask(WEB, &blocked_by_pod(unready, "NotReady"), &surroundings).root_cause.unwrap().message
    };
    assert_eq!(said(LONG_BEFORE), "unready: [main]");
    assert_eq!(said(JUST_BEFORE), "no such secret");
}

#[test]
fn a_warning_about_the_start_of_a_pod_explains_nothing_once_a_container_has_started() {
    let started = json!({"startedAt": "2026-01-01T00:06:50Z", "reason": "Error", "exitCode": 139});
    for (phase, list, container) in [
        (
            "Running",
            "containerStatuses",
            json!({"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": started}}),
        ),
        ("Running", "containerStatuses", json!({"state": {"running": started}})),
        ("Pending", "initContainerStatuses", json!({"state": {"running": started}})),
    ] {
        let unready = condition("Ready", "False", "ContainersNotReady", "unready: [main]");
        let mut pod = pod("web-x", json!({"phase": phase, "conditions": [unready], (list): [container]}));
        pod.data["spec"] = json!({"nodeName": "n1"});
        let said = |time: &str| {
            let surroundings = warned_at(time, "Pod/web-x", &[("FailedMount", "no such secret")]);
            let cause = ask(WEB, &blocked_by_pod(pod.clone(), "NotReady"), &surroundings).root_cause.unwrap();
            cause.message.contains("no such secret")
        };
        assert!(!said(JUST_BEFORE), "{container}");
        // Its node was started again. Of a crash, a volume is never the reason.
        assert_eq!(said(THEN), container.get("lastState").is_none(), "{container}");
    }
}

#[test]
fn a_pod_that_has_its_node_is_not_told_to_have_none() {
    let told = |spec: Value| {
        let mut pod = pod("web-x", json!({"phase": "Pending"}));
        pod.data["spec"] = spec;
        let surroundings = warned("Pod/web-x", &[("FailedScheduling", "0/7 nodes are available")]);
        ask(WEB, &blocked_by_pod(pod, "NotReady"), &surroundings).root_cause.unwrap()
    };
    let starts = told(json!({"nodeName": "n1"}));
    assert!(starts.is_progress && !starts.message.contains("0/7"), "{starts:?}");
    assert_eq!(told(json!({})).message, "0/7 nodes are available");
}

#[test]
fn a_warning_about_a_former_spec_does_not_explain_the_silence_on_the_present_one() {
    let changed = |time: &str| {
        let entry = json!({"manager": "kubectl", "time": time, "fieldsV1": {"f:spec": {}}});
        let metadata = json!({"generation": 2, "managedFields": [entry]});
        let behind = deployment(json!({"metadata": metadata, "status": {"observedGeneration": 1}}));
        let surroundings = warned_at(LONG_BEFORE, WEB, &[("Denied", "no room")]);
        ask(WEB, &[behind], &surroundings).root_cause.unwrap().message
    };
    assert!(changed("2026-01-01T00:02:00Z").contains("no room"));
    assert!(!changed("2026-01-01T00:09:00Z").contains("no room"));
}

#[test]
fn a_warning_about_former_content_is_not_told_of_an_object_without_a_status() {
    let remarks = |manager_owns: &str| {
        let entry = json!({"manager": "kubectl", "time": THEN, "fieldsV1": {manager_owns: {}}});
        let map =
            object("v1", "ConfigMap", "settings", None, json!({"metadata": {"managedFields": [entry]}}));
        let surroundings = warned_at(LONG_BEFORE, "ConfigMap/settings", &[("Invalid", "colour is missing")]);
        ask("ConfigMap/settings", &[map], &surroundings).remarks
    };
    assert_eq!(remarks("f:data"), [""; 0]);
    // A new label corrects nothing.
    assert_eq!(remarks("f:metadata"), ["Warning Invalid (quota-operator, 7m ago): colour is missing"]);
}

#[test]
fn a_child_that_has_no_field_for_pods_that_cannot_be_created_is_explained_by_its_warning() {
    let body = json!({"spec": {"replicas": 1}, "status": {"observedGeneration": 1, "readyReplicas": 0}});
    let set = object("apps/v1", "StatefulSet", "db", Some(WEB), body);
    let web = deployment(not_ready("Progressing", "0 of 3 replicas are serving", Value::Null));
    let mut surroundings = calm();
    surroundings.warnings.push(Warning {
        about: "StatefulSet/db".into(),
        by: "statefulset-controller".into(),
        reason: "FailedCreate".into(),
        message: "pods \"db-0\" is forbidden: exceeded quota: none, requested: pods=1".into(),
        at: None,
        ..Warning::default()
    });
    let told = explained(WEB, &[web, set], &surroundings);
    assert!(told.contains("exceeded quota: none"), "{told}");
}

#[test]
fn a_controller_that_says_why_it_does_not_report_is_quoted() {
    let behind = deployment(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}));
    let told = |by: &str| {
        let mut surroundings = warned(WEB, &[("StatusRefused", "may not write")]);
        surroundings.warnings[0].by = by.into();
        ask(WEB, std::slice::from_ref(&behind), &surroundings).root_cause.unwrap().reason
    };
    assert_eq!(told("basic-deployment-controller"), "StatusRefused");
    assert_eq!(told("somebody"), "NotObserved");
}

/// Users set no status, so that no field of it is theirs to correct.
#[test]
fn a_field_of_a_status_that_an_older_definition_lacks_is_a_matter_of_its_upgrade() {
    let refused = "the status of BasicDeployment \"web\" cannot be written: the API server refuses it: strict decoding error: unknown field \"status.progress\"; check that the CustomResourceDefinition is as new as the controller";
    let mut surroundings = warned(WEB, &[("StatusRefused", refused)]);
    surroundings.warnings[0].by = "basic-deployment-controller".into();
    let behind = deployment(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}));
    let cause = ask(WEB, &[behind], &surroundings).root_cause.unwrap();
    let says = "has an outdated status, because the CRD of its kind is older than the controller and lacks a field (status.progress)";
    assert_eq!((&*cause.reason, &*cause.meaning), ("StatusRefused", says));
    assert!(cause.advice.starts_with("upgrade the CRD"), "{}", cause.advice);
}

#[test]
fn a_warning_from_before_the_last_change_is_not_the_reason_of_the_silence_on_it() {
    let told = |changed: &str| {
        let entry = json!({"manager": "kubectl", "time": changed, "fieldsV1": {"f:spec": {}}});
        let metadata = json!({"generation": 2, "managedFields": [entry]});
        let behind = deployment(json!({"metadata": metadata, "status": {"observedGeneration": 1}}));
        let mut surroundings = warned(WEB, &[("TemplateNotFound", "no such template")]);
        surroundings.warnings[0].by = "basic-deployment-controller".into();
        ask(WEB, &[behind], &surroundings).root_cause.unwrap().reason
    };
    assert_eq!(told("2026-01-01T00:06:50Z"), "TemplateNotFound");
    assert_eq!(told("2026-01-01T00:07:10Z"), "NotObserved");
}

#[test]
fn a_warning_is_over_once_its_object_is_ready_or_its_reporter_says_something_else() {
    let remarks = |since: &str, reported: &str, by: &str| {
        let mut body = ready();
        body["status"]["conditions"][0]["lastTransitionTime"] = since.into();
        body["metadata"] =
            json!({"managedFields": [{"manager": by, "subresource": "status", "time": reported}]});
        let mut surroundings = warned(WEB, &[("Forbidden", "may not create")]);
        surroundings.warnings[0].by = "basic-deployment-controller".into();
        ask(WEB, &[deployment(body)], &surroundings).remarks.len()
    };
    let ours = "basic-deployment-controller";
    let (before, after) = ("2026-01-01T00:06:50Z", "2026-01-01T00:07:10Z");
    assert_eq!(remarks(before, before, ours), 1);
    assert_eq!(remarks(after, before, ours), 0, "it is ready since");
    assert_eq!(remarks(before, after, ours), 0, "it was reported on since");
    assert_eq!(remarks(before, after, "kubectl"), 1);
}

#[test]
fn a_warning_stays_while_its_reporter_gives_its_reason_and_that_of_a_kubelet_does_in_any_case() {
    let quotes = |by: &str, reason: &str| {
        let written = json!([{"manager": by, "subresource": "status", "time": "2026-01-01T00:08:00Z"}]);
        let mut body = not_ready(reason, "", Value::Null);
        body["metadata"] = json!({"managedFields": written});
        let mut surroundings = warned(WEB, &[("QuotaExceeded", "no room")]);
        surroundings.warnings[0].by = by.into();
        ask(WEB, &[deployment(body)], &surroundings).root_cause.unwrap().message.contains("no room")
    };
    assert!(quotes("basic-deployment-controller", "QuotaExceeded"));
    assert!(!quotes("basic-deployment-controller", "Progressing"));
    assert!(quotes("kubelet", "Progressing"));
}

#[test]
fn the_next_retry_is_told_while_it_lies_ahead() {
    let advice = |retried: &str, at: Value| {
        let mut blocked = blocker("BasicReplicaSet", "web", "QuotaExceeded", "no room");
        blocked["nextRetry"] = at;
        let body = not_ready("QuotaExceeded", &format!("no room; it is retried {retried}"), blocked);
        let web = deployment(not_ready("Progressing", "0 of 3", Value::Null));
        ask_exactly(WEB, &[web, set(body)], &calm()).root_cause.unwrap().advice
    };
    let at = |time: &str| advice(&format!("at {time} at the latest"), json!(time));
    let later = at("2026-01-01T00:12:00Z");
    assert!(later.ends_with("by itself; it is retried at 2026-01-01T00:12:00Z at the latest"), "{later}");
    let past = at("2026-01-01T00:08:00Z");
    assert!(!past.contains("retried"), "{past}");
    let soon = advice("within 75 s", Value::Null);
    assert!(soon.ends_with("by itself; it is retried within 75 s"), "{soon}");
}

//! Nobody is told that all is well without a word of what is not.

use kube::core::DynamicObject;
use serde_json::json;

use super::{WEB, placement::wide, scene::*};

fn noted(asked: &str, objects: &[DynamicObject]) -> String {
    ask(asked, objects, &calm()).remarks.join("; ")
}

#[test]
fn a_restart_that_is_blocked_is_told_beside_a_deployment_that_is_ready() {
    let mut body = ready();
    let blocked = condition("RestartBlocked", "True", "NoField", "its child has no field for restarts");
    body["status"]["conditions"].as_array_mut().unwrap().push(blocked);
    let told = noted(WEB, &[deployment(body), set(ready())]);
    assert!(told.contains("its child has no field for restarts"), "{told}");
}

#[test]
fn what_an_object_says_against_itself_is_told_beside_its_readiness() {
    let well = condition("Ready", "True", "Ready", "");
    let bad = |type_: &str| condition(type_, "True", "Why", "as it says");
    for (status, words) in [
        (json!({"conditions": [well, bad("InvalidSpec")]}), "it reports InvalidSpec True: Why, as it says"),
        (json!({"conditions": [well, bad("Degraded")]}), "it reports Degraded True: Why, as it says"),
        (
            json!({"conditions": [well], "health": {"status": "Degraded"}}),
            "its status.health.status is Degraded",
        ),
    ] {
        let told =
            noted("Shop/web", &[object("example.com/v1", "Shop", "web", None, json!({"status": status}))]);
        assert_eq!(told, words);
    }
    let known = json!({"status": {"conditions": [well, bad("Known")], "phase": "Running"}});
    assert_eq!(noted("Shop/web", &[object("example.com/v1", "Shop", "web", None, known)]), "");
}

#[test]
fn a_node_that_takes_no_pods_is_told_so() {
    let conditions =
        [condition("Ready", "True", "KubeletReady", ""), condition("DiskPressure", "True", "Full", "")];
    let body = json!({"spec": {"unschedulable": true}, "status": {"conditions": conditions}});
    let told = noted("Node/n1", &[wide("v1", "Node", "n1", body)]);
    assert!(
        told.contains("its spec.unschedulable is true: it takes no new pods, except those that tolerate it")
            && told.contains("DiskPressure True: Full"),
        "{told}"
    );
}

#[test]
fn a_spec_that_is_suspended_is_told_also_beside_a_finding() {
    let status = json!({"conditions": [condition("Ready", "False", "InstallFailed", "timed out")]});
    let body = json!({"spec": {"suspend": true}, "status": status});
    let told = noted("HelmRelease/web", &[object("helm.example.com/v2", "HelmRelease", "web", None, body)]);
    assert!(told.contains("its spec.suspend is true: it begins nothing new"), "{told}");
    // It is the finding itself.
    let job = object("batch/v1", "Job", "train", None, json!({"spec": {"suspend": true}}));
    assert_eq!(noted("Job/train", &[job]), "");
}

#[test]
fn a_deployment_whose_child_is_gone_is_not_called_ready() {
    let mut body = ready();
    body["status"]["child"] = json!({"apiVersion": GROUP, "kind": "BasicReplicaSet", "name": "web"});
    let web = deployment(body);
    let gone = ask_exactly(WEB, std::slice::from_ref(&web), &calm());
    assert!(
        !gone.well && gone.sentence.contains("its child BasicReplicaSet/web was not found"),
        "{}",
        gone.sentence
    );
    assert!(ask(WEB, &[web, set(ready())], &calm()).well);
}

#[test]
fn a_daemon_set_that_nobody_has_looked_at_is_not_called_ready() {
    let zeros = json!({"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0});
    let answer = ask(
        "DaemonSet/agent",
        &[object("apps/v1", "DaemonSet", "agent", None, json!({"status": zeros}))],
        &calm(),
    );
    assert_eq!(answer.root_cause.unwrap().reason, "NotObserved");
    assert_eq!(answer.remarks, [""; 0]);
}

#[test]
fn settings_of_command_runner_that_were_refused_are_told_beside_a_command() {
    let running = json!({"status": {"conditions": [
        condition("Bound", "True", "Bound", ""), condition("Succeeded", "Unknown", "Restarting", ""),
    ]}});
    let mut surroundings = super::controllers::refused_settings("x");
    surroundings.refused_settings[0].controller = "command-runner".into();
    let objects = [deployment(ready()), command("r1", true, running)];
    let told = ask("BasicDeploymentRestart/r1", &objects, &surroundings).remarks.join("; ");
    assert!(told.contains("command-runner does not take its newer settings"), "{told}");
}

/// A command in an advice can be typed as it stands, or is named without its arguments on purpose.
#[test]
fn no_advice_ends_in_a_command_without_its_object() {
    let is_incomplete = |remedy: &str| {
        let Some((_, command)) = remedy.rsplit_once("kubectl") else { return false };
        let command = command.replace("{namespace}", "");
        let has_object = command.contains(|letter: char| letter == '{' || letter.is_uppercase());
        let complete = if command.trim().starts_with("catena ") { 4 } else { 2 };
        command.split_whitespace().count() < complete && !has_object
    };
    for command in
        ["kubectl catena why", "kubectl catena{namespace} history lists", "kubectl{namespace} describe"]
    {
        assert!(is_incomplete(&format!("see {command}")), "{command}");
    }
    let rows = crate::why::reasons::rows();
    let wrong: Vec<_> = rows.map(|row| &row.remedy).filter(|remedy| is_incomplete(remedy)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

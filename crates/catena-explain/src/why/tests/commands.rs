//! Commands that ended late, wait for a pause, or are carried out by somebody who says nothing.

use catena_cluster::Identity;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::scene::*;
use crate::why::facts::{Surroundings, Warning};

const LATE: &str = "2026-01-01T00:09:00Z";

fn bound() -> Value {
    condition("Bound", "True", "Bound", "")
}

/// A condition of the end of a command.
fn ended(status: &str, reason: &str, message: &str, at: &str) -> Value {
    let mut ended = condition("Succeeded", status, reason, message);
    ended["lastTransitionTime"] = at.into();
    ended
}

fn expired(is_bound: bool, first: Value, message: &str, started: Option<&str>) -> DynamicObject {
    let message = format!("its deadline has passed: {message}");
    let conditions = [first, ended("False", "DeadlineExceeded", &message, LATE)];
    command("r2", is_bound, json!({"status": {"startTime": started, "conditions": conditions}}))
}

fn unfinished(name: &str) -> DynamicObject {
    let conditions = [bound(), condition("Succeeded", "Unknown", "Restarting", "")];
    let created = json!({"creationTimestamp": "2026-01-01T00:05:00Z"});
    command(name, true, json!({"metadata": created, "status": {"conditions": conditions}}))
}

const ASKED: &str = "BasicDeploymentRestart/r2";
const NOT_CARRIED_OUT: &str = "it was not carried out in time";

#[test]
fn a_command_that_was_not_bound_in_time_tells_why() {
    let message = "there is no BasicDeployment \"web\"; create it, or delete this command";
    let why = condition("Bound", "False", "TargetNotFound", message);
    let late = expired(false, why, "it was not bound to its target by then: see the condition Bound", None);
    let target = Identity { kind: "BasicDeployment".into(), name: "web".into(), ..Identity::default() };
    let lost = Surroundings { missing_target: Some(target), ..calm() };
    let cause = ask_exactly(ASKED, &[late], &lost).root_cause.unwrap();
    let says =
        "did not finish within its activeDeadlineSeconds: it names BasicDeployment/web, which does not exist";
    assert_eq!((&*cause.reason, &*cause.meaning), ("DeadlineExceeded", says));
    assert!(cause.message.ends_with(message), "{}", cause.message);
    assert!(cause.advice.starts_with("create the target"), "{}", cause.advice);
    assert!(cause.advice.ends_with("; then issue the command again"), "{}", cause.advice);
}

#[test]
fn a_right_that_the_binder_lacks_is_told_as_such() {
    let said = "BasicDeployment \"web\" cannot be read: basicdeployments.catena.dev \"web\" is forbidden: User \"system:serviceaccount:catena-system:command-binder\" cannot get resource \"basicdeployments\" in API group \"catena.dev\" in the namespace \"shop\"";
    let about = ASKED.to_owned();
    let warning = Warning {
        about,
        by: "command-binder".into(),
        reason: "Forbidden".into(),
        message: said.into(),
        at: LATE.parse().ok(),
        ..Warning::default()
    };
    let surroundings = Surroundings { warnings: vec![warning], ..calm() };
    let cause = ask_exactly(ASKED, &[command("r2", false, json!({}))], &surroundings).root_cause.unwrap();
    assert!(cause.meaning.starts_with("has a controller that lacks a right"), "{cause:?}");
}

#[test]
fn what_stands_in_the_way_today_is_not_blamed_for_a_command_that_expired() {
    let why = condition("Bound", "False", "CrossNamespace", "its target is in another namespace");
    let late = |bound: Value| expired(false, bound, "it was not bound to its target by then", None);
    let absent = without("command-binder");
    let cause = ask_exactly(ASKED, &[late(why)], &absent).root_cause.unwrap();
    assert!(cause.message.ends_with("its target is in another namespace"), "{cause:?}");
    let cause = ask_exactly(ASKED, &[late(bound())], &absent).root_cause.unwrap();
    assert!(!cause.meaning.contains("bound") && !cause.meaning.contains("running"), "{cause:?}");
}

#[test]
fn a_command_that_expired_names_the_older_one_that_was_in_its_way() {
    let late = || expired(true, bound(), NOT_CARRIED_OUT, None);
    let says = "BasicDeploymentRestart/r2 did not finish within its activeDeadlineSeconds: it waited for BasicDeploymentRestart/r1, which is older";
    let finished = |at: &str| {
        let mut first = unfinished("r1");
        first.data["status"]["conditions"] = json!([bound(), ended("True", "Restarted", "", at)]);
        first
    };
    for first in [unfinished("r1"), finished("2026-01-01T00:09:30Z")] {
        let answer = ask(ASKED, &[deployment(ready()), first, late()], &calm());
        assert!(answer.sentence.starts_with(says), "{}", answer.sentence);
        let cause = answer.root_cause.unwrap();
        assert_eq!(cause.message, format!("its deadline has passed: {NOT_CARRIED_OUT}"));
        let advice = cause.advice;
        assert!(
            advice.contains("kubectl catena -n shop why basicdeploymentrestart.catena.dev/r1;"),
            "{advice}"
        );
    }
    // One that was finished long before was not in its way.
    let answer = ask(ASKED, &[deployment(ready()), finished(THEN), late()], &calm());
    assert!(!answer.sentence.contains("r1"), "{}", answer.sentence);
    let advice = answer.root_cause.unwrap().advice;
    assert!(advice.contains("kubectl catena -n shop why basicdeployment.catena.dev/web;"), "{advice}");
}

#[test]
fn a_command_that_expired_leads_to_the_obstacle_that_its_target_had_then() {
    let pod = waiting("web-x", "ErrImagePull", "not found");
    let mut objects = blocked_by_pod(pod, "ErrImagePull");
    objects.push(expired(true, bound(), "it was carried out, but had not succeeded", Some(THEN)));
    let answer = ask(ASKED, &objects, &calm());
    let says =
        "BasicDeploymentRestart/r2 did not finish in time: Pod/web-x cannot pull its image (ErrImagePull";
    assert!(answer.sentence.starts_with(says), "{}", answer.sentence);
    let advice = answer.root_cause.unwrap().advice;
    assert!(advice.ends_with("; then issue the command again"), "{advice}");
    // What began later has not held it up.
    objects[2].data["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:09:30Z".into();
    let answer = ask(ASKED, &objects, &calm());
    assert_eq!(answer.root_cause.unwrap().reason, "DeadlineExceeded");
    let mut paused = deployment(not_ready("Paused", "", Value::Null));
    paused.data["spec"]["paused"] = true.into();
    let late = expired(true, bound(), NOT_CARRIED_OUT, None);
    let cause = ask(ASKED, &[paused, late], &calm()).root_cause.unwrap();
    assert!(cause.meaning.ends_with("it waits, because its target is paused"), "{}", cause.meaning);
    assert!(
        cause.advice.contains("kubectl -n shop patch basicdeployment.catena.dev/web "),
        "{}",
        cause.advice
    );
}

/// A command of another project, for an object of another one, as command-runner reports on it.
fn drain(reason: &str) -> DynamicObject {
    let by_runner = json!([{"manager": "command-runner", "subresource": "status", "time": THEN, "fieldsV1": {"f:status": {}}}]);
    let conditions =
        [condition("Succeeded", "Unknown", reason, ""), condition("Reconciling", "True", reason, "")];
    let body = json!({"metadata": {"managedFields": by_runner}, "status": {"conditions": conditions}});
    let mut drain = object("ops.example.com/v1", "Drain", "now", Some("Shop/main"), body);
    drain.metadata.owner_references.as_mut().unwrap()[0].api_version = "apps.example.com/v1".into();
    drain
}

#[test]
fn a_command_of_another_project_on_which_command_runner_reports_is_one() {
    let shop = |spec: Value| object("apps.example.com/v1", "Shop", "main", None, spec);
    let told = |spec: Value, reason: &str| ask_exactly("Drain/now", &[shop(spec), drain(reason)], &calm());
    let answer = told(json!({}), "Running");
    let says = "Drain/now is carried out, and waits for Shop/main, which reports nothing (Running for 3m).";
    assert_eq!(answer.sentence, says);
    let advice = answer.root_cause.unwrap().advice;
    assert!(advice.ends_with("kubectl -n shop describe shop.apps.example.com/main"), "{advice}");
    let answer = told(json!({"status": {"tills": 2}}), "Running");
    assert_eq!(answer.sentence, "Drain/now is in progress (Running for 3m).");
    // A pause of its target is ended there.
    let answer = told(json!({"spec": {"paused": true}}), "Paused");
    assert_eq!(answer.sentence, "Drain/now waits, because its target is paused (Paused for 3m).");
    let advice = answer.root_cause.unwrap().advice;
    assert!(advice.contains("kubectl -n shop patch shop.apps.example.com/main "), "{advice}");
    let surroundings = without("command-runner");
    let answer = ask_exactly("Drain/now", &[shop(json!({})), drain("Running")], &surroundings);
    assert_eq!(answer.root_cause.unwrap().reason, "ControllerNotRunning");
}

#[test]
fn a_command_that_waits_for_a_pause_does_so_whatever_the_pods_of_its_target_suffer_from() {
    let mut objects = blocked_by_pod(waiting("web-x", "ErrImagePull", "not found"), "ErrImagePull");
    objects[0].data["spec"]["paused"] = true.into();
    let conditions = [bound(), condition("Succeeded", "Unknown", "Paused", "it waits")];
    objects.push(command("r2", true, json!({"status": {"conditions": conditions}})));
    assert_eq!(ask(ASKED, &objects, &calm()).root_cause.unwrap().reason, "Paused");
}

#[test]
fn a_command_on_which_a_controller_that_runs_has_not_reported_names_it() {
    let objects = [deployment(ready()), command("r2", true, json!({}))];
    let answer = ask(ASKED, &objects, &calm());
    let says = "BasicDeploymentRestart/r2 has not been reconciled by command-runner, which is running (NotCarriedOut for 3m).";
    assert_eq!(answer.sentence, says);
    assert!(answer.root_cause.unwrap().advice.starts_with("read the logs of command-runner"));
}

#[test]
fn the_remedy_for_a_command_names_its_target() {
    let failed = |reason: &str| {
        let conditions = [bound(), condition("Succeeded", "False", reason, "")];
        let failed = command("r2", true, json!({"status": {"conditions": conditions}}));
        ask(ASKED, &[deployment(ready()), failed], &calm()).root_cause.unwrap().advice
    };
    assert!(
        failed("RevisionNotFound").contains("kubectl catena -n shop history basicdeployment.catena.dev/web")
    );
    assert!(
        failed("TokenInFuture").contains("kubectl -n shop patch basicdeployment.catena.dev/web --type merge")
    );
}

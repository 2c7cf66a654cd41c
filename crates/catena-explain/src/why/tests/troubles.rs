//! Several troubles at once: the first is the cause, and none of the others is concealed.

use serde_json::{Value, json};

use super::{WEB, scene::*};

#[test]
fn pods_with_other_troubles_are_counted_beside_the_cause_and_replicas_with_the_same_one_are_not() {
    let killed = json!({"reason": "OOMKilled", "exitCode": 137});
    let mut greedy = waiting("web-3", "CrashLoopBackOff", "back-off");
    greedy.data["status"]["containerStatuses"][0]["lastState"] = json!({"terminated": killed});
    let greedy_too = |name: &str| {
        let mut pod = greedy.clone();
        (pod.metadata.name, pod.metadata.uid) = (Some(name.into()), Some(format!("Pod/{name}")));
        pod
    };
    let pods = [
        waiting("web-1", "ErrImagePull", "not found"),
        waiting("web-2", "ImagePullBackOff", "Back-off"),
        greedy.clone(),
        greedy_too("web-4"),
        waiting("web-5", "CrashLoopBackOff", "back-off"),
    ];
    let body = || not_ready("Progressing", "0 of 5", Value::Null);
    let answer = ask_exactly(WEB, &[&[deployment(body()), set(body())][..], &pods].concat(), &calm());
    assert!(answer.sentence.contains("Pod/web-1 cannot pull its image"), "{}", answer.sentence);
    let told = "beside it, 3 objects have other troubles: Pod/web-3 exceeded its memory limit (CrashLoopBackOff; 1 more like it), and Pod/web-5 has a container that exits again and again (CrashLoopBackOff)";
    assert_eq!(answer.remarks, [told]);
    let alone = ask_exactly(WEB, &[&[deployment(body()), set(body())][..], &pods[..2]].concat(), &calm());
    assert_eq!(alone.remarks, [""; 0]);
}

#[test]
fn pods_of_which_the_scheduler_says_something_else_are_counted_beside_the_cause() {
    let unplaced = |name: &str, said: &str| {
        let told = condition("PodScheduled", "False", "Unschedulable", said);
        pod(name, json!({"phase": "Pending", "conditions": [told]}))
    };
    let full = "0/3 nodes are available: 3 Insufficient cpu.";
    let elsewhere = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.";
    let pods = [("a", full), ("b", full), ("c", elsewhere), ("d", elsewhere)]
        .map(|(name, said)| unplaced(name, said));
    let body = || not_ready("Progressing", "0 of 4", Value::Null);
    let answer = ask_exactly(WEB, &[&[deployment(body()), set(body())][..], &pods].concat(), &calm());
    assert!(answer.sentence.contains("Pod/a fits on no node: 3 Insufficient cpu"), "{}", answer.sentence);
    let told = "beside it, 2 objects have other troubles: Pod/c fits on no node: 3 node(s) didn't match Pod's node affinity/selector (Unschedulable; 1 more like it)";
    assert_eq!(answer.remarks, [told]);
}

/// It is well just now.
#[test]
fn a_pod_that_serves_between_two_crashes_is_noted() {
    let ended =
        json!({"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-01-01T00:09:35Z"}});
    let mut pod = serving("web-x");
    pod.data["status"]["containerStatuses"] = json!([{"name": "main", "ready": true, "restartCount": 41, "state": {"running": {}}, "lastState": ended}]);
    let answer = ask(WEB, &[deployment(ready()), set(ready()), pod], &calm());
    assert_eq!(answer.remarks, ["Pod/web-x was restarted 41 times, last 25s ago (OOMKilled)"]);
}

#[test]
fn pods_that_fail_are_told_beside_a_quota() {
    let blocked =
        || blocker("BasicReplicaSet", "web", "QuotaExceeded", "exceeded quota: small, requested: pods=1");
    let body = || not_ready("QuotaExceeded", "exceeded quota: small, requested: pods=1", blocked());
    let objects = [deployment(body()), set(body()), waiting("web-1", "ImagePullBackOff", "not found")];
    let answer = ask_exactly(WEB, &objects, &calm());
    assert!(answer.sentence.contains("BasicReplicaSet/web is refused by"), "{}", answer.sentence);
    let told = "beside it, 1 object has another trouble: Pod/web-1 cannot pull its image (ImagePullBackOff)";
    assert_eq!(answer.remarks, [told]);
}

/// Whoever ends the pause rolls out the change that waits.
#[test]
fn what_fails_below_a_pause_is_told_beside_it() {
    let mut objects = blocked_by_pod(waiting("web-x", "CrashLoopBackOff", "back-off"), "CrashLoopBackOff");
    objects[0].data["spec"]["paused"] = true.into();
    objects[0].data["status"]["conditions"][0]["reason"] = "Paused".into();
    let answer = ask(WEB, &objects, &calm());
    assert!(answer.sentence.starts_with("BasicDeployment/web is paused"), "{}", answer.sentence);
    let told = "beside it, 1 object has another trouble: Pod/web-x has a container that exits again and again (CrashLoopBackOff)";
    assert_eq!(answer.remarks, [told]);
    let advice = answer.root_cause.unwrap().advice;
    assert!(advice.starts_with("let it go on, with all changes that wait in its spec: "), "{advice}");
    // It may be the set that is refused.
    let said = "exceeded quota: small, requested: pods=1";
    let refused = not_ready("QuotaExceeded", said, blocker("BasicReplicaSet", "web", "QuotaExceeded", said));
    let mut parent = not_ready("Paused", "spec.paused is true", Value::Null);
    parent["spec"]["paused"] = true.into();
    let remarks = ask_exactly(WEB, &[deployment(parent), set(refused)], &calm()).remarks;
    assert!(
        remarks[0].contains("BasicReplicaSet/web is refused by an exhausted ResourceQuota"),
        "{remarks:?}"
    );
}

#[test]
fn two_writers_that_change_a_spec_in_turn_are_told_while_each_state_is_ready() {
    let revision = |number: i64, at: &str| {
        let write =
            json!([{"manager": "basic-deployment-controller", "time": at, "fieldsV1": {"f:revision": {}}}]);
        let body = json!({"revision": number, "metadata": {"managedFields": write}});
        object("apps/v1", "ControllerRevision", &format!("web-{number}"), Some(WEB), body)
    };
    let mut web = ready();
    let write = |by: &str| json!({"manager": by, "time": "2026-01-01T00:09:58Z", "fieldsV1": {"f:spec": {}}});
    web["metadata"] = json!({"generation": 18, "managedFields": [write("keel"), write("argocd")]});
    web["status"]["observedGeneration"] = 18.into();
    let mut restored = web.clone();
    restored["metadata"]["generation"] = 1.into();
    restored["status"]["observedGeneration"] = 1.into();
    let ask_with = |revisions: [(i64, &str); 3]| {
        let revisions = revisions.map(|(number, at)| revision(number, at));
        ask(WEB, &[&[deployment(web.clone()), set(ready())][..], &revisions].concat(), &calm())
    };
    let first = (1, THEN);
    let fight = ask_with([first, (16, "2026-01-01T00:09:56Z"), (17, "2026-01-01T00:09:58Z")]);
    let says = "BasicDeployment/web has a spec that is changed again and again: its revisions 16 and 17 are 2s apart; the last change was made by keel or argocd (RepeatedWrites).";
    assert_eq!(fight.sentence, says);
    let two = [revision(16, "2026-01-01T00:09:56Z"), revision(17, "2026-01-01T00:09:58Z")];
    let two = ask(WEB, &[&[deployment(web.clone()), set(ready())][..], &two].concat(), &calm());
    assert_eq!(two.sentence, says, "there may be no other rendering");
    let advice = fight.root_cause.unwrap().advice;
    assert!(advice.contains("kubectl -n shop get basicdeployment.catena.dev/web --output yaml"), "{advice}");
    let new = [revision(9, "2026-01-01T00:09:57Z"), revision(17, "2026-01-01T00:09:58Z")];
    assert!(ask(WEB, &[&[deployment(restored), set(ready())][..], &new].concat(), &calm()).well);
    // Somebody corrects a mistake at once; or did so often, and not lately.
    assert!(ask_with([first, (2, "2026-01-01T00:09:56Z"), (3, "2026-01-01T00:09:58Z")]).well);
    assert!(ask_with([first, (16, "2026-01-01T00:08:56Z"), (17, "2026-01-01T00:08:58Z")]).well);
    assert!(ask_with([first, (16, "2026-01-01T00:09:30Z"), (17, "2026-01-01T00:09:58Z")]).well);
}

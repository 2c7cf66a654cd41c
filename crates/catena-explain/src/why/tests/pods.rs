//! Scenes of pods that cannot start or do not serve, and of writes that are refused.

use catena_cluster::testing::serving as server;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{
    scene::*,
    scenes::{Scene, assert_right},
};
use crate::why::{
    answer::Answer,
    facts::{Surroundings, Warning},
    gather::pulling,
    read::alone,
};

const WEB: &str = "BasicDeployment/web";

fn scene(
    name: &'static str,
    objects: Vec<DynamicObject>,
    says: &'static str,
    advises: &'static str,
) -> Scene {
    Scene { name, asked: WEB, objects, surroundings: calm(), says, advises }
}

/// A pod with a container in this state.
fn container(state: &Value, last: &Value) -> Vec<DynamicObject> {
    let container = json!({"name": "main", "state": state, "lastState": last});
    let status = json!({
        "phase": "Running", "containerStatuses": [container],
        "conditions": [condition("Ready", "False", "ContainersNotReady", "containers with unready status: [main]")],
    });
    blocked_by_pod(pod("web-x", status), "NotReady")
}

fn waits(reason: &str, message: &str) -> Vec<DynamicObject> {
    blocked_by_pod(waiting("web-x", reason, message), reason)
}

fn ended(phase: &str, reason: &str) -> Vec<DynamicObject> {
    blocked_by_pod(pod("web-x", json!({"phase": phase, "reason": reason})), reason)
}

#[test]
fn each_trouble_of_a_pod_has_a_sentence_and_an_advice_of_its_own() {
    let crashed =
        json!({"terminated": {"reason": "Error", "exitCode": 1, "message": "no database at db:5432"}});
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"}});
    let killed = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
    let probe = condition("Ready", "False", "ContainersNotReady", "containers with unready status: [main]");
    let unready = pod("web-x", json!({"phase": "Running", "conditions": [probe]}));
    let gated = condition("PodScheduled", "False", "SchedulingGated", "Scheduling is blocked");
    let gated = pod("web-x", json!({"phase": "Pending", "conditions": [gated]}));
    let run_as_root = "container has runAsNonRoot and image will run as root";
    assert_right(&[
        scene(
            "an image that is not there",
            waits("ImagePullBackOff", "not found"),
            "BasicDeployment/web is not ready: Pod/web-x cannot pull its image (ImagePullBackOff",
            "correct the image",
        ),
        scene(
            "an image name that is none",
            waits("InvalidImageName", "invalid reference"),
            "BasicDeployment/web is not ready: Pod/web-x cannot pull its image (InvalidImageName",
            "correct the image",
        ),
        scene(
            "a Secret that is not there",
            waits("CreateContainerConfigError", "secret \"db\" not found"),
            "BasicDeployment/web is not ready: Pod/web-x has a container that cannot be created",
            "create the ConfigMap, Secret or key",
        ),
        scene(
            "an image that runs as root",
            waits("CreateContainerConfigError", run_as_root),
            "BasicDeployment/web is not ready: Pod/web-x has an image that runs as root",
            "runAsUser",
        ),
        scene(
            "a crash loop",
            container(&back_off, &crashed),
            "BasicDeployment/web is not ready: Pod/web-x has a container that exits again and again",
            "logs web-x --previous",
        ),
        scene(
            "out of memory",
            container(&killed, &json!({})),
            "BasicDeployment/web is not ready: Pod/web-x exceeded its memory limit",
            "raise the memory limit",
        ),
        scene(
            "a readiness probe that fails",
            blocked_by_pod(unready, "NotReady"),
            "BasicDeployment/web is not ready: Pod/web-x is running, but not ready",
            "readiness probe fails",
        ),
        scene(
            "a scheduling gate",
            blocked_by_pod(gated, "SchedulingGated"),
            "BasicDeployment/web is not ready: Pod/web-x is held back by a scheduling gate",
            "spec.schedulingGates",
        ),
        scene(
            "evicted",
            ended("Failed", "Evicted"),
            "BasicDeployment/web is not ready: Pod/web-x was removed from its node",
            "conditions of the node",
        ),
    ]);
}

#[test]
fn what_a_registry_or_a_kubelet_refuses_has_an_advice_of_its_own() {
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"}});
    assert_right(&[
        scene(
            "a limited registry",
            waits("ErrImagePull", "pulling image: 429 Too Many Requests - toomanyrequests: too many pulls"),
            "BasicDeployment/web is not ready: Pod/web-x cannot pull its image, because the registry limits",
            "a pull secret in spec.parameters",
        ),
        scene(
            "a registry that is down",
            waits("ImagePullBackOff", "unexpected status from HEAD request: 503 Service Unavailable"),
            "BasicDeployment/web is not ready: Pod/web-x cannot pull its image, because the registry does not",
            "the pull is retried",
        ),
        scene(
            "a full disk",
            waits("ErrImagePull", "write /var/lib/containerd/x: no space left on device"),
            "BasicDeployment/web is not ready: Pod/web-x cannot pull its image, because the disk",
            "free space on the node",
        ),
        scene(
            "a registry that is not trusted",
            waits("ErrImagePull", "x509: certificate signed by unknown authority"),
            "BasicDeployment/web is not ready: Pod/web-x cannot pull its image, because its node does not trust",
            "container runtime of the nodes",
        ),
        scene(
            "a container that says the same of others",
            container(
                &back_off,
                &json!({"terminated": {"reason": "Error", "exitCode": 1, "message": "x509: unknown authority"}}),
            ),
            "BasicDeployment/web is not ready: Pod/web-x has a container that exits again and again",
            "logs web-x --previous",
        ),
        scene(
            "a command that is not there",
            waits("RunContainerError", "exec: \"/srv/web\": no such file or directory"),
            "BasicDeployment/web is not ready: Pod/web-x has a container that cannot be started",
            "correct its command",
        ),
        scene(
            "a command that is not there, between two attempts",
            container(
                &back_off,
                &json!({"terminated": {"reason": "StartError", "exitCode": 128, "message": "no such file"}}),
            ),
            "BasicDeployment/web is not ready: Pod/web-x has a container that cannot be started",
            "correct its command",
        ),
        scene(
            "a path below a volume that cannot be made",
            waits("CreateContainerConfigError", "failed to prepare subPath for volumeMount \"cfg\""),
            "BasicDeployment/web is not ready: Pod/web-x has a container that cannot be created",
            "follow the message",
        ),
    ]);
}

#[test]
fn a_crash_loop_is_told_with_the_last_words_of_the_container() {
    let crashed = json!({"terminated": {"reason": "Error", "exitCode": 1, "message": "starting\nno database at db:5432\n"}});
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"}});
    let cause = ask(WEB, &container(&back_off, &crashed), &calm()).root_cause.unwrap();
    assert!(cause.message.ends_with("exit code 1, and said: no database at db:5432"), "{}", cause.message);
}

/// A workload with pods that ended, and one that was created at that time.
fn failing(api_version: &str, kind: &str, ends: &[(&str, &str, &str)], newest: Option<&str>) -> Answer {
    let body = json!({"spec": {"replicas": 1}, "status": {
        "observedGeneration": 1, "replicas": 1, "readyReplicas": 0, "desiredNumberScheduled": 1, "numberReady": 0,
    }});
    let owner = format!("{kind}/web");
    let mut objects = vec![object(api_version, kind, "web", None, body)];
    let mut add = |created: &str, status: Value| {
        let body = json!({
            "metadata": {"creationTimestamp": created}, "spec": {"nodeName": "hand-1"}, "status": status,
        });
        let name = format!("web-{}", objects.len());
        objects.push(object("v1", "Pod", &name, Some(&owner), body));
    };
    for (created, reason, message) in ends {
        add(created, json!({"phase": "Failed", "reason": reason, "message": message}));
    }
    if let Some(created) = newest {
        add(created, json!({"phase": "Pending"}));
    }
    ask_exactly(&owner, &objects, &calm())
}

#[test]
fn pods_that_are_rejected_one_after_another_are_told_instead_of_the_newest_that_is_starting() {
    let no_device = "Pod was rejected: Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected";
    let no_cpu =
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 10, used: 8000, capacity: 8000";
    let other =
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector";
    let sets = [
        ("apps/v1", "ReplicaSet"),
        ("apps/v1", "DaemonSet"),
        ("apps/v1", "StatefulSet"),
        (GROUP, "BasicReplicaSet"),
    ];
    for (api_version, kind) in sets {
        for (reason, message) in
            [("UnexpectedAdmissionError", no_device), ("OutOfcpu", no_cpu), ("NodeAffinity", other)]
        {
            let (first, second) = ("2026-01-01T00:09:55Z", "2026-01-01T00:09:57Z");
            let ends = [(first, reason, message), (second, reason, message)];
            for (ends, newest) in
                [(&ends[..], Some("2026-01-01T00:09:59Z")), (&ends[..], None), (&ends[..1], Some(second))]
            {
                let answer = failing(api_version, kind, ends, newest);
                let cause = answer.root_cause.unwrap();
                assert!(cause.meaning.starts_with("was rejected by its node"), "{}", answer.sentence);
                assert_eq!(
                    cause.meaning.contains("one of 2 such pods of"),
                    ends.len() == 2,
                    "{}",
                    cause.meaning
                );
                assert!(
                    cause.message == message && cause.advice.ends_with("kubectl describe Node/hand-1"),
                    "{cause:?}"
                );
                assert_eq!(answer.remarks, [""; 0]);
            }
        }
    }
}

#[test]
fn the_end_of_a_former_pod_of_the_same_name_is_told_while_the_next_one_starts() {
    let told = |since: &str, reason: &str, message: &str, status: Value| {
        let mut ended = blocker("Pod", "web-x", reason, message);
        ended["since"] = json!(since);
        let report = not_ready("Scaling", "0 of 3 pods are serving", ended);
        let mut next = pod("web-x", status);
        next.metadata.creation_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T00:09:58Z")).unwrap());
        ask(WEB, &[deployment(report.clone()), set(report), next], &calm()).sentence
    };
    let starting = || json!({"phase": "Pending"});
    let no_cpu =
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 10, used: 8000, capacity: 8000";
    for (reason, message, said) in [
        ("OutOfcpu", no_cpu, "was rejected by its node (OutOfcpu for 12s)."),
        ("PodFailed", "exit code 1", "has a container that failed (PodFailed for 12s)."),
        ("Evicted", "low on memory", "was removed from its node (Evicted for 12s)."),
    ] {
        let sentence = told("2026-01-01T00:09:48Z", reason, message, starting());
        assert_eq!(sentence, format!("BasicDeployment/web is not ready: Pod/web-x {said}"));
    }
    // Also by a clock that is behind.
    for since in ["2026-01-01T00:09:58Z", "2026-01-01T00:09:56Z"] {
        let of_itself = told(since, "NotReady", "", starting());
        assert!(of_itself.ends_with("Pod/web-x is starting (Starting for 2s)."), "{of_itself}");
    }
    let unpulled = waiting("web-x", "ImagePullBackOff", "not found").data["status"].take();
    let own = told("2026-01-01T00:09:48Z", "OutOfcpu", no_cpu, unpulled);
    assert!(own.contains("(ImagePullBackOff"), "{own}");
}

#[test]
fn pods_that_are_evicted_one_after_another_are_told_and_one_from_long_ago_is_not() {
    let low = "The node was low on resource: ephemeral-storage. Threshold quantity: 1, available: 0.";
    let ends = [("2026-01-01T00:01:00Z", "Evicted", low), ("2026-01-01T00:09:40Z", "Evicted", low)];
    let told = |ends: &[(&str, &str, &str)], newest| failing("apps/v1", "ReplicaSet", ends, Some(newest));
    let again = told(&ends, "2026-01-01T00:09:59Z").root_cause.unwrap();
    assert_eq!(again.meaning, "was removed from its node, one of 2 such pods of ReplicaSet/web");
    assert!(!again.is_progress);
    let once = told(&ends[1..], "2026-01-01T00:09:59Z");
    assert_eq!((once.root_cause.unwrap().reason, once.remarks.len()), ("Starting".into(), 0));
    let later = told(&ends, "2026-01-01T00:09:41Z");
    // It starts for longer than one that is rejected.
    let grown = told(&[("2026-01-01T00:08:00Z", "Evicted", low), ends[0]], "2026-01-01T00:09:00Z");
    assert_eq!(later.root_cause.unwrap().reason, "Evicted");
    assert_eq!(grown.root_cause.unwrap().reason, "Starting");
    let note = "Pod/web-1 was removed from its node, one of 2 such pods of ReplicaSet/web (Evicted 2m ago): The node was low on resource";
    assert!(grown.remarks[0].starts_with(note), "{:?}", grown.remarks);
    let rejected = "Pod was rejected: The node had condition: [DiskPressure]. ";
    let long_ago = [("2025-12-31T00:00:00Z", "Evicted", rejected)];
    let kept = failing(GROUP, "BasicReplicaSet", &long_ago, None).root_cause.unwrap();
    assert_eq!(kept.reason, "Evicted", "its controller has made no other one");
    let old = told(&long_ago, "2026-01-01T00:09:59Z");
    assert_eq!((old.root_cause.unwrap().reason, old.remarks.len()), ("Starting".into(), 0));
    let limit = "Usage of EmptyDir volume \"cache\" exceeds the limit \"10Mi\". ";
    let full = told(&[("2026-01-01T00:09:40Z", "Evicted", limit)], "2026-01-01T00:09:59Z");
    assert!(full.root_cause.unwrap().meaning.starts_with("was evicted, because it used more local storage"));
}

#[test]
fn the_exit_code_of_a_crash_loop_is_told_in_words() {
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"}});
    for (code, reason, said, meaning) in [
        (0, "Completed", "", "has a container that completes again and again"),
        (139, "Error", "", "has a container that exits again and again with a segmentation fault"),
        (137, "Error", "", "has a container that exits again and again, because a signal ends it"),
        (143, "Error", "", "has a container that exits again and again, because a signal ends it"),
        (1, "Error", "a child exited with exit code 137", "has a container that exits again and again"),
        (1, "Error", "Liveness probe failed for backend db-2", "has a container that exits again and again"),
        (255, "Error", "exec /srv/web: exec format error", "has a program for another architecture"),
    ] {
        let ended = json!({"terminated": {"reason": reason, "exitCode": code, "message": said}});
        let cause = ask(WEB, &container(&back_off, &ended), &calm()).root_cause.unwrap();
        assert!(cause.meaning.starts_with(meaning), "{code}: {}", cause.meaning);
        assert_eq!(cause.meaning.contains("signal"), meaning.contains("signal"), "{code}: {}", cause.meaning);
    }
}

#[test]
fn a_pull_secret_that_does_not_exist_is_named_beside_the_refusal_of_the_registry() {
    let missing = Warning {
        about: "Pod/web-x".into(),
        reason: "FailedToRetrieveImagePullSecret".into(),
        message: "Unable to retrieve some image pull secrets (regcred); attempting to pull the image may not succeed."
            .into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    };
    let back_off =
        Warning { reason: "BackOff".into(), message: "Back-off pulling image".into(), ..missing.clone() };
    let surroundings = Surroundings { warnings: vec![missing, back_off], ..calm() };
    let told =
        |reason: &str, message: &str| ask(WEB, &waits(reason, message), &surroundings).root_cause.unwrap();
    let refused = told("ErrImagePull", "failed to authorize: 401 Unauthorized");
    assert_eq!(refused.meaning, "cannot pull its image, and has a pull secret that does not exist (regcred)");
    assert!(refused.message.starts_with("failed to authorize: 401 Unauthorized\nUnable to"), "{refused:?}");
    assert!(refused.advice.starts_with("create the pull secret in the namespace"), "{}", refused.advice);
    let down = told("ImagePullBackOff", "unexpected status: 503 Service Unavailable");
    assert!(down.meaning.contains("the registry does not answer"), "{}", down.meaning);
    // An image that needs none may be on its way.
    let starting = told("ContainerCreating", "");
    assert_eq!((&*starting.meaning, &*starting.reason), ("is starting", "Starting"));
}

#[test]
fn a_pod_whose_image_is_being_pulled_is_told_so() {
    let pulling = Warning {
        about: "Pod/web-x".into(),
        reason: "Pulling".into(),
        message: "Pulling image \"large:1\"".into(),
        at: THEN.parse().ok(),
        ..Warning::default()
    };
    let surroundings = Surroundings { pulling: vec![pulling], ..calm() };
    let cause = ask(WEB, &waits("ContainerCreating", ""), &surroundings).root_cause.unwrap();
    assert_eq!((&*cause.meaning, cause.is_progress), ("is pulling its image (large:1)", true));
}

#[tokio::test]
async fn the_event_about_a_pull_counts_until_the_kubelet_tells_something_else() {
    let told = async |reasons: &'static [&str]| {
        let (cluster, requests) = server(move |uri| {
            let event = |(number, reason): (usize, &&str)| {
                let at = format!("2026-01-01T00:00:0{number}Z");
                json!({"metadata": {"name": number.to_string()}, "involvedObject": {}, "reason": reason, "lastTimestamp": at})
            };
            let items: Vec<_> = reasons.iter().enumerate().map(event).collect();
            uri.contains("/events?")
                .then(|| json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}))
        });
        let pod = alone(waiting("web-x", "ContainerCreating", "")).unwrap();
        let pulls = pulling(&cluster, &pod).await.is_some();
        assert!(
            requests.lock().unwrap()[0].contains("involvedObject.uid%3DPod%2Fweb-x%2Ctype%3DNormal"),
            "{requests:?}"
        );
        pulls
    };
    assert!(told(&["Scheduled", "Pulling"]).await);
    assert!(!told(&["Scheduled", "Pulling", "Pulled"]).await);
    assert!(!told(&[]).await);
}

#[test]
fn the_init_container_that_a_pod_waits_for_is_named_with_its_logs() {
    let running =
        |name: &str, started: bool| json!({"name": name, "started": started, "state": {"running": {}}});
    let told = |statuses: Value| {
        let mut pod = pod("web-x", json!({"phase": "Pending", "initContainerStatuses": statuses}));
        let inits = json!([{"name": "proxy", "restartPolicy": "Always"}, {"name": "migrate"}]);
        pod.data["spec"] = json!({"nodeName": "n1", "initContainers": inits});
        ask(WEB, &blocked_by_pod(pod, "NotReady"), &calm()).root_cause.unwrap()
    };
    let migrates = told(json!([running("proxy", true), running("migrate", true)]));
    assert_eq!(migrates.meaning, "waits for its init container migrate");
    assert_eq!(migrates.advice, "see what it does: kubectl -n shop logs web-x --container migrate");
    assert!(migrates.is_progress);
    assert_eq!(told(json!([running("proxy", true)])).meaning, "is starting");
    assert_eq!(told(json!([running("proxy", false)])).meaning, "waits for its init container proxy");
}

#[test]
fn a_container_that_fails_again_and_again_is_told_so_also_while_it_runs() {
    let told = |list: &str, started: &str, last: Value| {
        let container = json!({
            "name": "main", "ready": false, "restartCount": 40,
            "state": {"running": {"startedAt": started}}, "lastState": {"terminated": last},
        });
        let phase = if list == "containerStatuses" { "Running" } else { "Pending" };
        let unready = condition("Ready", "False", "ContainersNotReady", "unready: [main]");
        let mut pod = pod("web-x", json!({"phase": phase, "conditions": [unready], (list): [container]}));
        pod.data["spec"] = json!({"nodeName": "n1"});
        let back_off = Warning {
            about: "Pod/web-x".into(),
            reason: "BackOff".into(),
            message: "Back-off restarting failed container main".into(),
            at: THEN.parse().ok(),
            ..Warning::default()
        };
        let surroundings = Surroundings { warnings: vec![back_off], ..calm() };
        ask(WEB, &blocked_by_pod(pod, "NotReady"), &surroundings).root_cause.unwrap()
    };
    let error = json!({"reason": "Error", "exitCode": 1, "message": "no database at db:5432"});
    for (list, advice) in [
        ("containerStatuses", "kubectl -n shop logs web-x --previous"),
        ("initContainerStatuses", "kubectl -n shop logs web-x --container main --previous"),
    ] {
        let crashes = told(list, "2026-01-01T00:09:30Z", error.clone());
        assert_eq!(crashes.meaning, "has a container that exits again and again");
        assert!(
            crashes.message.starts_with(
                "its last run exited with Error, exit code 1, and said: no database at db:5432\nBack-off"
            ),
            "{crashes:?}"
        );
        assert!(crashes.advice.ends_with(advice) && !crashes.is_progress, "{crashes:?}");
    }
    let killed = json!({"reason": "OOMKilled", "exitCode": 137});
    let killed = told("containerStatuses", "2026-01-01T00:09:30Z", killed);
    assert_eq!(killed.meaning, "exceeded its memory limit");
    // It has run for long, or was killed for its probe.
    let stopped = json!({"reason": "Error", "exitCode": 143});
    for (started, last) in [("2025-12-31T23:50:00Z", error), ("2026-01-01T00:09:30Z", stopped)] {
        assert_eq!(told("containerStatuses", started, last).meaning, "is running, but not ready");
    }
}

#[test]
fn a_container_that_is_killed_leads_to_the_probe_or_the_hook_that_failed() {
    let back_off = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s restarting"}});
    let told = |code: i64, reason: &str, message: &str| {
        let warning = |reason: &str, message: &str| Warning {
            about: "Pod/web-x".into(),
            reason: reason.into(),
            message: message.into(),
            at: THEN.parse().ok(),
            ..Warning::default()
        };
        let newest =
            [warning("Unhealthy", "Readiness probe failed: refused"), warning("BackOff", "Back-off")];
        let warnings = [&[warning(reason, message)][..], &newest].concat();
        let ended = json!({"terminated": {"reason": "Error", "exitCode": code}});
        ask(WEB, &container(&back_off, &ended), &Surroundings { warnings, ..calm() }).root_cause.unwrap()
    };
    let probe = told(137, "Unhealthy", "Liveness probe failed: 500");
    assert!(probe.meaning.contains("liveness or startup probe fails"), "{}", probe.meaning);
    assert!(probe.message.ends_with("exit code 137\nLiveness probe failed: 500"), "{}", probe.message);
    assert!(probe.advice.contains("correct the probe"), "{}", probe.advice);
    let hook = told(137, "FailedPostStartHook", "PostStartHook failed");
    assert!(hook.meaning.contains("postStart hook"), "{}", hook.meaning);
    // It reports an error of its own, and answers no probe meanwhile.
    let own = told(1, "Unhealthy", "Liveness probe failed: refused");
    assert!(own.meaning.contains("exits again and again"), "{}", own.meaning);
    let other = told(137, "Strange", "a quince");
    assert!(other.meaning.contains("exits again and again"), "{}", other.meaning);
}

#[test]
fn each_refusal_has_a_sentence_and_an_advice_of_its_own() {
    let of = |(message, says, advises)| scene(message, refused("Forbidden", message), says, advises);
    let scenes = [
        (
            "pods \"x\" is forbidden: exceeded quota: two, requested: pods=1, used: pods=2, limited: pods=2",
            "BasicDeployment/web is refused by an exhausted ResourceQuota (two)",
            "raise the quota",
        ),
        (
            "pods \"x\" is forbidden: failed quota: q: must specify limits.cpu for: main",
            "BasicDeployment/web is refused by a ResourceQuota that demands requests or limits (q)",
            "LimitRange with defaults",
        ),
        (
            "pods \"x\" is forbidden: minimum memory usage per Container is 1Gi, but request is 16Mi",
            "BasicDeployment/web is refused by a LimitRange",
            "describe limitranges",
        ),
        (
            "Pod \"web-x\" is rejected: spec.containers[0].resources.requests: Invalid value: \"2\": must be less than or equal to cpu limit of 500m",
            "BasicDeployment/web asks for more than its limit (cpu)",
            "the default of a LimitRange",
        ),
        (
            "pods \"x\" is forbidden: error looking up service account shop/w: serviceaccount \"w\" not found",
            "BasicDeployment/web has pods with a ServiceAccount that does not exist (w)",
            "create the ServiceAccount",
        ),
        (
            "pods \"x\" is forbidden: no PriorityClass with name high was found",
            "BasicDeployment/web has pods with a PriorityClass that does not exist (high)",
            "create the PriorityClass",
        ),
        (
            "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": x",
            "BasicDeployment/web has pods that violate the namespace's Pod Security level",
            "security context",
        ),
        (
            "admission webhook \"a.example.com\" denied the request: no",
            "BasicDeployment/web has a write refused by an admission webhook (a.example.com)",
            "message of the webhook",
        ),
        (
            "failed calling webhook \"a.example.com\": refused",
            "BasicDeployment/web has a write refused because an admission webhook does not answer",
            "pods of the webhook",
        ),
        (
            "failed calling webhook \"a.example.com\": failed to call webhook: Post \"https://a.b.svc:443/?timeout=10s\": tls: failed to verify certificate: x509: certificate has expired",
            "BasicDeployment/web needs a webhook whose certificate is not trusted (a.example.com)",
            "renew its certificate",
        ),
        (
            "failed calling webhook \"a.example.com\": failed to call webhook: an error on the server (\"no\") has prevented the request from succeeding",
            "BasicDeployment/web needs a webhook that answers with an error (a.example.com)",
            "read the logs of the webhook",
        ),
        (
            "failed calling webhook \"a.example.com\": failed to call webhook: the server could not find the requested resource",
            "BasicDeployment/web needs a webhook that answers with an error (a.example.com)",
            "check the path",
        ),
        (
            "conversion webhook for a.example/v1, Kind=A failed: Post \"https://a.b.svc:443/\": x509: certificate signed by unknown authority",
            "BasicDeployment/web needs a webhook whose certificate is not trusted (a.example/v1)",
            "correct caBundle",
        ),
        (
            "conversion webhook for a.example/v1, Kind=A failed: couldn't get version/kind; json parse error: invalid character '<'",
            "BasicDeployment/web needs a webhook that answers with an error (a.example/v1)",
            "check the path",
        ),
        (
            "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "BasicDeployment/web has a write refused by a ValidatingAdmissionPolicy (p)",
            "message of the policy",
        ),
        (
            "pods is forbidden: User \"u\" cannot create resource \"pods\" in API group \"\"",
            "BasicDeployment/web has a controller that lacks a right",
            "grant the right",
        ),
        (
            "create not allowed while custom resource definition is terminating",
            "BasicDeployment/web is refused, because the CRD of its kind is being deleted",
            "create the CRD again",
        ),
    ];
    assert_right(&scenes.map(of));
}

#[test]
fn what_keeps_a_pod_from_starting_is_told_instead_of_waiting_for_it() {
    let pending = |status: Value| pod("web-x", status);
    let warned = |reason: &str, message: &str| {
        let warning = Warning {
            about: "Pod/web-x".into(),
            reason: reason.into(),
            message: message.into(),
            at: THEN.parse().ok(),
            ..Warning::default()
        };
        Surroundings { warnings: vec![warning], ..calm() }
    };
    let mut creating =
        pending(json!({"phase": "Pending", "conditions": [condition("PodScheduled", "True", "", "")]}));
    creating.data["spec"] = json!({"nodeName": "n1"});
    let gate = "corresponding condition of pod readiness gate \"lb\" does not exist.";
    let gated = json!({"phase": "Running", "conditions": [
        condition("ContainersReady", "True", "", ""), condition("Ready", "False", "ReadinessGatesNotReady", gate),
    ]});
    let ask = |pod: &DynamicObject, surroundings: &Surroundings| {
        ask(WEB, &blocked_by_pod(pod.clone(), "NotReady"), surroundings).root_cause.unwrap()
    };
    let mount = ask(&creating, &warned("FailedMount", "secret \"db\" not found"));
    assert_eq!((mount.reason.as_str(), mount.is_progress), ("FailedMount", false));
    assert_eq!(mount.message, "secret \"db\" not found");
    // A warning that nobody describes is quoted, and not to be waited for either.
    let strange = ask(&creating, &warned("Jammed", "a quince"));
    assert_eq!((strange.message.as_str(), strange.is_progress), ("a quince", false));
    assert!(strange.advice.starts_with("follow the message"), "{}", strange.advice);
    assert!(ask(&creating, &calm()).is_progress, "it is about to start");
    let overlooked = ask(&pending(json!({"phase": "Pending"})), &calm());
    assert_eq!(overlooked.reason, "NotScheduled");
    assert!(overlooked.meaning.contains("default-scheduler"), "{}", overlooked.meaning);
    let mut claims = pending(json!({"phase": "Pending"}));
    claims.data["spec"] = json!({"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared-gpu"}]});
    let template = "failed to create ResourceClaim: resourceclaimtemplate \"single-gpu\" not found";
    let refused = ask(&claims, &warned("FailedResourceClaimCreation", template));
    assert_eq!(
        (refused.reason.as_str(), refused.message.as_str()),
        ("FailedResourceClaimCreation", template)
    );
    assert!(refused.advice.contains("create the ResourceClaimTemplate"), "{}", refused.advice);
    let claims = ask(&claims, &calm());
    assert!(claims.advice.contains("kubectl -n shop get resourceclaims"), "{}", claims.advice);
    let gated = ask(&pending(gated), &calm());
    assert_eq!((gated.reason.as_str(), gated.message.as_str()), ("ReadinessGatesNotReady", gate));
}

#[test]
fn a_paused_deployment_is_not_told_to_be_progressing() {
    let paused = |updated: i64| {
        let conditions = [
            condition("Available", "True", "MinimumReplicasAvailable", ""),
            condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused"),
        ];
        let body = json!({"spec": {"replicas": 3, "paused": true}, "status": {
            "replicas": 3, "updatedReplicas": updated, "availableReplicas": 3, "readyReplicas": 3, "conditions": conditions,
        }});
        let set = json!({"spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 3}});
        let mut objects = vec![
            object("apps/v1", "Deployment", "web", None, body),
            object("apps/v1", "ReplicaSet", "web", Some("Deployment/web"), set),
        ];
        let below = ["a", "b", "c"].map(|name| {
            let status = json!({"phase": "Running", "conditions": [condition("Ready", "True", "", "")]});
            object("v1", "Pod", name, Some("ReplicaSet/web"), json!({"status": status}))
        });
        objects.extend(below);
        ask_exactly("Deployment/web", &objects, &calm())
    };
    assert_eq!(paused(0).sentence, "Deployment/web is paused (Paused for 3m).");
    let at_rest = paused(3);
    assert!(at_rest.well, "{}", at_rest.sentence);
    assert_eq!(at_rest.remarks, ["its spec.paused is true: it begins nothing new until that is changed"]);
}

/// Whatever its pods suffer from and its parent does.
#[test]
fn a_child_that_somebody_paused_is_named_with_its_own_field() {
    let ask_about = |parent: Value, updated: i64| {
        let conditions = [condition("Progressing", "Unknown", "DeploymentPaused", "Deployment is paused")];
        let body = json!({"spec": {"replicas": 3, "paused": true}, "status": {
            "observedGeneration": 1, "replicas": 3, "updatedReplicas": updated, "readyReplicas": 2, "conditions": conditions,
        }});
        let mut pod = waiting("web-x", "ImagePullBackOff", "not found");
        pod.metadata.owner_references.as_mut().unwrap()[0].uid = "ReplicaSet/web".into();
        let set = json!({"spec": {"replicas": 3}, "status": {"observedGeneration": 1, "readyReplicas": 2}});
        let objects = [
            deployment(parent),
            object("apps/v1", "Deployment", "web", Some("BasicDeployment/web"), body),
            object("apps/v1", "ReplicaSet", "web", Some("Deployment/web"), set),
            pod,
        ];
        ask_exactly("BasicDeployment/web", &objects, &calm())
    };
    let blocker = blocker("Pod", "web-x", "ImagePullBackOff", "not found");
    let mut rolled_back = not_ready("ChildPaused", "2 of 3 replicas are serving", blocker);
    let stays = condition("RolledBack", "True", "Rollback", "revision 1 stays");
    rolled_back["status"]["conditions"].as_array_mut().unwrap().push(stays);
    let waits = ask_about(rolled_back.clone(), 0);
    assert!(waits.sentence.contains("not ready: Deployment/web is paused (Paused"), "{}", waits.sentence);
    let advice = "let it go on, with all changes that wait in its spec: kubectl -n shop patch deployment.apps/web --type merge --patch '{\"spec\":{\"paused\":false}}'";
    let beside =
        "beside it, 1 object has another trouble: Pod/web-x cannot pull its image (ImagePullBackOff)";
    assert_eq!((&*waits.root_cause.unwrap().advice, waits.remarks), (advice, vec![beside.to_owned()]));
    let note = "the spec.paused of Deployment/web is true: it begins nothing new until that is changed";
    let has_note = |answer: &Answer| answer.remarks.iter().any(|remark| remark == note);
    let fails = ask_about(rolled_back, 3);
    assert!(fails.sentence.contains("Pod/web-x cannot pull its image") && has_note(&fails), "{fails:?}");
    let both = ask_about(not_ready("Paused", "spec.paused is true", Value::Null), 0);
    assert!(
        both.root_cause.as_ref().unwrap().object.kind == "BasicDeployment" && has_note(&both),
        "{both:?}"
    );
}

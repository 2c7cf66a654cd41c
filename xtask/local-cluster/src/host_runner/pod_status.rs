//! A pod's status, from the state of its containers.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{EphemeralContainer, Pod, PodCondition};
use serde_json::{Value, json};

use super::{
    board::{Activity, End, Record},
    restart_policy::RestartPolicy,
    runner::HOST_IP,
};

/// The status as a strategic merge patch; other fields (`PodScheduled` and the like) stay.
pub fn status(
    pod: &Pod,
    records: &[Record],
    policy: RestartPolicy,
    address: Ipv4Addr,
    now: Timestamp,
) -> Value {
    let phase = phase(records, policy, pod.metadata.deletion_timestamp.is_some());
    let unready: Vec<&str> =
        records.iter().filter(|record| !record.ready).map(|record| record.name.as_str()).collect();
    let containers_ready = unready.is_empty();
    let reason = if phase == "Succeeded" { "PodCompleted" } else { "ContainersNotReady" };
    let message = format!("containers with unready status: [{}]", unready.join(" "));
    let previous = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let condition = |kind: &str, holds: bool| {
        let (reason, message) = if holds { (None, None) } else { (Some(reason), Some(&message)) };
        condition(previous, kind, holds, reason, message.map(String::as_str), now)
    };
    let ephemeral = pod.spec.iter().flat_map(|spec| spec.ephemeral_containers.iter().flatten());
    let started =
        pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map_or(now, |time| time.0);
    json!({
        "phase": phase,
        "startTime": started,
        "hostIP": HOST_IP,
        "hostIPs": [{ "ip": HOST_IP }],
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": [
            condition("Initialized", true),
            condition("ContainersReady", containers_ready),
            condition("Ready", containers_ready),
        ],
        "containerStatuses": records.iter().map(container_status).collect::<Vec<_>>(),
        "ephemeralContainerStatuses": ephemeral.into_iter().map(never_run).collect::<Vec<_>>(),
    })
}

fn phase(records: &[Record], policy: RestartPolicy, over: bool) -> &'static str {
    let ended = |record: &Record| match &record.activity {
        Activity::Ended(end) => Some(end.exit_code),
        _ => None,
    };
    let codes: Option<Vec<i32>> = records.iter().map(ended).collect();
    if let Some(codes) = codes {
        return match policy {
            RestartPolicy::Always if !over => "Running",
            _ if codes.iter().all(|code| *code == 0) => "Succeeded",
            _ => "Failed",
        };
    }
    let never_ran = |record: &Record| {
        matches!(record.activity, Activity::Waiting(_)) && record.last_end.is_none() && record.restarts == 0
    };
    if records.iter().any(never_ran) { "Pending" } else { "Running" }
}

fn condition(
    previous: &[PodCondition],
    kind: &str,
    holds: bool,
    reason: Option<&str>,
    message: Option<&str>,
    now: Timestamp,
) -> Value {
    let status = if holds { "True" } else { "False" };
    let same = previous.iter().find(|condition| condition.type_ == kind && condition.status == status);
    let since = same.and_then(|condition| condition.last_transition_time.as_ref()).map_or(now, |time| time.0);
    // An explicit null removes a field that an earlier patch has set.
    json!({ "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since })
}

fn container_status(record: &Record) -> Value {
    let (state, id) = match &record.activity {
        Activity::Waiting(trouble) => {
            (json!({ "waiting": { "reason": trouble.reason, "message": trouble.message } }), None)
        }
        Activity::Running { pid, since } => {
            (json!({ "running": { "startedAt": since } }), Some(format!("process://{pid}")))
        }
        Activity::Ended(end) => (terminated(end), None),
    };
    let last = match (&record.activity, &record.last_end) {
        // The end in the present state is not also the last one before it.
        (Activity::Ended(_), _) | (_, None) => json!({}),
        (_, Some(end)) => terminated(end),
    };
    json!({
        "name": record.name,
        "image": record.image,
        "imageID": "",
        "containerID": id.unwrap_or_default(),
        "ready": record.ready,
        "started": matches!(record.activity, Activity::Running { .. }),
        "restartCount": record.restarts,
        "state": state,
        "lastState": last,
    })
}

/// The status of a container that was added to a running pod (`kubectl debug`), which never runs, because a process has
/// nothing to share with it.
fn never_run(container: &EphemeralContainer) -> Value {
    json!({
        "name": container.name,
        "image": container.image.as_deref().unwrap_or_default(),
        "imageID": "",
        "ready": false,
        "restartCount": 0,
        "state": { "terminated": {
            "exitCode": 128,
            "reason": "ContainerCannotRun",
            "message": "the host runner does not do spec.ephemeralContainers: use a cluster with a kubelet",
        } },
    })
}

fn terminated(end: &End) -> Value {
    json!({ "terminated": {
        "exitCode": end.exit_code,
        "signal": end.signal.unwrap_or_default(),
        "reason": end.reason,
        "message": end.message.as_deref().unwrap_or_default(),
        "startedAt": end.started,
        "finishedAt": end.finished,
    } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_runner::board::Trouble;

    fn record(activity: Activity) -> Record {
        Record {
            name: "c".to_owned(),
            image: "i".to_owned(),
            ready: matches!(activity, Activity::Running { .. }),
            activity,
            last_end: None,
            restarts: 0,
        }
    }

    fn ended(exit_code: i32) -> Activity {
        let time = Timestamp::UNIX_EPOCH;
        Activity::Ended(End {
            exit_code,
            signal: None,
            reason: String::new(),
            message: None,
            started: time,
            finished: time,
        })
    }

    fn running() -> Activity {
        Activity::Running { pid: 7, since: Timestamp::UNIX_EPOCH }
    }

    fn of(activities: Vec<Activity>, policy: RestartPolicy) -> Value {
        let records: Vec<Record> = activities.into_iter().map(record).collect();
        status(&Pod::default(), &records, policy, Ipv4Addr::LOCALHOST, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_phase_follows_the_containers_and_the_policy() {
        let waiting = || Activity::Waiting(Trouble::new("ContainerCreating", ""));
        let phase = |activities, policy| of(activities, policy)["phase"].as_str().unwrap().to_owned();
        assert_eq!(phase(vec![waiting()], RestartPolicy::Always), "Pending");
        assert_eq!(phase(vec![running(), waiting()], RestartPolicy::Always), "Pending");
        assert_eq!(phase(vec![running()], RestartPolicy::Always), "Running");
        assert_eq!(phase(vec![ended(1)], RestartPolicy::Always), "Running");
        assert_eq!(phase(vec![ended(0)], RestartPolicy::Never), "Succeeded");
        assert_eq!(phase(vec![ended(0), ended(2)], RestartPolicy::Never), "Failed");
        assert_eq!(phase(vec![ended(0), running()], RestartPolicy::Never), "Running");
    }

    #[test]
    fn a_pod_is_ready_when_all_containers_are() {
        let ready = |value: &Value| value["conditions"][2]["status"].as_str().unwrap().to_owned();
        let all = of(vec![running(), running()], RestartPolicy::Always);
        assert_eq!(ready(&all), "True");
        let one = of(vec![running(), ended(1)], RestartPolicy::Always);
        assert_eq!(ready(&one), "False");
        assert_eq!(one["conditions"][2]["reason"], "ContainersNotReady");
        assert_eq!(one["containerStatuses"][1]["state"]["terminated"]["exitCode"], 1);
    }

    #[test]
    fn a_debugging_container_is_told_that_it_never_runs() {
        let spec =
            json!({"containers": [], "ephemeralContainers": [{"name": "debugger", "image": "busybox"}]});
        let pod = Pod { spec: Some(serde_json::from_value(spec).unwrap()), ..Pod::default() };
        let now = Timestamp::UNIX_EPOCH;
        let status = status(&pod, &[], RestartPolicy::Always, Ipv4Addr::LOCALHOST, now);
        let told = &status["ephemeralContainerStatuses"][0];
        assert_eq!(told["name"], "debugger");
        assert_eq!(told["state"]["terminated"]["reason"], "ContainerCannotRun");
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let mut pod = Pod::default();
        let records = [record(running())];
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = status(&pod, &records, RestartPolicy::Always, Ipv4Addr::LOCALHOST, at(10));
        pod.status = Some(serde_json::from_value(first.clone()).unwrap());
        let second = status(&pod, &records, RestartPolicy::Always, Ipv4Addr::LOCALHOST, at(20));
        assert_eq!(first, second);
    }
}

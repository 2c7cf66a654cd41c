//! Looks into the pods of controllers that do not do their work: their state, and their last words.

use catena_cluster::{Cluster, Identity};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{ListParams, LogParams},
    core::DynamicObject,
};
use serde_json::Value;

use super::{Cause, Installation, PodTrouble, read};
use crate::chain::{Health, Node, State, last_words, shortened};

/// The end of a log in which the last error is looked for.
const LOG_LINES: i64 = 100;

/// Finds the trouble of each controller that does not do its work, as far as its pods may be read.
pub async fn look_into_pods(cluster: &Cluster, installations: &mut [Installation]) {
    let now = Timestamp::now();
    let troubled = installations.iter_mut().filter(|seen| seen.is_troubled(now) && !seen.selector.is_empty());
    let looks = troubled.map(async |seen| seen.trouble = trouble(cluster, seen).await);
    futures::future::join_all(looks).await;
}

async fn trouble(cluster: &Cluster, seen: &Installation) -> Option<PodTrouble> {
    let kind = cluster.kinds.named("", "pods")?;
    let labels = ListParams::default().labels(&seen.selector);
    let pods = cluster.list(kind, Some(&seen.namespace), labels).await.ok()?.into_iter();
    let judged = pods.filter(|pod| pod.metadata.deletion_timestamp.is_none()).filter_map(read::alone);
    let Node { identity, health, object: pod, .. } = judged.min_by_key(|pod| rank(pod.health.state))?;
    let logs = Api::<Pod>::namespaced(cluster.client.clone(), &seen.namespace);
    let words = words_of(&logs, &pod, &health).await;
    Some(PodTrouble {
        pod: format!("{}/{}", seen.namespace, pod.name_any()),
        state: state(&identity, &health),
        last_words: words,
        runs: matches!(health.state, State::Ready) || health.reason == "NotReady",
        is_stuck: matches!(health.state, State::Stuck | State::Failed),
    })
}

/// Pods that cannot start first, those that serve last.
fn rank(state: State) -> u8 {
    match state {
        State::Stuck | State::Failed => 0,
        State::Ready => 2,
        _ => 1,
    }
}

fn state(pod: &Identity, health: &Health) -> String {
    if health.state == State::Ready {
        return "is ready, but has not renewed its Lease".to_owned();
    }
    let cause = Cause::reported(pod, &health.reason, &health.message);
    format!("{} ({})", cause.meaning, cause.reason)
}

/// The message of the container that ended last, or else the last error in the log.
async fn words_of(logs: &Api<Pod>, pod: &DynamicObject, health: &Health) -> Option<String> {
    let containers = pod.data.pointer("/status/containerStatuses").and_then(Value::as_array);
    let ended = containers.into_iter().flatten().find_map(|container| {
        let ended = [container.pointer("/lastState/terminated"), container.pointer("/state/terminated")];
        let said = ended.into_iter().flatten().find_map(|ended| ended["message"].as_str());
        said.filter(|said| !said.is_empty()).map(str::to_owned)
    });
    let crashes = health.state == State::Stuck;
    if let Some(said) = ended.filter(|_| crashes) {
        return last_words(&said);
    }
    let params = LogParams { tail_lines: Some(LOG_LINES), previous: crashes, ..LogParams::default() };
    let log = logs.logs(&pod.name_any(), &params).await.ok()?;
    if crashes { last_error(&log).or_else(|| last_words(&log)) } else { last_error(&log) }
}

/// The last warning or error of a log in JSON or for people.
fn last_error(log: &str) -> Option<String> {
    log.lines().rev().find_map(|line| {
        let Ok(entry) = serde_json::from_str::<Value>(line) else {
            let is_bad = [" ERROR ", " WARN ", "Error:", "error:"].iter().any(|word| line.contains(word));
            return is_bad.then(|| shortened(line));
        };
        let level = entry["level"].as_str().unwrap_or_default();
        let text = |field: &str| entry[field].as_str().filter(|text| !text.is_empty());
        let said = [text("message"), text("error")].into_iter().flatten().collect::<Vec<_>>().join(": ");
        (matches!(level, "ERROR" | "WARN") && !said.is_empty()).then(|| shortened(&said))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_of_a_log_is_found_in_json_and_in_text() {
        let json = "{\"level\":\"WARN\",\"message\":\"pods cannot be watched\",\"error\":\"403\"}\n{\"level\":\"INFO\",\"message\":\"a pass\"}\n";
        assert_eq!(last_error(json).as_deref(), Some("pods cannot be watched: 403"));
        let text =
            "2026-01-01T00:00:00Z ERROR the Lease cannot be renewed\n2026-01-01T00:00:01Z  INFO a pass\n";
        assert_eq!(
            last_error(text).as_deref(),
            Some("2026-01-01T00:00:00Z ERROR the Lease cannot be renewed")
        );
        assert_eq!(last_error("all is well"), None);
    }
}

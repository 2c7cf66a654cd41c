//! Waits until a command has finished.

use std::{
    convert::Infallible,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use catena_cluster::{Cluster, Identity, Kind, State, Target, conditions, ended, in_one_line, text};
use catena_explain::{explanation, explanation_aside};
use catena_terminal::{Progress, Tone, sanitized, tell};
use futures::{TryStreamExt, stream};
use kube::{
    ResourceExt,
    api::{ListParams, WatchEvent, WatchParams},
    core::DynamicObject,
};
use operator_watch::Lenient;
use tokio::time::{sleep, timeout};

/// The exit code of a command that has not succeeded.
const NOT_DONE: u8 = 1;
/// The exit code after a timeout.
const TIMED_OUT: u8 = 2;
/// Time between watches.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The time without progress after which the blocker is named.
const STALL_INTERVAL: Duration = Duration::from_secs(10);

/// Waits until a command has finished, and reports its result on standard error: the command itself is already printed, and
/// an error would be a second document.
pub async fn until_finished(
    cluster: &Cluster,
    kind: &Kind,
    command: &DynamicObject,
    time_limit: Duration,
) -> ExitCode {
    let identity = Identity::of(command);
    let started = Instant::now();
    let status = Progress::new(&identity.to_string());
    let target = Target { kind: kind.full_name(), name: identity.name.clone() };
    let result = timeout(time_limit, async {
        tokio::select! {
            ended = watch(cluster, kind, command, &status) => ended,
            never = name_blockers(cluster, &target, &status) => match never {},
        }
    })
    .await;
    status.clear();
    let took = format!("{:.1} s", started.elapsed().as_secs_f64());
    let (code, told) = if let Ok(last) = result {
        verdict(last, &identity, &took)
    } else {
        let answer = explanation_aside(cluster, &target).await;
        let why = answer.map(|answer| answer.sentence);
        (TIMED_OUT, unfinished(&identity, &took, why.as_deref()))
    };
    tell(&told);
    ExitCode::from(code)
}

/// The exit code and the report of a wait that came to an end, with the last state of the command if that was seen.
fn verdict(last: Result<Option<DynamicObject>>, object: &Identity, took: &str) -> (u8, String) {
    let bad = Tone::Bad.paint("✗");
    let report = match last.map(|last| last.map(|command| ended(&command))) {
        Err(error) => {
            return (NOT_DONE, format!("{} {}", Tone::Bad.paint("error:"), in_one_line(&error)));
        }
        Ok(Some(Some(end))) if end.state == State::Done => {
            return (0, format!("{} {object} succeeded after {took}", Tone::Good.paint("✓")));
        }
        Ok(Some(Some(end))) => {
            let why: Vec<_> = [end.reason, end.message].into_iter().filter(|text| !text.is_empty()).collect();
            format!("failed after {took}: {}", sanitized(&why.join(": ")))
        }
        Ok(Some(None)) => "was deleted before it finished".to_owned(),
        Ok(None) => "is gone, and its outcome was not seen".to_owned(),
    };
    (NOT_DONE, format!("{bad} {object} {report}"))
}

/// The report of a wait that timed out. A command about which nothing could be read may have ended meanwhile.
fn unfinished(identity: &Identity, took: &str, why: Option<&str>) -> String {
    let continues = why.map_or_else(String::new, |why| format!(", and continues. {}", sanitized(why)));
    format!("{} {identity} has not finished within {took}{continues}", Tone::Bad.paint("✗"))
}

/// What an unfinished command is at, from its conditions, and how much of it is done, such as 2 of 5.
fn stage(command: &DynamicObject) -> (String, Option<(u64, u64)>) {
    let all = conditions(command);
    let last = ["Succeeded", "Bound"].iter().find_map(|type_| {
        all.iter().find(|condition| condition.type_ == *type_ && condition.reason != "Pending")
    });
    let reason = last.map_or_else(|| "Pending".to_owned(), |condition| condition.reason.clone());
    let progress = text(command, "/status/progress").and_then(|progress| progress.split_once('/'));
    (reason, progress.and_then(|(done, all)| Some((done.trim().parse().ok()?, all.trim().parse().ok()?))))
}

/// Watches until the command has finished, or is gone, and returns its last state, or none if that was not seen.
async fn watch(
    cluster: &Cluster,
    kind: &Kind,
    command: &DynamicObject,
    status: &Progress,
) -> Result<Option<DynamicObject>> {
    let api = cluster.api::<Lenient<DynamicObject>>(kind, command.metadata.namespace.as_deref());
    let fields = format!("metadata.name={}", command.name_any());
    let params = WatchParams::default().fields(&fields).disable_bookmarks();
    let is_it = |object: &DynamicObject| object.metadata.uid == command.metadata.uid;
    // From its creation on: it may have finished, and be gone, before a list.
    let mut version = command.resource_version().unwrap_or_default();
    loop {
        {
            let mut events = std::pin::pin!(stream::once(api.watch(&params, &version)).try_flatten());
            while let Ok(Some(event)) = events.try_next().await {
                match event {
                    WatchEvent::Added(Lenient(object)) | WatchEvent::Modified(Lenient(object))
                        if is_it(&object) =>
                    {
                        if ended(&object).is_some() {
                            return Ok(Some(object));
                        }
                        let (reason, progress) = stage(&object);
                        status.show(&reason, progress);
                    }
                    WatchEvent::Deleted(Lenient(object)) if is_it(&object) => return Ok(Some(object)),
                    WatchEvent::Error(_) => break,
                    _ => {}
                }
            }
        }
        // The server ends each watch some time, and refuses an old version.
        match api.list(&ListParams::default().fields(&fields)).await {
            Ok(present) => {
                version = present.metadata.resource_version.unwrap_or_default();
                let last = present.items.into_iter().map(|Lenient(object)| object).find(is_it);
                if last.as_ref().is_none_or(|command| ended(command).is_some()) {
                    return Ok(last);
                }
            }
            Err(kube::Error::Api(status)) if status.code == 403 => {
                let resource = &kind.resource.plural;
                return Err(kube::Error::Api(status)).context(format!(
                    "the command was created, but you may not list {resource}; see it with `kubectl get`"
                ));
            }
            Err(error) => status.note(&format!("the watch failed and is retried: {error}")),
        }
        sleep(RETRY_INTERVAL).await;
    }
}

/// Names the blocker while there is no progress; each cause once.
async fn name_blockers(cluster: &Cluster, command: &Target, status: &Progress) -> Infallible {
    let mut said = None;
    loop {
        let left = STALL_INTERVAL.saturating_sub(status.unchanged_for());
        if !left.is_zero() {
            sleep(left).await;
            continue;
        }
        let answer = Box::pin(explanation(cluster, command)).await.ok();
        let blocks = answer.and_then(|answer| Some((answer.root_cause?, answer.sentence)));
        if let Some((cause, sentence)) = blocks
            && said.as_ref() != Some(&cause.reason)
        {
            status.note(&sanitized(&sentence));
            said = Some(cause.reason);
        }
        sleep(STALL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use catena_cluster::testing::{Answer, answering, status};
    use http::StatusCode;
    use serde_json::json;

    use super::*;

    fn command() -> DynamicObject {
        let command = json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeploymentRestart",
            "metadata": {"name": "again", "namespace": "shop", "uid": "u", "resourceVersion": "7"},
        });
        serde_json::from_value(command).unwrap()
    }

    async fn waited(answer: impl Fn(&str) -> Answer + Send + 'static) -> ExitCode {
        let (cluster, _) = answering(move |_, uri, _| answer(uri));
        let kind = cluster.kinds.find("basicdeploymentrestarts").unwrap();
        Box::pin(until_finished(&cluster, kind, &command(), Duration::from_secs(60))).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_command_that_finished_and_went_before_the_first_list_has_its_outcome() {
        let gone = |uri: &str| {
            let mut object = serde_json::to_value(command()).unwrap();
            object["status"] = json!({"conditions": [{"type": "Succeeded", "status": "True"}]});
            let is_watch = uri.contains("watch=true") && uri.contains("resourceVersion=7");
            let list = json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": []});
            (
                StatusCode::OK,
                if is_watch {
                    format!("{{\"type\": \"DELETED\", \"object\": {object}}}").into()
                } else {
                    list
                },
            )
        };
        assert_eq!(waited(gone).await, ExitCode::SUCCESS);
        // An old version is refused, and the list is too late.
        let unseen = move |uri: &str| {
            if uri.contains("watch=true") { status(410, "Expired", "too old") } else { gone(uri) }
        };
        assert_eq!(waited(unseen).await, ExitCode::FAILURE);
        let (_, told) = verdict(Ok(None), &Identity::of(&command()), "0.1 s");
        assert_eq!(
            strip_str(&told).to_string(),
            "✗ BasicDeploymentRestart/again is gone, and its outcome was not seen"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stops_answering_does_not_prolong_the_timeout() {
        let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<kube::Result<http::Response<kube::client::Body>>>()
        });
        let cluster =
            Cluster { client: kube::Client::new(silent, "shop"), ..catena_cluster::testing::cluster().0 };
        let kind = cluster.kinds.find("basicdeploymentrestarts").unwrap();
        let command = command();
        let wait = Box::pin(until_finished(&cluster, kind, &command, Duration::from_secs(1)));
        assert_eq!(timeout(Duration::from_secs(12), wait).await, Ok(ExitCode::from(TIMED_OUT)));
        let identity = Identity::of(&command);
        let told = |why| strip_str(&unfinished(&identity, "1.0 s", why)).to_string();
        assert_eq!(told(None), "✗ BasicDeploymentRestart/again has not finished within 1.0 s");
        assert!(told(Some("it waits")).ends_with("within 1.0 s, and continues. it waits"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_fails_prints_no_second_document() {
        let forbidden = "restarts is forbidden: User \"jane\" cannot list resource \"restarts\"";
        assert_eq!(waited(move |_| status(403, "Forbidden", forbidden)).await, ExitCode::FAILURE);
    }

    fn with(status: &serde_json::Value) -> DynamicObject {
        DynamicObject { data: json!({"status": status}), ..command() }
    }

    fn condition(type_: &str, status: &str, reason: &str) -> serde_json::Value {
        json!({"type": type_, "status": status, "reason": reason, "message": "m"})
    }

    #[test]
    fn a_command_has_finished_only_when_its_status_says_so() {
        let told = |status: serde_json::Value| {
            let last = Ok(Some(with(&status)));
            strip_str(&verdict(last, &Identity::of(&command()), "1 s").1).to_string()
        };
        for (status, expected) in [
            (json!({"conditions": [condition("Succeeded", "True", "Restarted")]}), "succeeded after 1 s"),
            (json!({"conditions": [condition("Complete", "True", "")]}), "succeeded after 1 s"),
            (json!({"conditions": [condition("Completed", "True", "")]}), "succeeded after 1 s"),
            (json!({"phase": "Completed"}), "succeeded after 1 s"),
            (json!({"conditions": [condition("Succeeded", "False", "Late")]}), "failed after 1 s: Late: m"),
            (
                json!({"phase": "Failed", "message": "no disk", "conditions": [condition("Completed", "True", "")]}),
                "failed after 1 s: Failed: no disk",
            ),
            (json!({}), "was deleted before it finished"),
        ] {
            let told = told(status);
            assert!(told.ends_with(expected), "{told}");
        }
    }

    #[test]
    fn an_unfinished_command_has_its_stage_and_its_progress() {
        let of = |status: serde_json::Value| stage(&with(&status));
        assert_eq!(of(json!({})), ("Pending".into(), None));
        let unbound = json!({"conditions": [condition("Bound", "False", "TargetNotFound")]});
        assert_eq!(of(unbound), ("TargetNotFound".into(), None));
        let conditions =
            [condition("Bound", "True", "Bound"), condition("Succeeded", "Unknown", "Restarting")];
        let running = json!({"progress": "2/5", "conditions": conditions});
        assert_eq!(of(running), ("Restarting".into(), Some((2, 5))));
    }
}

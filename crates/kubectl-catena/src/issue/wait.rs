//! Waits until a command has finished.

use std::{
    convert::Infallible,
    future::ready,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    api::{WatchEvent, WatchParams},
    core::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use operator_kit::watch::Unmanaged;
use tokio::time::{sleep, timeout};

use super::outcome::{Outcome, outcome};
use crate::{
    connection::Cluster,
    errors::in_one_line,
    kinds::Kind,
    object::Identity,
    paint::{Paint, Tone, sanitized},
    progress::Status,
    target::Target,
    why::{explanation, explanation_aside},
};

/// The exit code of a command that has not succeeded.
const NOT_DONE: u8 = 1;
/// The exit code after a timeout.
const TIMED_OUT: u8 = 2;
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
    let status = Status::new(&identity.to_string());
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
    let (code, told) = if let Ok(ended) = result {
        verdict(ended, &identity, &took, Paint::for_stderr())
    } else {
        let answer = explanation_aside(cluster, &target).await;
        let why = answer.map(|answer| answer.sentence);
        (TIMED_OUT, unfinished(&identity, &took, why.as_deref(), Paint::for_stderr()))
    };
    eprintln!("{told}");
    ExitCode::from(code)
}

/// The exit code and the report of a wait that came to an end.
fn verdict(ended: Result<Option<Outcome>>, identity: &Identity, took: &str, paint: Paint) -> (u8, String) {
    let bad = paint.bad("✗");
    match ended {
        Ok(Some(Outcome::Succeeded(_))) => {
            (0, format!("{} {identity} succeeded after {took}", paint.tone(Tone::Good, "✓")))
        }
        Ok(Some(Outcome::Failed(why))) => {
            (NOT_DONE, format!("{bad} {identity} failed after {took}: {}", sanitized(&why)))
        }
        Ok(Some(Outcome::Waiting { .. })) => {
            (NOT_DONE, format!("{bad} {identity} was deleted before it finished"))
        }
        Ok(None) => (NOT_DONE, format!("{bad} {identity} is gone, and its outcome was not seen")),
        Err(error) => (NOT_DONE, format!("{} {}", paint.bad("error:"), in_one_line(&error))),
    }
}

/// The report of a wait that timed out. A command about which nothing could be read may have ended meanwhile.
fn unfinished(identity: &Identity, took: &str, why: Option<&str>, paint: Paint) -> String {
    let continues = why.map_or_else(String::new, |why| format!(", and continues. {}", sanitized(why)));
    format!("{} {identity} has not finished within {took}{continues}", paint.bad("✗"))
}

/// Watches until the command has finished, or is gone: then with its last state, or with none if that was not seen.
async fn watch(
    cluster: &Cluster,
    kind: &Kind,
    command: &DynamicObject,
    status: &Status,
) -> Result<Option<Outcome>> {
    let identity = Identity::of(command);
    let api = cluster.api::<Unmanaged<DynamicObject>>(kind, identity.namespace.as_deref());
    let fields = format!("metadata.name={}", identity.name);
    // A command may have finished, and be gone, before the first list.
    let version = command.metadata.resource_version.clone().unwrap_or_default();
    let params = WatchParams::default().fields(&fields).disable_bookmarks();
    let since_creation = stream::once(api.watch(&params, &version)).try_flatten();
    let since_creation = since_creation.scan((), |(), event| {
        ready(match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => Some(Ok(Event::Apply(object))),
            Ok(WatchEvent::Deleted(object)) => Some(Ok(Event::Delete(object))),
            _ => None,
        })
    });
    let watched = watcher(api.clone(), watcher::Config::default().fields(&fields)).default_backoff();
    let mut events = std::pin::pin!(since_creation.chain(watched));
    let is_it = |object: &DynamicObject| object.metadata.uid.as_deref() == Some(&identity.uid);
    let mut is_there = true;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => is_there = false,
            Ok(Event::InitApply(Unmanaged(object)) | Event::Apply(Unmanaged(object))) if is_it(&object) => {
                is_there = true;
                match outcome(&object) {
                    Outcome::Waiting { reason, progress } => status.show(&reason, progress),
                    ended => return Ok(Some(ended)),
                }
            }
            Ok(Event::Delete(Unmanaged(object))) if is_it(&object) => return Ok(Some(outcome(&object))),
            Ok(Event::InitDone) if !is_there => return Ok(None),
            Ok(_) => {}
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) if status.code == 403 => {
                let resource = &kind.resource.plural;
                return Err(kube::Error::Api(status)).with_context(|| {
                    format!(
                        "the command was created, but you may not watch {resource}; see it with `kubectl get`"
                    )
                });
            }
            Err(error) => status.note(&format!("the watch failed and is retried: {error}")),
        }
    }
    Ok(None)
}

/// Names the blocker while there is no progress; each cause once.
async fn name_blockers(cluster: &Cluster, command: &Target, status: &Status) -> Infallible {
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
    use http::StatusCode;
    use serde_json::json;

    use super::*;
    use crate::connection::tests::{Answer, answering, status};

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
        let (_, told) = verdict(Ok(None), &Identity::of(&command()), "0.1 s", Paint::OFF);
        assert_eq!(told, "✗ BasicDeploymentRestart/again is gone, and its outcome was not seen");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stops_answering_does_not_prolong_the_timeout() {
        let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<kube::Result<http::Response<kube::client::Body>>>()
        });
        let cluster =
            Cluster { client: kube::Client::new(silent, "shop"), ..crate::connection::tests::cluster().0 };
        let kind = cluster.kinds.find("basicdeploymentrestarts").unwrap();
        let command = command();
        let wait = Box::pin(until_finished(&cluster, kind, &command, Duration::from_secs(1)));
        assert_eq!(timeout(Duration::from_secs(12), wait).await, Ok(ExitCode::from(TIMED_OUT)));
        let identity = Identity::of(&command);
        let told = |why| unfinished(&identity, "1.0 s", why, Paint::OFF);
        assert_eq!(told(None), "✗ BasicDeploymentRestart/again has not finished within 1.0 s");
        assert!(told(Some("it waits")).ends_with("within 1.0 s, and continues. it waits"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_fails_prints_no_second_document() {
        let forbidden = "restarts is forbidden: User \"jane\" cannot list resource \"restarts\"";
        assert_eq!(waited(move |_| status(403, "Forbidden", forbidden)).await, ExitCode::FAILURE);
    }
}

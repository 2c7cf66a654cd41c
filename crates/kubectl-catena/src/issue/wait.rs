//! Waits until a command has finished.

use std::{
    convert::Infallible,
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::StreamExt;
use kube::{
    core::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use operator_kit::watch::Unmanaged;
use tokio::time::{sleep, timeout};

use super::{
    outcome::{Outcome, outcome},
    progress::Progress,
};
use crate::{
    connection::Cluster,
    errors::in_one_line,
    kinds::Kind,
    object::Identity,
    paint::{Paint, Tone, sanitized},
    target::Target,
    why::explanation,
};

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
    let progress = Progress::new(&identity.to_string());
    let target = Target {
        kind: format!("{}.{}", kind.resource.plural, kind.resource.group),
        name: identity.name.clone(),
    };
    let result = timeout(time_limit, async {
        tokio::select! {
            ended = watch(cluster, kind, &identity, &progress) => ended,
            never = name_blockers(cluster, &target, &progress) => match never {},
        }
    })
    .await;
    progress.clear();
    let took = format!("{:.1} s", started.elapsed().as_secs_f64());
    let paint = Paint::for_stderr();
    match result {
        Ok(Ok(Outcome::Succeeded(_))) => {
            eprintln!("{} {identity} succeeded after {took}", paint.tone(Tone::Good, "✓"));
            ExitCode::SUCCESS
        }
        Ok(Ok(Outcome::Failed(why))) => {
            eprintln!("{} {identity} failed after {took}: {}", paint.bad("✗"), sanitized(&why));
            ExitCode::FAILURE
        }
        Ok(Ok(Outcome::Waiting { .. })) => {
            eprintln!("{} {identity} was deleted before it finished", paint.bad("✗"));
            ExitCode::FAILURE
        }
        Ok(Err(error)) => {
            eprintln!("{} {}", paint.bad("error:"), in_one_line(&error));
            ExitCode::FAILURE
        }
        Err(_) => {
            let why = match Box::pin(explanation(cluster, &target)).await {
                Ok(answer) => answer.sentence,
                Err(_) => String::new(),
            };
            eprintln!(
                "{} {identity} has not finished within {took}, and continues. {}",
                paint.bad("✗"),
                sanitized(&why)
            );
            ExitCode::from(TIMED_OUT)
        }
    }
}

/// Watches until the command has finished, or is gone: then with its last state.
async fn watch(cluster: &Cluster, kind: &Kind, identity: &Identity, progress: &Progress) -> Result<Outcome> {
    let api = cluster.api::<Unmanaged<DynamicObject>>(kind, identity.namespace.as_deref());
    let config = watcher::Config::default().fields(&format!("metadata.name={}", identity.name));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let is_it = |object: &DynamicObject| object.metadata.uid.as_deref() == Some(&identity.uid);
    let mut is_there = true;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => is_there = false,
            Ok(Event::InitApply(Unmanaged(object)) | Event::Apply(Unmanaged(object))) if is_it(&object) => {
                is_there = true;
                let outcome = outcome(&object);
                if !matches!(outcome, Outcome::Waiting { .. }) {
                    return Ok(outcome);
                }
                progress.show(&outcome);
            }
            Ok(Event::Delete(Unmanaged(object))) if is_it(&object) => return Ok(outcome(&object)),
            Ok(Event::InitDone) if !is_there => {
                return Ok(Outcome::Waiting { reason: String::new(), progress: None });
            }
            Ok(_) => {}
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) if status.code == 403 => {
                let resource = &kind.resource.plural;
                return Err(kube::Error::Api(status)).with_context(|| {
                    format!(
                        "the command was created, but you may not watch {resource}; see it with `kubectl get`"
                    )
                });
            }
            Err(error) => progress.note(&format!("the watch failed and is retried: {error}")),
        }
    }
    Ok(Outcome::Waiting { reason: String::new(), progress: None })
}

/// Names the blocker while there is no progress; each cause once.
async fn name_blockers(cluster: &Cluster, command: &Target, progress: &Progress) -> Infallible {
    let mut said = None;
    loop {
        let left = STALL_INTERVAL.saturating_sub(progress.unchanged_for());
        if !left.is_zero() {
            sleep(left).await;
            continue;
        }
        let answer = Box::pin(explanation(cluster, command)).await.ok();
        let blocks = answer.and_then(|answer| Some((answer.root_cause?, answer.sentence)));
        if let Some((cause, sentence)) = blocks
            && said.as_ref() != Some(&cause.reason)
        {
            progress.note(&sanitized(&sentence));
            said = Some(cause.reason);
        }
        sleep(STALL_INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
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
    async fn a_wait_that_fails_prints_no_second_document() {
        let forbidden = "restarts is forbidden: User \"jane\" cannot list resource \"restarts\"";
        assert_eq!(waited(move |_| status(403, "Forbidden", forbidden)).await, ExitCode::FAILURE);
    }
}

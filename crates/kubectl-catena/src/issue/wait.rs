//! Waiting for a command's end.

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
    kinds::Kind,
    object::Identity,
    paint::{Paint, Tone, harmless},
    target::Target,
    why::explanation,
};

/// The exit code of a wait whose time was up.
const TIMED_OUT: u8 = 2;
/// How long nothing has to change before it is said what the command waits for.
const SILENCE: Duration = Duration::from_secs(10);

/// Waits until a command has ended, and says how.
pub async fn until_ended(
    cluster: &Cluster,
    kind: &Kind,
    command: &DynamicObject,
    patience: Duration,
) -> Result<ExitCode> {
    let identity = Identity::of(command);
    let started = Instant::now();
    let progress = Progress::new(&identity.to_string());
    let target = Target {
        kind: format!("{}.{}", kind.resource.plural, kind.resource.group),
        name: identity.name.clone(),
    };
    let ended = timeout(patience, async {
        tokio::select! {
            ended = watch(cluster, kind, &identity, &progress) => ended,
            never = tell_what_blocks(cluster, &target, &progress) => match never {},
        }
    })
    .await;
    progress.clear();
    let took = format!("{:.1} s", started.elapsed().as_secs_f64());
    let paint = Paint::for_stderr();
    match ended {
        Ok(Ok(Outcome::Succeeded(_))) => {
            eprintln!("{} {identity} succeeded after {took}", paint.tone(Tone::Good, "✓"));
            Ok(ExitCode::SUCCESS)
        }
        Ok(Ok(Outcome::Failed(why))) => {
            eprintln!("{} {identity} failed after {took}: {}", paint.bad("✗"), harmless(&why));
            Ok(ExitCode::FAILURE)
        }
        Ok(Ok(Outcome::Waiting { .. })) => {
            eprintln!("{} {identity} was deleted before its end was seen", paint.bad("✗"));
            Ok(ExitCode::FAILURE)
        }
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let why = match Box::pin(explanation(cluster, &target)).await {
                Ok(answer) => answer.sentence,
                Err(_) => String::new(),
            };
            eprintln!(
                "{} {identity} has not ended within {took}, and goes on. {}",
                paint.bad("✗"),
                harmless(&why)
            );
            Ok(ExitCode::from(TIMED_OUT))
        }
    }
}

/// Watches until the end, or until the object is gone: then with what it said last.
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
                    format!("it was created, but you may not watch {resource}; look at it with `kubectl get`")
                });
            }
            Err(error) => progress.note(&format!("the watch broke off and is tried again: {error}")),
        }
    }
    Ok(Outcome::Waiting { reason: String::new(), progress: None })
}

/// While nothing changes, says what a command waits for; each cause once.
async fn tell_what_blocks(cluster: &Cluster, command: &Target, progress: &Progress) -> Infallible {
    let mut said = None;
    loop {
        let left = SILENCE.saturating_sub(progress.unchanged_for());
        if !left.is_zero() {
            sleep(left).await;
            continue;
        }
        let answer = Box::pin(explanation(cluster, command)).await.ok();
        let blocks = answer.and_then(|answer| Some((answer.root_cause?, answer.sentence)));
        if let Some((cause, sentence)) = blocks
            && said.as_ref() != Some(&cause.reason)
        {
            progress.note(&harmless(&sentence));
            said = Some(cause.reason);
        }
        sleep(SILENCE).await;
    }
}

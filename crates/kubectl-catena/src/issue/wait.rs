//! Waiting for a command's end, with a progress bar on a terminal and lines elsewhere.

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::StreamExt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use kube::{
    core::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use tokio::time::timeout;

use super::outcome::{Outcome, outcome};
use crate::{
    commands::why::explanation,
    connection::Cluster,
    kinds::Kind,
    object::Identity,
    paint::{Paint, Tone, harmless},
    target::Target,
};

/// The exit code of a wait whose time was up.
const TIMED_OUT: u8 = 2;

/// Waits until a command has ended, and says how.
pub async fn until_ended(
    cluster: &Cluster,
    kind: &Kind,
    command: &DynamicObject,
    patience: Duration,
) -> Result<ExitCode> {
    let identity = Identity::of(command);
    let started = Instant::now();
    let bar = Bar::new(&identity.to_string());
    let ended = timeout(patience, watch(cluster, kind, &identity, &bar)).await;
    bar.clear();
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
            eprintln!("{} {identity} was deleted before it had ended", paint.bad("✗"));
            Ok(ExitCode::FAILURE)
        }
        Ok(Err(error)) => Err(error),
        Err(_) => {
            let target = Target {
                kind: format!("{}.{}", kind.resource.plural, kind.resource.group),
                name: identity.name.clone(),
            };
            let why = match Box::pin(explanation(cluster, &target)).await {
                Ok(answer) => answer.sentence,
                Err(_) => String::new(),
            };
            eprintln!("{} {identity} has not ended within {took}, and goes on. {why}", paint.bad("✗"));
            Ok(ExitCode::from(TIMED_OUT))
        }
    }
}

/// Watches until the end, or until the object is gone: then with what it said last.
async fn watch(cluster: &Cluster, kind: &Kind, identity: &Identity, bar: &Bar) -> Result<Outcome> {
    let api = cluster.api(kind, identity.namespace.as_deref());
    let config = watcher::Config::default().fields(&format!("metadata.name={}", identity.name));
    let mut events = std::pin::pin!(watcher(api, config).default_backoff());
    let is_it = |object: &DynamicObject| object.metadata.uid.as_deref() == Some(&identity.uid);
    let mut is_there = true;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => is_there = false,
            Ok(Event::InitApply(object) | Event::Apply(object)) if is_it(&object) => {
                is_there = true;
                let outcome = outcome(&object);
                if !matches!(outcome, Outcome::Waiting { .. }) {
                    return Ok(outcome);
                }
                bar.show(&outcome);
            }
            Ok(Event::Delete(object)) if is_it(&object) => return Ok(outcome(&object)),
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
            Err(error) => bar.note(&format!("the watch broke off and is tried again: {error}")),
        }
    }
    Ok(Outcome::Waiting { reason: String::new(), progress: None })
}

/// What a person sees meanwhile, on standard error.
struct Bar {
    bar: ProgressBar,
    last: std::cell::RefCell<String>,
}

impl Bar {
    fn new(what: &str) -> Self {
        let style = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar, last: std::cell::RefCell::default() }
    }

    fn show(&self, outcome: &Outcome) {
        let Outcome::Waiting { reason, progress } = outcome else { return };
        if let Some((done, all)) = *progress {
            if self.bar.length() != Some(all) {
                let template = "{spinner} {prefix} [{bar:30}] {pos}/{len} {msg} {elapsed}";
                if let Ok(style) = ProgressStyle::with_template(template) {
                    self.bar.set_style(style.progress_chars("=> "));
                }
                self.bar.set_length(all);
            }
            self.bar.set_position(done);
        }
        self.bar.set_message(reason.clone());
        let counted = progress.map_or_else(String::new, |(done, all)| format!(" {done}/{all}"));
        let line = format!("{} {reason}{counted}", self.bar.prefix());
        // Without a terminal the bar draws nothing: each change is a line.
        if self.bar.is_hidden() && self.last.replace(line.clone()) != line {
            eprintln!("{line}");
        }
    }

    fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

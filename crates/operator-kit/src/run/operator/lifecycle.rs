//! The life of the process: it serves its health, waits for the Lease, acts, and stops.

use std::{
    future::pending,
    ops::ControlFlow,
    pin::{Pin, pin},
    time::Duration,
};

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::ObjectReference;
use operator_watch::Watches;
use serde::de::DeserializeOwned;
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    sync::watch as flag,
};

use super::{Operator, unexpected};
use crate::{
    report::{Event, Events},
    run::{
        Validate,
        controller::Phase,
        leader::{Candidate, Leadership, RELEASE_TIMEOUT},
        server::{self, SelfTest},
    },
};

/// Time between heartbeats for liveness.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum time that the start waits for watches that neither deliver nor fail.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit of current passes after SIGTERM.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit for publishing the queued Events, after the Lease has been released.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(4);
/// Time that a Pod has to end, as the charts say.
const TERMINATION_GRACE: Duration = Duration::from_secs(30);
const _: () = assert!(
    SHUTDOWN_TIMEOUT.as_secs() + RELEASE_TIMEOUT.as_secs() + EVENTS_TIMEOUT.as_secs()
        < TERMINATION_GRACE.as_secs(),
    "the last Events would be lost"
);

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> Operator<S> {
    /// Serves, leads, and takes `work` through its phases.
    pub(super) async fn run_lifecycle(
        &self,
        phase: flag::Sender<Phase>,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = async {
            select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        };
        let test = SelfTest::new(self.client.clone(), self.namespace(), self.settings.clone());
        let (health, metrics, settings) =
            (self.health.clone(), self.events.metrics.clone(), self.settings_status.clone());
        let server = server::serve(self.arguments.listen, health, metrics, settings, test);
        let work = async {
            let ended = self.lead_and_work(&phase, work, stop).await;
            // Events need no Lease, so a successor need not wait for them.
            if !self.events.flush(EVENTS_TIMEOUT).await {
                tracing::warn!("stopping before all Events are published");
            }
            ended
        };
        select! {
            ended = server => ended.context("stopping"),
            ended = work => ended,
        }
    }

    async fn lead_and_work(
        &self,
        phase: &flag::Sender<Phase>,
        work: impl Future<Output = anyhow::Result<()>>,
        stop: impl Future,
    ) -> anyhow::Result<()> {
        let (mut work, mut stop) = (pin!(work), pin!(stop));
        let lead = select! {
            lead = self.lead(stop.as_mut()) => lead,
            ended = &mut work => return ended.and_then(|()| unexpected()),
            () = self.heartbeat(false) => return unexpected(),
        };
        let mut leadership = match lead {
            ControlFlow::Continue(leadership) => leadership,
            ControlFlow::Break(taken) => return release(taken).await,
        };
        self.events.metrics.leader.set(1);
        select! {
            settled = tokio::time::timeout(START_TIMEOUT, self.watches.settled()) => {
                if settled.is_err() {
                    tracing::warn!("some watches have not answered yet; starting without them");
                }
            }
            ended = &mut work => return ended.and_then(|()| unexpected()),
            lost = keep(leadership.as_mut()) => return lost,
            _ = &mut stop => return release(leadership).await,
        }
        phase.send_replace(Phase::Leading);
        let outcome = select! {
            ended = &mut work => ended.and_then(|()| unexpected()),
            lost = keep(leadership.as_mut()) => lost,
            () = self.heartbeat(true) => Ok(()),
            _ = &mut stop => Ok(()),
        };
        tracing::info!("stopping");
        self.health.stopping();
        if outcome.is_ok() {
            phase.send_replace(Phase::Stopping);
            let finished = select! {
                finished = tokio::time::timeout(SHUTDOWN_TIMEOUT, work) => finished,
                lost = keep(leadership.as_mut()) => return lost,
            };
            if let Ok(ended) = finished {
                ended?;
            } else {
                tracing::warn!("some reconciliations were still in progress");
            }
            release(leadership).await?;
        }
        outcome
    }

    /// Does work while no replica of the controller is active: it acquires the Lease first, and renews it meanwhile. Only
    /// after a failure it gives the Lease back: a replica that is still ending must not take it, and undo what was done.
    ///
    /// # Errors
    /// When the work failed, or the Lease was lost.
    pub async fn with_lease<T>(&self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let ControlFlow::Continue(mut leadership) = self.lead(pin!(pending::<()>())).await else {
            bail!("the election ended");
        };
        let outcome = select! {
            outcome = work => outcome,
            lost = keep(leadership.as_mut()) => Err(lost.err().unwrap_or_else(|| anyhow::anyhow!("the Lease was lost"))),
        };
        if outcome.is_err() {
            release(leadership).await?;
        }
        outcome
    }

    /// Waits until this process leads, which needs no Lease without an election, or is to stop.
    async fn lead(
        &self,
        mut stop: Pin<&mut impl Future>,
    ) -> ControlFlow<Option<Leadership>, Option<Leadership>> {
        if !self.arguments.leader_election {
            return ControlFlow::Continue(None);
        }
        let namespace = self.namespace();
        let name = self.arguments.lease_name.as_deref().unwrap_or(self.name);
        let (identity, gate, health) =
            (&self.arguments.identity, self.writer.gate().clone(), self.health.clone());
        let candidate = Candidate::new(self.client.clone(), namespace, name, identity, gate, health);
        candidate.lead(stop.as_mut()).await.map_continue(Some)
    }

    /// Sends heartbeats, and publishes Events about watches that keep failing, forever.
    async fn heartbeat(&self, leads: bool) {
        loop {
            self.health.beat();
            self.events.metrics.leader.set(i64::from(leads && self.writer.gate().is_open()));
            publish_failures(&self.watches, &self.events, self.config_map.as_ref());
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        }
    }
}

/// Publishes Events about watches that keep failing.
fn publish_failures(watches: &Watches, events: &Events, config_map: Option<&ObjectReference>) {
    for failure in watches.lasting_failures() {
        let event =
            Event { action: "Watch".into(), ..Events::warning("KindNotObserved", &failure.to_string()) };
        // The text may name the time.
        events.publish_lasting(config_map, (&failure.object.kind, failure.cause), (), event);
    }
}

async fn keep(leadership: Option<&mut Leadership>) -> anyhow::Result<()> {
    match leadership {
        Some(leadership) => leadership.keep().await,
        None => pending().await,
    }
}

async fn release(leadership: Option<Leadership>) -> anyhow::Result<()> {
    if let Some(leadership) = leadership {
        leadership.release().await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use k8s_openapi::api::core::v1::ConfigMap;
    use operator_watch::Watch;
    use serde_json::json;

    use super::*;
    use crate::testing::{Answer, answering};

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_keeps_failing_is_told_again_before_the_event_expires() {
        let (client, log) = answering(|_| Answer::Done);
        let (events, map) = (Events::over(client, "binder"), ObjectReference::default());
        let watches = Watches::default();
        let times = AtomicUsize::new(0);
        // As the answer of a conversion webhook whose certificate has expired, which names the time.
        let refusing = answering(move |_| {
            let message = format!("it is {}", times.fetch_add(1, Ordering::Relaxed));
            Answer::Json(500, json!({"kind": "Status", "status": "Failure", "code": 500, "message": message}))
        });
        let watch = Watch::<ConfigMap>::all(&refusing.0, &());
        let _failing = watches.watch_changes(watch, |_| {});
        let beats = 55 * 60 / HEARTBEAT_INTERVAL.as_secs();
        for _ in 0..beats {
            publish_failures(&watches, &events, Some(&map));
            tokio::time::sleep(HEARTBEAT_INTERVAL).await;
        }
        assert_eq!(log.take().len(), 2);
    }
}

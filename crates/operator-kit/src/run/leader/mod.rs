//! Leader election over a Lease, as client-go does it.
//!
//! kube-lease-manager reads the Lease before each renewal and measures its expiry by the wall clock; here a
//! renewal is one write, tested by resourceVersion, and the leader stops writing by its monotonic clock before
//! another may begin. It ends only when another has the Lease, so that an API server that is away for a while
//! restarts no controller. Safety does not rest on it: writes are safe to repeat and carry uids.

mod lease;

use std::{ops::ControlFlow, pin::Pin, sync::Arc, time::Duration};

use anyhow::bail;
use futures::TryFutureExt;
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    object::Named,
    report::health::Health,
    watch::{ApiError, Cause, Verb, live::within},
    write::Gate,
};
use lease::{Lease, Moment, Spec};

/// Validity of a Lease after its last renewal.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(15);
/// Time without a renewal after which the leader writes nothing.
pub(crate) const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Time between renewals.
const RENEW_INTERVAL: Duration = Duration::from_secs(5);
/// Time between tries to acquire the Lease, and to renew it after a failure.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Time limit of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Time limit of the release of the Lease, for two tries without an answer and the begin of a third: a Pod has 30 s to
/// end.
pub(crate) const RELEASE_TIMEOUT: Duration = Duration::from_secs(10);

/// A candidate for leadership.
pub(crate) struct Candidate {
    leases: Api<Lease>,
    name: String,
    identity: String,
    gate: Gate,
    health: Arc<Health>,
}

/// The Lease as this process last wrote it.
pub(crate) struct Leadership {
    candidate: Candidate,
    lease: Lease,
    renewed: Instant,
}

/// The Lease as a candidate has seen it so far.
#[derive(Default)]
struct Seen {
    /// Another's last renewal, and when it was seen: the Lease has expired if it is not renewed for its duration, measured by
    /// *our* clock.
    renewal: Option<(Option<Moment>, Instant)>,
    metadata: Option<ObjectMeta>,
}

impl Candidate {
    /// A candidate that keeps the gate open while it leads.
    pub fn new(client: Client, namespace: &str, name: &str, identity: &str, gate: Gate) -> Self {
        Self {
            leases: Api::namespaced(client, namespace),
            name: name.to_owned(),
            identity: identity.to_owned(),
            gate,
            health: Arc::default(),
        }
    }

    /// The same, which tells of lasting failures.
    pub fn reporting_to(self, health: Arc<Health>) -> Self {
        Self { health, ..self }
    }

    /// Waits until this process leads, or is to stop: then the Lease is returned that a request under way has taken. As
    /// long as such a request is not answered, it may have.
    pub async fn lead<S: Future>(self, mut stop: Pin<&mut S>) -> ControlFlow<Option<Leadership>, Leadership> {
        let (mut seen, mut stopped) = (Seen::default(), None::<Instant>);
        loop {
            let taken = self.take(&mut seen).await;
            let is_answered = taken.as_ref().err().is_none_or(|error| error.cause != Cause::Silent);
            match taken {
                Ok(taken) => {
                    self.health.election_works();
                    if let Some((lease, renewed)) = taken {
                        tracing::info!(lease = self.name, identity = self.identity, "leading");
                        self.gate.open_until(renewed + RENEW_DEADLINE);
                        let leadership = Leadership { candidate: self, lease, renewed };
                        return match stopped {
                            Some(_) => ControlFlow::Break(Some(leadership)),
                            None => ControlFlow::Continue(leadership),
                        };
                    }
                }
                Err(error) => self.warn("acquire", &error),
            }
            if stopped.is_some_and(|since| is_answered || since.elapsed() > RELEASE_TIMEOUT) {
                return ControlFlow::Break(None);
            }
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                _ = &mut stop, if stopped.is_none() => {
                    if is_answered {
                        return ControlFlow::Break(None);
                    }
                    stopped = Some(Instant::now());
                }
            }
        }
    }

    fn warn(&self, what: &str, ApiError { message, .. }: &ApiError) {
        tracing::warn!(lease = self.name, "cannot {what} the Lease: {message}");
        self.health.election_fails(format!("the Lease {}: {message}", self.name));
    }

    /// The answer to one request, each of which has its own time: on a slow API server, two would take too long together.
    fn answer<T>(
        &self,
        request: impl Future<Output = kube::Result<T>>,
    ) -> impl Future<Output = Result<T, ApiError>> {
        let failed = |error| ApiError::of(Verb::Write, &error, Named::new("Lease", &*self.name));
        within(REQUEST_TIMEOUT, request).map_err(failed)
    }

    /// Takes a Lease that is free. Returns it with the begin of its validity.
    async fn take(&self, seen: &mut Seen) -> Result<Option<(Lease, Instant)>, ApiError> {
        let Some(mut lease) = self.answer(self.leases.get_opt(&self.name)).await? else {
            // The holder of a deleted Lease still writes, and creates it again at its next renewal.
            if seen.renewal.as_ref().is_some_and(|(_, since)| since.elapsed() < LEASE_DURATION) {
                return Ok(None);
            }
            let before = Instant::now();
            let lease = Lease::new(&self.name, self.spec(None)).in_place_of(seen.metadata.as_ref());
            let created = self.answer(self.leases.create(&PostParams::default(), &lease)).await?;
            return Ok(Some((created, before)));
        };
        seen.metadata = Some(lease.metadata.clone());
        let spec = lease.spec.clone();
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if !holder.is_empty() && holder != self.identity {
            let holds = spec
                .lease_duration_seconds
                .map_or(LEASE_DURATION, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)));
            let (renewal, since) =
                seen.renewal.get_or_insert_with(|| (spec.renew_time.clone(), Instant::now()));
            if *renewal != spec.renew_time {
                seen.renewal = Some((spec.renew_time, Instant::now()));
                return Ok(None);
            }
            if since.elapsed() < holds {
                return Ok(None);
            }
        }
        let before = Instant::now();
        lease.spec = self.spec(Some(&spec));
        // The write carries the resourceVersion of the read, so one of two candidates gets a conflict.
        let taken = self.answer(self.leases.replace(&self.name, &PostParams::default(), &lease)).await?;
        Ok(Some((taken, before)))
    }

    fn spec(&self, before: Option<&Spec>) -> Spec {
        let now = Some(Moment::now());
        let same = before.is_some_and(|before| before.holder_identity.as_deref() == Some(&self.identity));
        let transitions = before.and_then(|before| before.lease_transitions).unwrap_or(0);
        Spec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i64::try_from(LEASE_DURATION.as_secs()).ok(),
            acquire_time: before
                .filter(|_| same)
                .and_then(|before| before.acquire_time.clone())
                .or_else(|| now.clone()),
            renew_time: now,
            lease_transitions: Some(if same || before.is_none() { transitions } else { transitions + 1 }),
        }
    }
}

impl Leadership {
    /// Renews the Lease; ends with an error when another replica has it.
    pub async fn keep(&mut self) -> anyhow::Result<()> {
        loop {
            sleep(RENEW_INTERVAL.saturating_sub(self.renewed.elapsed())).await;
            self.renew().await?;
        }
    }

    async fn renew(&mut self) -> anyhow::Result<()> {
        loop {
            let before = Instant::now();
            match self.write().await {
                Ok(lease) => {
                    self.lease = lease;
                    self.renewed = before;
                    self.candidate.gate.open_until(before + RENEW_DEADLINE);
                    self.candidate.health.election_works();
                    return Ok(());
                }
                Err(error) if error.is_stale() => match self.reread().await {
                    Ok(None) => continue,
                    Ok(Some(holder)) => {
                        self.candidate.gate.close();
                        bail!("the Lease {} is held by {holder:?}: stopping", self.candidate.name)
                    }
                    Err(error) => self.candidate.warn("read", &error),
                },
                Err(error) => self.candidate.warn("renew", &error),
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn write(&self) -> Result<Lease, ApiError> {
        let mut lease = self.lease.clone();
        lease.spec = self.candidate.spec(Some(&self.lease.spec));
        self.replace(&lease).await
    }

    async fn replace(&self, lease: &Lease) -> Result<Lease, ApiError> {
        let Candidate { leases, name, .. } = &self.candidate;
        self.candidate.answer(leases.replace(name, &PostParams::default(), lease)).await
    }

    /// Reads a Lease that somebody has written or deleted, and returns its holder unless it is still ours, or was created
    /// again.
    async fn reread(&mut self) -> Result<Option<String>, ApiError> {
        let Candidate { leases, name, .. } = &self.candidate;
        let Some(lease) = self.candidate.answer(leases.get_opt(name)).await? else {
            let new = Lease::new(name, self.candidate.spec(None));
            let lease = new.in_place_of(Some(&self.lease.metadata));
            self.lease = self.candidate.answer(leases.create(&PostParams::default(), &lease)).await?;
            return Ok(None);
        };
        let holder = lease.spec.holder_identity.clone().unwrap_or_default();
        if holder != self.candidate.identity {
            return Ok(Some(holder));
        }
        self.lease = lease;
        Ok(None)
    }

    /// Releases the Lease, so that another replica need not wait for its expiry.
    pub async fn release(mut self) {
        self.candidate.gate.close();
        if timeout(RELEASE_TIMEOUT, self.try_to_release()).await.is_err() {
            tracing::warn!("cannot release the Lease in time; it expires by itself");
        }
    }

    async fn try_to_release(&mut self) {
        loop {
            match self.give_up().await {
                // Without a holder, an unanswered release took effect.
                Ok(holder) if holder.as_deref().unwrap_or_default().is_empty() => {
                    return tracing::info!("released the Lease");
                }
                Ok(_) => return tracing::warn!("cannot release the Lease: another replica holds it"),
                // It was not refused.
                Err(ApiError { code: 0 | 429 | 500.., message, .. }) => {
                    tracing::warn!("cannot release the Lease: {message}");
                }
                Err(ApiError { message, .. }) => {
                    return tracing::warn!(
                        "cannot release the Lease: {message}; it is gone, or expires by itself"
                    );
                }
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Returns the holder of the Lease if it is another one.
    async fn give_up(&mut self) -> Result<Option<String>, ApiError> {
        loop {
            let mut lease = self.lease.clone();
            lease.spec.holder_identity = Some(String::new());
            lease.spec.lease_duration_seconds = Some(1);
            lease.spec.renew_time = Some(Moment::now());
            match self.replace(&lease).await {
                Err(error) if error.cause == Cause::Conflict => {
                    if let Some(holder) = self.reread().await? {
                        return Ok(Some(holder));
                    }
                }
                released => return released.map(|_| None),
            }
        }
    }
}

#[cfg(test)]
mod tests;

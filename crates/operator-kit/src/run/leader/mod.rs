//! Leader election over a Lease, as client-go does it.
//!
//! kube-lease-manager reads the Lease before each renewal and measures its expiry by the wall clock; here a
//! renewal is one write, tested by resourceVersion, and the leader stops writing by its monotonic clock before
//! another may begin. It ends only when another has the Lease, so that an API server that is away for a while
//! restarts no controller. Safety does not rest on it: writes are safe to repeat and carry uids.

use std::{ops::ControlFlow, pin::Pin, sync::Arc, time::Duration};

use anyhow::bail;
use futures::TryFutureExt;
use k8s_openapi::{api::coordination::v1::Lease, apimachinery::pkg::apis::meta::v1::MicroTime};
use kube::{
    Api, Client,
    api::{ApiResource, ObjectMeta, PostParams, TypeMeta},
};
use operator_watch::{ApiError, Cause, Live, PrunedObject, Verb};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use crate::{report::health::Health, write::Gate};

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

/// A candidate for leadership, which keeps the gate open while it leads.
pub(crate) struct Candidate {
    /// The API server accepts times in a Lease that cannot be parsed here.
    leases: Api<PrunedObject>,
    name: String,
    identity: String,
    gate: Gate,
    /// Where lasting failures are reported.
    health: Arc<Health>,
}

/// The Lease as this process last wrote it.
pub(crate) struct Leadership {
    candidate: Candidate,
    lease: PrunedObject,
    renewed: Instant,
}

/// The Lease as a candidate has seen it so far.
#[derive(Default)]
struct Seen {
    /// Another's last renewal, and when it was seen: the Lease has expired if it is not renewed for its duration, measured by
    /// *our* clock.
    renewal: Option<(Value, Instant)>,
    metadata: ObjectMeta,
}

impl Candidate {
    pub fn new(
        client: Client,
        namespace: &str,
        name: &str,
        identity: &str,
        gate: Gate,
        health: Arc<Health>,
    ) -> Self {
        let (name, identity) = (name.to_owned(), identity.to_owned());
        let leases = Api::namespaced_with(client, namespace, &ApiResource::erase::<Lease>(&()));
        Self { leases, name, identity, gate, health }
    }

    /// Waits until this process leads, or is to stop: then the Lease is returned that a request under way has taken. As
    /// long as such a request is not answered, it may have.
    pub async fn lead<S: Future>(self, mut stop: Pin<&mut S>) -> ControlFlow<Option<Leadership>, Leadership> {
        let (mut seen, mut stopped) = (Seen::default(), None::<Instant>);
        loop {
            let taken = self.acquire(&mut seen).await;
            let is_answered = taken.as_ref().err().is_none_or(|error| error.cause != Cause::Silent);
            match taken {
                Ok(Some((lease, renewed))) => {
                    tracing::info!(lease = self.name, identity = self.identity, "leading");
                    self.health.election_works();
                    self.gate.open_until(renewed + RENEW_DEADLINE);
                    let leadership = Leadership { candidate: self, lease, renewed };
                    return match stopped {
                        Some(_) => ControlFlow::Break(Some(leadership)),
                        None => ControlFlow::Continue(leadership),
                    };
                }
                Ok(None) => self.health.election_works(),
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
        let failed = |error| ApiError::of(Verb::Write, &error, ("Lease", &*self.name));
        Live::within(REQUEST_TIMEOUT, request).map_err(failed)
    }

    /// Acquires a Lease that is free. Returns it with the begin of its validity.
    async fn acquire(&self, seen: &mut Seen) -> Result<Option<(PrunedObject, Instant)>, ApiError> {
        let found = self.answer(self.leases.get_opt(&self.name)).await?;
        // The holder of a deleted Lease still writes, and creates it again at its next renewal.
        let (mut is_held, mut validity) = (true, LEASE_DURATION);
        if let Some(lease) = &found {
            seen.metadata = lease.metadata.clone();
            is_held = !holder(lease).is_empty() && holder(lease) != self.identity;
            validity = self::validity(lease);
            let renewal = &lease.data["spec"]["renewTime"];
            if is_held && seen.renewal.as_ref().is_none_or(|(last, _)| last != renewal) {
                seen.renewal = Some((renewal.clone(), Instant::now()));
            }
        }
        if is_held && seen.renewal.as_ref().is_some_and(|(_, since)| since.elapsed() < validity) {
            return Ok(None);
        }
        let before = Instant::now();
        let taken = match found {
            None => self.create(&seen.metadata).await?,
            Some(lease) => self.replace(&lease, self.spec(&lease.data["spec"])).await?,
        };
        Ok(Some((taken, before)))
    }

    /// Creates the Lease in the place of a deleted one, with its labels and annotations. Without those of helm, an
    /// uninstallation would leave the Lease behind, and the next installation would refuse it as somebody else's.
    async fn create(&self, former: &ObjectMeta) -> Result<PrunedObject, ApiError> {
        let ObjectMeta { labels, annotations, .. } = former.clone();
        let metadata =
            ObjectMeta { name: Some(self.name.clone()), labels, annotations, ..ObjectMeta::default() };
        let mut data = json!(TypeMeta::resource::<Lease>());
        data["spec"] = self.spec(&Value::Null);
        self.answer(self.leases.create(&PostParams::default(), &PrunedObject { metadata, data })).await
    }

    /// Writes a spec. The write carries the resourceVersion of `last`, so that one of two candidates gets a conflict. It leaves
    /// the `managedFields` as they are.
    async fn replace(&self, last: &PrunedObject, spec: Value) -> Result<PrunedObject, ApiError> {
        let mut lease = last.clone();
        lease.data["spec"] = spec;
        self.answer(self.leases.replace(&self.name, &PostParams::default(), &lease)).await
    }

    /// The spec by which this process holds the Lease; `before` is null for a new one.
    fn spec(&self, before: &Value) -> Value {
        let now = now();
        let is_own = before["holderIdentity"] == *self.identity;
        let is_kept = is_own && !before["acquireTime"].is_null();
        let transitions = before["leaseTransitions"].as_i64().unwrap_or(0);
        json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LEASE_DURATION.as_secs(),
            "leaseTransitions": transitions + i64::from(!is_own && !before.is_null()),
            "acquireTime": if is_kept { &before["acquireTime"] } else { &now },
            "renewTime": now,
        })
    }
}

impl Leadership {
    /// Renews the Lease; ends with an error when another replica has it.
    pub async fn keep(&mut self) -> anyhow::Result<()> {
        let mut pause = RENEW_INTERVAL.saturating_sub(self.renewed.elapsed());
        loop {
            sleep(pause).await;
            pause = RETRY_INTERVAL;
            let before = Instant::now();
            let spec = self.candidate.spec(&self.lease.data["spec"]);
            match self.candidate.replace(&self.lease, spec).await {
                Ok(lease) => {
                    self.lease = lease;
                    self.renewed = before;
                    self.candidate.gate.open_until(before + RENEW_DEADLINE);
                    self.candidate.health.election_works();
                    pause = RENEW_INTERVAL.saturating_sub(before.elapsed());
                }
                Err(error) if error.is_stale() => match self.reread().await {
                    Ok(None) => pause = Duration::ZERO,
                    Ok(Some(holder)) => {
                        self.candidate.gate.close();
                        bail!("the Lease {} is held by {holder:?}: stopping", self.candidate.name)
                    }
                    Err(error) => self.candidate.warn("read", &error),
                },
                Err(error) => self.candidate.warn("renew", &error),
            }
        }
    }

    /// Reads a Lease that somebody has written or deleted, and returns its holder unless it is still ours, or was created
    /// again.
    async fn reread(&mut self) -> Result<Option<String>, ApiError> {
        let Candidate { leases, name, identity, .. } = &self.candidate;
        self.lease = match self.candidate.answer(leases.get_opt(name)).await? {
            Some(lease) if holder(&lease) != identity => return Ok(Some(holder(&lease).to_owned())),
            Some(lease) => lease,
            None => self.candidate.create(&self.lease.metadata).await?,
        };
        Ok(None)
    }

    /// Releases the Lease, so that another replica need not wait for its expiry.
    pub async fn release(mut self) {
        self.candidate.gate.close();
        if timeout(RELEASE_TIMEOUT, self.try_release()).await.is_err() {
            tracing::warn!("cannot release the Lease in time; it expires by itself");
        }
    }

    async fn try_release(&mut self) {
        loop {
            let mut spec = self.lease.data["spec"].clone();
            spec["holderIdentity"] = "".into();
            spec["leaseDurationSeconds"] = 1.into();
            spec["renewTime"] = now();
            let holder = match self.candidate.replace(&self.lease, spec).await {
                Err(error) if error.cause == Cause::Conflict => match self.reread().await {
                    Ok(None) => continue,
                    reread => reread,
                },
                released => released.map(|_| None),
            };
            match holder {
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
}

/// The identity of the holder of a Lease; empty if there is none.
fn holder(lease: &PrunedObject) -> &str {
    lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default()
}

/// The time for which a Lease is valid after a renewal.
fn validity(lease: &PrunedObject) -> Duration {
    let seconds = lease.data["spec"]["leaseDurationSeconds"].as_i64();
    seconds.map_or(LEASE_DURATION, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The present time, as the API server takes it.
fn now() -> Value {
    json!(MicroTime(jiff::Timestamp::now()))
}

#[cfg(test)]
mod tests;

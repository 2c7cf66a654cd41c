//! observe → decide → act, once per pass.

use std::{convert::Infallible, fmt::Debug, hash::Hash, pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kube::{Resource, runtime::reflector::ObjectRef};
use operator_watch::{Cache, Failure, ObjectId};
use tokio::{
    select,
    sync::watch as flag,
    time::{Instant, timeout},
};
use tracing::Instrument;

use crate::{
    report::{Events, Failures, failures::TIMED_OUT, health::Health, metrics::Metrics},
    run::{
        Backoffs, Queue,
        backoff::{AllBackoffs, EVERYTHING, MAX_DELAY, RetryFingerprint, StepRun},
        queue::Key,
    },
    write::Writer,
};

/// Time limit of a pass. Its requests have limits of their own, and its batches end after half a minute, so that only a
/// mistake in a controller needs as long.
const PASS_TIMEOUT: Duration = Duration::from_secs(600);
/// Delay before the next pass while the last write has not reached the cache; its event usually comes sooner.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(1);
/// Longest delay between two identical writes without effect.
const MAX_REPEATED_WRITE_DELAY: Duration = Duration::from_secs(60);
/// Minimum delay before a report that failed is retried.
const REPORT_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Time in which epochs are gathered before every object is reconciled again.
const RETRIGGER_DEBOUNCE: Duration = Duration::from_secs(1);

/// A controller of one kind, or of several similar ones, in three rooms.
pub trait Controller: Send + Sync + 'static {
    /// The reconciled kind.
    type Kind: Resource<DynamicType: Clone + Debug + Eq + Hash + Unpin + Send + Sync>
        + Clone
        + Debug
        + Send
        + Sync
        + 'static;
    /// The input of a decision.
    type Observed: Send;
    /// The decision: one step.
    type Action: Debug + Send;
    /// The errors of observe and act: a [`Failure`], [`Failures`], or any that convert into these.
    type Error: Into<Failures>;

    /// The longest delay between two tries of a failing step; a jitter of up to a fifth is added.
    const LONGEST_BACKOFF: Duration = MAX_DELAY;

    /// Reads caches, and live where a wrong answer would lose data. `backoffs` become part of the observation: for an
    /// object that is backing off, only its failure may be reported.
    fn observe(
        &self,
        object: Arc<Self::Kind>,
        backoffs: Backoffs,
    ) -> impl Future<Output = Result<Self::Observed, Self::Error>> + Send;

    /// Decides on the next step. Pure: no I/O, no clock, no randomness.
    fn decide(&self, observed: &Self::Observed) -> Self::Action;

    /// The step that an action belongs to. A failure holds up only its own step, so that `decide` continues with
    /// others, and each step makes progress separately. One of few labels, or an empty one if a failure is to hold up
    /// everything.
    fn step(&self, _action: &Self::Action) -> &'static str {
        EVERYTHING
    }

    /// A key of a step, or of everything for an empty one: when it differs from the key right before the step failed as a
    /// whole, the step is worth a retry, unless the failure passes by itself.
    fn retry_key(&self, _object: &Self::Kind, _step: &'static str) -> u64 {
        0
    }

    /// Forgets an object that is gone, or no longer watched.
    fn forget(&self, _uid: &str) {}

    /// Takes the step: one write, or one bounded batch of independent writes of the same kind.
    fn act(
        &self,
        observed: Self::Observed,
        action: Self::Action,
    ) -> impl Future<Output = Result<Requeue, Self::Error>> + Send;
}

/// When the next pass follows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// Something was written; its watch event triggers the next pass, which comes soon also without one.
    Written,
    /// Something was found that the next pass must handle at once.
    Now,
    /// Nothing is left to do until something changes.
    OnChange,
    /// Nothing is to be done before this time has passed.
    After(Duration),
    /// Nothing was achieved yet, and nothing has failed; the next pass after this time tries it again.
    Untried(Duration),
}

/// The phase of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Another replica is active; caches are kept warm.
    Standby,
    /// This replica is active.
    Leading,
    /// Current passes finish, and no new one begins.
    Stopping,
}

/// Some objects of a controller's kind.
type Objects<C> = Vec<Arc<<C as Controller>::Kind>>;

/// A controller, and what is remembered of each object between its passes.
pub(crate) struct Memory<C> {
    pub controller: Arc<C>,
    pub backoff: Arc<AllBackoffs>,
    pub writer: Writer,
    pub events: Events,
}

/// Reconciles one kind.
pub(crate) struct Reconciler<C: Controller> {
    pub memory: Arc<Memory<C>>,
    pub dynamic_type: <C::Kind as Resource>::DynamicType,
    pub objects: Arc<Cache<C::Kind>>,
    pub queue: Queue,
    pub concurrency: u16,
    pub health: Arc<Health>,
}

/// The end of a pass, also of one that is cut off: memory of an object that was deleted during it would never be cleared.
struct PassGuard<'p, C: Controller> {
    reconciler: &'p Reconciler<C>,
    object: &'p C::Kind,
    uid: &'p str,
}

impl<C: Controller> Drop for PassGuard<'_, C> {
    fn drop(&mut self) {
        if self.reconciler.current(self.object).is_none() {
            self.reconciler.memory.forget(self.uid);
        }
    }
}

impl<C: Controller> Memory<C> {
    /// For the watch of the objects: forgets each that is gone, and requests a pass over each that changes.
    pub fn on_change(
        self: &Arc<Self>,
        queue: &Queue,
    ) -> impl FnMut(bool, Objects<C>, Objects<C>) + Send + Sync + use<C> {
        let (memory, queue) = (self.clone(), queue.clone());
        move |is_list, present, gone| {
            for object in gone {
                memory.forget(ObjectId::of(&*object).uid);
            }
            if is_list {
                queue.relist();
            } else {
                for object in present {
                    queue.notify_of(&*object);
                }
            }
        }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.controller.forget(uid);
        self.forget_attempts(uid);
    }

    /// Forgets the attempts at an object. A write that is cut off afterwards is still awaited under another watch.
    pub fn forget_attempts(&self, uid: &str) {
        self.backoff.forget(uid);
        self.writer.forget(uid);
        self.events.metrics.backing_off.set(self.backoff.len() as u64);
    }
}

impl<C: Controller> Reconciler<C> {
    /// Works until the phase says to stop.
    ///
    /// # Errors
    /// When a part of it ended that must not.
    pub async fn run(self: Arc<Self>, phase: flag::Receiver<Phase>) -> anyhow::Result<()> {
        select! {
            () = self.objects.watch().ended() => Err(anyhow::anyhow!("the watch ended")),
            never = self.retrigger() => match never {},
            ended = self.work(phase) => ended,
        }
    }

    /// Makes passes while leading.
    async fn work(&self, mut phase: flag::Receiver<Phase>) -> anyhow::Result<()> {
        // Followers keep their caches warm and are ready, so that a rollout of two replicas proceeds; requests meanwhile
        // do not count.
        drop(phase.wait_for(|phase| *phase != Phase::Standby).await?);
        self.queue.open();
        let stopping = async move { phase.wait_for(|phase| *phase == Phase::Stopping).await.map(drop) };
        tokio::join!(self.queue.notify_all(&self.objects, |_| true), self.make_passes(stopping)).1
    }

    /// Makes the requested passes, until it stops.
    async fn make_passes(
        &self,
        stopping: impl Future<Output = Result<(), flag::error::RecvError>>,
    ) -> anyhow::Result<()> {
        let mut under_way = FuturesUnordered::<BoxFuture<'_, (Key, Option<Duration>)>>::new();
        let (mut stopping, mut is_stopping) = (pin!(stopping.fuse()), false);
        while !(is_stopping && under_way.is_empty()) {
            select! {
                stop = &mut stopping => {
                    stop?;
                    is_stopping = true;
                }
                Some((key, again)) = under_way.next() => self.queue.done(key, again),
                key = self.queue.next(), if !is_stopping && under_way.len() < usize::from(self.concurrency) => {
                    // Before the first list is complete, there is none; all are requested after it.
                    let Some(object) = self.find(&key.namespace, &key.name) else {
                        self.queue.done(key, None);
                        continue;
                    };
                    let reference = self.reference(&object);
                    let span = tracing::info_span!("reconciling object", "object.ref" = %reference);
                    let pass = async move { (key, self.pass(object).await) };
                    under_way.push(pass.instrument(span).boxed());
                }
            }
        }
        Ok(())
    }

    /// Requeues every object after a new list, and in a new epoch.
    async fn retrigger(&self) -> Infallible {
        let mut epoch = self.health.watches.requeue_epoch.subscribe();
        loop {
            select! {
                // The first list counts as well, but nobody has to wait for it.
                biased;
                () = self.queue.relisted() => {}
                Ok(()) = epoch.changed() => {
                    // At a start and after an outage, watches recover one after another.
                    tokio::time::sleep(RETRIGGER_DEBOUNCE).await;
                    epoch.mark_unchanged();
                }
            }
            self.queue.notify_all(&self.objects, |_| true).await;
        }
    }

    /// Makes one pass over an object, and returns the delay before the next one if nothing happens before. Never fails:
    /// errors are kept for the object's status.
    pub async fn pass(&self, object: Arc<C::Kind>) -> Option<Duration> {
        let uid = object.meta().uid.clone().unwrap_or_default();
        let _guard = PassGuard { reconciler: self, object: &object, uid: &uid };
        self.pass_over(&object, &uid).await
    }

    /// The object with this name in the cache; the namespace of a cluster-scoped object is empty.
    pub fn find(&self, namespace: &str, name: &str) -> Option<Arc<C::Kind>> {
        self.objects.by_index(namespace, name).pop()
    }

    /// A reference to an object, for logs.
    pub fn reference(&self, object: &C::Kind) -> ObjectRef<C::Kind> {
        ObjectRef::from_obj_with(object, self.dynamic_type.clone())
    }

    /// The object in the cache now; `None` if it is gone.
    fn current(&self, object: &C::Kind) -> Option<Arc<C::Kind>> {
        self.objects.row(ObjectId::of(object).uid)
    }

    async fn pass_over(&self, queued: &C::Kind, uid: &str) -> Option<Duration> {
        if !self.memory.writer.catches_up(uid).await {
            return Some(CATCH_UP_INTERVAL);
        }
        // The queued object may be older than a write that has reached the cache since.
        let object = self.current(queued)?;
        let fingerprint = RetryFingerprint {
            generation: object.meta().generation.unwrap_or_default(),
            epoch: *self.health.watches.requeue_epoch.borrow(),
        };
        let retry_key = |step| self.memory.controller.retry_key(&object, step);
        let (backoffs, retry_in) = self.memory.backoff.of(uid, fingerprint, retry_key);
        if backoffs.everything().is_some_and(|failure| failure.is_expected) {
            return retry_in;
        }
        let longest = C::LONGEST_BACKOFF;
        let retry_key = retry_key(EVERYTHING);
        let mut run = StepRun { step: EVERYTHING, retry_key, longest, has_progressed: false };
        let started = Instant::now();
        let step = self.step(object.clone(), backoffs.clone(), &mut run);
        let result = timeout(PASS_TIMEOUT, step).await;
        let took = started.elapsed();
        let repeated = self.memory.writer.repeated(uid);
        let failed = match (result, repeated) {
            // A rival that is always faster makes each try to undo its change fail.
            (Ok(ended), Some(repeated))
                if ended.as_ref().err().is_none_or(|failures| {
                    repeated.undoes.is_some() && failures.parts.iter().all(|failure| failure.is_expected)
                }) =>
            {
                self.memory.events.metrics.passed("repeated", took);
                self.memory.events.metrics.repeated_writes.get_or_create(&Metrics::of(&repeated.kind)).inc();
                run.longest = run.longest.min(MAX_REPEATED_WRITE_DELAY);
                vec![repeated.failed()]
            }
            (Ok(Ok(next)), _) => {
                self.memory.events.metrics.passed("success", took);
                self.succeeded(uid, &backoffs, run.step, next);
                let wait = match next {
                    Requeue::After(time) | Requeue::Untried(time) => Some(time),
                    Requeue::Now => Some(Duration::ZERO),
                    // A write that changed nothing, or whose object its watch does not show, brings no event.
                    Requeue::Written => Some(CATCH_UP_INTERVAL),
                    Requeue::OnChange => None,
                };
                return wait.into_iter().chain(retry_in).min();
            }
            (Ok(Err(failures)), _) => {
                self.memory.events.metrics.passed("error", took);
                run.has_progressed = failures.has_progressed;
                failures.parts
            }
            (Err(_), _) => {
                self.memory.events.metrics.passed("timeout", took);
                vec![timed_out(self.health.election_problem())]
            }
        };
        for Failure { is_stalled, reason, .. } in &failed {
            let category = if *is_stalled { "waits_for_change" } else { "transient" };
            let labels = [("category", category.into()), ("reason", (*reason).into())];
            self.memory.events.metrics.errors.get_or_create(&labels).inc();
        }
        let was_held = |failed: &Failure| {
            failed.item.as_ref().is_some_and(|item| backoffs.is_item_backing_off(run.step, item))
        };
        if backoffs.is_backing_off(run.step) || failed.iter().all(was_held) {
            // Not even the failure could be reported, which is not a new attempt.
            return Some(retry_in.unwrap_or_default().max(REPORT_RETRY_DELAY));
        }
        for failure in failed {
            self.failed(&object, uid, fingerprint, run, failure);
        }
        // The next pass continues with the other steps, and reports the failure on the object.
        Some(Duration::ZERO)
    }

    async fn step(
        &self,
        object: Arc<C::Kind>,
        backoffs: Backoffs,
        run: &mut StepRun,
    ) -> Result<Requeue, Failures> {
        let observed = self.memory.controller.observe(object.clone(), backoffs).await.map_err(Into::into)?;
        let action = self.memory.controller.decide(&observed);
        tracing::debug!(?action, "decided");
        run.step = self.memory.controller.step(&action);
        run.retry_key = self.memory.controller.retry_key(&object, run.step);
        self.memory.controller.act(observed, action).await.map_err(Into::into)
    }

    /// Ends the backoff of a step that succeeded, and, if nothing is left to do, of all retries that became due.
    fn succeeded(&self, uid: &str, backoffs: &Backoffs, step: &'static str, next: Requeue) {
        match next {
            // Only the failure was reported, so its backoff stays.
            _ if backoffs.everything().is_some() => return,
            Requeue::Untried(_) => return,
            // With one step for everything, the failure may belong to the action after this one.
            Requeue::Written | Requeue::Now if step == EVERYTHING => return,
            Requeue::Written | Requeue::Now => self.memory.backoff.progressed(uid, step),
            Requeue::OnChange | Requeue::After(_) => self.memory.backoff.settled(uid),
        }
        self.memory.events.metrics.backing_off.set(self.memory.backoff.len() as u64);
    }

    fn failed(
        &self,
        object: &C::Kind,
        uid: &str,
        fingerprint: RetryFingerprint,
        run: StepRun,
        failure: Failure,
    ) {
        tracing::debug!(step = run.step, item = failure.item, "{failure}");
        if let Some(Failure { reason, message, .. }) =
            self.memory.backoff.failed(uid, fingerprint, run, failure)
        {
            // Of many items that fail for the same reason, one is told.
            let (topic, state) = ((run.step, reason), self.memory.backoff.failing_since(uid));
            let (about, event) = (object.object_ref(&self.dynamic_type), Events::warning(reason, &message));
            if self.memory.events.publish_lasting(&about, topic, state, event).is_queued {
                tracing::warn!(reason, "{message}");
            }
        }
        self.memory.events.metrics.backing_off.set(self.memory.backoff.len() as u64);
    }

    /// Forgets something about all objects of a kind that is no longer watched, because their deletions go unnoticed.
    pub fn forget_of_all(&self, forget: impl Fn(&Memory<C>, &str)) {
        for object in self.objects.filter(|_| true) {
            forget(&self.memory, ObjectId::of(&*object).uid);
        }
    }
}

/// The failure of a pass that took too long. Without the Lease nothing is written.
fn timed_out(lease_problem: Option<String>) -> Failure {
    let why = lease_problem.unwrap_or_else(|| "the API server does not answer".to_owned());
    let seconds = PASS_TIMEOUT.as_secs();
    Failure::transient(TIMED_OUT, format!("reconciling took longer than {seconds} s: {why}; retrying"))
}

#[cfg(test)]
mod tests;

//! One kind that is reconciled: its watch, its objects and its passes.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use futures::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use kube::Resource;
use operator_watch::{Health, Intake, ObjectId, Row, SharedRows, WatchHandle, Watches};
use serde::de::DeserializeOwned;
use tokio::{
    select,
    sync::{Notify, watch as flag},
};
use tracing::Instrument;

use crate::run::{Controller, Queue, controller::Passes, queue::Key};

/// Time in which epochs are gathered before every object is reconciled again.
const RETRIGGER_DEBOUNCE: Duration = Duration::from_secs(1);

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

/// Reconciles one kind.
pub(crate) struct Reconciler<C: Controller> {
    pub passes: Arc<Passes<C>>,
    pub queue: Queue,
    pub concurrency: u16,
    pub watches: Watches,
}

impl<C: Controller> Reconciler<C> {
    /// Works until the phase says to stop.
    ///
    /// # Errors
    /// When a part of it ended that must not.
    pub async fn run<Raw>(
        self,
        intake: Intake<Raw, C::Kind>,
        phase: flag::Receiver<Phase>,
    ) -> anyhow::Result<()>
    where
        Raw: Resource + Clone + DeserializeOwned + Send + 'static,
    {
        let Self { passes, queue, concurrency, watches } = self;
        let relisted = Arc::<Notify>::default();
        let watching = watch(&watches, intake, queue.clone(), passes.clone(), relisted.clone());
        select! {
            () = watching.ended() => Err(anyhow::anyhow!("the watch ended")),
            never = retrigger(&passes.health, &relisted, &passes.objects, &queue) => match never {},
            ended = work(passes.clone(), &queue, concurrency, phase) => ended,
        }
    }
}

/// Makes passes while leading.
async fn work<C: Controller>(
    passes: Arc<Passes<C>>,
    queue: &Queue,
    concurrency: u16,
    mut phase: flag::Receiver<Phase>,
) -> anyhow::Result<()> {
    // Followers keep their caches warm and are ready, so that a rollout of two replicas proceeds; requests meanwhile
    // do not count.
    drop(phase.wait_for(|phase| *phase != Phase::Standby).await?);
    queue.open();
    let stopping = async move { phase.wait_for(|phase| *phase == Phase::Stopping).await.map(drop) };
    tokio::join!(
        queue.notify_all(&passes.objects, |_| true),
        make_passes(&passes, queue, usize::from(concurrency), stopping)
    )
    .1
}

/// Makes the requested passes, until it stops.
async fn make_passes<C: Controller>(
    passes: &Arc<Passes<C>>,
    queue: &Queue,
    concurrency: usize,
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
            Some((key, again)) = under_way.next() => queue.done(key, again),
            key = queue.next(), if !is_stopping && under_way.len() < concurrency => {
                // Before the first list is complete, there is none; all are requested after it.
                let Some(object) = passes.find(&key.namespace, &key.name) else {
                    queue.done(key, None);
                    continue;
                };
                let reference = passes.reference(&object);
                let span = tracing::info_span!("reconciling object", "object.ref" = %reference);
                let passes = passes.clone();
                let pass = async move { (key, passes.pass(object).await) };
                under_way.push(pass.instrument(span).boxed());
            }
        }
    }
    Ok(())
}

/// Keeps the objects up to date, and requests a pass over each that changes.
fn watch<C: Controller, Raw>(
    watches: &Watches,
    intake: Intake<Raw, C::Kind>,
    queue: Queue,
    passes: Arc<Passes<C>>,
    relisted: Arc<Notify>,
) -> WatchHandle
where
    Raw: Resource + Clone + DeserializeOwned + Send + 'static,
{
    let objects = passes.objects.clone();
    watches.fill(intake, objects.clone(), move |is_list, affected| {
        for object in affected {
            let uid = ObjectId::of(&*object).uid;
            if objects.read().row(uid).is_none() {
                passes.forget(uid);
            } else if !is_list {
                queue.notify_of(&*object);
            }
        }
        if is_list {
            relisted.notify_one();
        }
    })
}

/// Requeues every object after a new list, and in a new epoch.
async fn retrigger<R: Row>(
    health: &Health,
    relisted: &Notify,
    objects: &SharedRows<R>,
    queue: &Queue,
) -> Infallible {
    let mut epoch = health.requeue_epoch.subscribe();
    loop {
        select! {
            // The first list counts as well, but nobody has to wait for it.
            biased;
            () = relisted.notified() => {}
            Ok(()) = epoch.changed() => {
                // At a start and after an outage, watches recover one after another.
                tokio::time::sleep(RETRIGGER_DEBOUNCE).await;
                epoch.mark_unchanged();
            }
        }
        queue.notify_all(objects, |_| true).await;
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::watcher::Event;
    use parking_lot::Mutex;

    use super::*;
    use crate::{
        run::{
            Attempt, Next,
            controller::tests::{object_named, passes_of, writer},
        },
        testing::Lenient,
    };
    use operator_watch::Failure;

    /// Takes a moment for each pass, and records their order.
    #[derive(Default)]
    struct Slow(Mutex<Vec<String>>);

    impl Controller for Slow {
        type Kind = ConfigMap;
        type Observed = String;
        type Action = String;
        type Error = Failure;

        async fn observe(&self, object: Arc<ConfigMap>, _: Attempt) -> Result<String, Failure> {
            Ok(object.metadata.name.clone().unwrap_or_default())
        }

        fn decide(&self, name: &String) -> String {
            name.clone()
        }

        async fn act(&self, _: String, name: String) -> Result<Next, Failure> {
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.0.lock().push(name);
            Ok(Next::Settled)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_asked_for_first_is_looked_at_first_however_many_come_after() {
        let filled = SharedRows::default();
        let names: Vec<_> = (0..100).map(|number| format!("object-{number}")).collect();
        let take = |event| drop(filled.write().take(event, Arc::new));
        take(Event::Init);
        for name in &names {
            take(Event::InitApply(Lenient(Ok(object_named(name)))));
        }
        take(Event::InitDone);
        let passes = Arc::new(passes_of(Slow::default(), filled.clone(), writer("http://127.0.0.1:1")));
        let queue = Queue::default();
        queue.open();
        for name in &names {
            queue.notify("shop", name);
        }
        let (_phase, leading) = flag::channel(Phase::Leading);
        let work = work(passes.clone(), &queue, 1, leading);
        assert!(tokio::time::timeout(Duration::from_secs(60), work).await.is_err(), "it ended");
        let order = passes.controller.0.lock();
        assert_eq!(order[..100], names[..]);
    }
}

//! One kind that is reconciled: its watch, its store and its passes.

use std::{
    collections::HashSet, convert::Infallible, future::pending, hash::Hash, sync::Arc, time::Duration,
};

use futures::{
    FutureExt, StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use kube::{
    Resource,
    runtime::{
        controller::{self, ReconcileRequest},
        reflector::{ObjectRef, Store, store::Writer as StoreWriter},
        watcher::Event,
    },
};
use serde::de::DeserializeOwned;
use tokio::{
    select,
    sync::{Notify, mpsc::UnboundedReceiver, watch as flag},
    task::JoinSet,
};

use crate::{
    report::{health::Health, metrics::Metrics},
    run::{Controller, Trigger, controller::Passes, queue::ask_for_all},
    watch::{Follower, Intake, Unread, lenient::Place, readable},
};

/// How long watches that come to life, or lose their kind, are gathered before every object is looked at again.
const TOGETHER: Duration = Duration::from_secs(1);

/// What the process is up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Another replica acts; caches are kept warm.
    Standby,
    /// This replica acts.
    Leading,
    /// Passes that are under way end, and no other begins.
    Stopping,
}

/// Reconciles one kind.
pub(crate) struct Reconciler<C: Controller> {
    pub passes: Arc<Passes<C>>,
    pub filled: StoreWriter<C::Kind>,
    pub trigger: Trigger<C::Kind>,
    pub receiver: UnboundedReceiver<ReconcileRequest<C::Kind>>,
    pub concurrency: u16,
    /// An item for each change of the settings.
    pub settings: BoxStream<'static, ()>,
    pub health: Arc<Health>,
    pub metrics: Arc<Metrics>,
    pub unread: Unread,
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
        let Self { passes, filled, trigger, receiver, concurrency, settings, health, metrics, unread } = self;
        let store = filled.as_reader();
        let relisted = Arc::<Notify>::default();
        let mut watching = JoinSet::new();
        watching.spawn(watch(
            intake,
            filled,
            trigger.clone(),
            passes.clone(),
            metrics,
            unread,
            relisted.clone(),
        ));
        select! {
            ended = watching.join_next() => Err(anyhow::anyhow!("the watch ended: {ended:?}")),
            never = retrigger(settings, &health, &relisted, &store, &trigger) => match never {},
            ended = work(passes, &store, &trigger, receiver, concurrency, phase) => ended,
        }
    }
}

/// Makes passes while leading.
async fn work<C: Controller>(
    passes: Arc<Passes<C>>,
    store: &Store<C::Kind>,
    trigger: &Trigger<C::Kind>,
    mut receiver: UnboundedReceiver<ReconcileRequest<C::Kind>>,
    concurrency: u16,
    mut phase: flag::Receiver<Phase>,
) -> anyhow::Result<()> {
    // Followers keep their caches warm and are ready, so that a rollout of two replicas goes on; what is asked
    // of them meanwhile is dropped.
    select! {
        never = drain(&mut receiver) => match never {},
        left = phase.wait_for(|phase| *phase != Phase::Standby) => drop(left?),
    }
    let mut stopping = phase.clone();
    let requests = stream::poll_fn(move |context| receiver.poll_recv(context))
        .take_until(async move { stopping.wait_for(|phase| *phase == Phase::Stopping).await.is_ok() })
        .map(Ok::<_, Infallible>);
    let config = controller::Config::default().concurrency(concurrency);
    let pass = |object, passes: Arc<Passes<C>>| {
        Box::pin(async move { Ok::<_, Infallible>(passes.pass(object).await) })
    };
    let policy = |_, never: &Infallible, _| match *never {};
    // The applier begins with the first list and ends after it: for a kind that is not served it would never end.
    let mut stopping = phase.clone();
    let unlisted = Box::pin(async move {
        stopping.wait_for(|phase| *phase == Phase::Stopping).await.ok();
        if store.wait_until_ready().now_or_never().is_some() {
            pending::<()>().await;
        }
    });
    let work = controller::applier(pass, policy, passes, store.clone(), requests, config)
        .take_until(unlisted)
        .inspect_err(|error| tracing::debug!("{error}"))
        .for_each(async |_| {});
    tokio::join!(ask_for_all(store, trigger, |_| true), work);
    anyhow::ensure!(*phase.borrow_and_update() == Phase::Stopping, "the queue ended");
    Ok(())
}

/// Keeps the store filled.
async fn watch<C: Controller, Raw>(
    intake: Intake<Raw, C::Kind>,
    mut store: StoreWriter<C::Kind>,
    trigger: Trigger<C::Kind>,
    passes: Arc<Passes<C>>,
    metrics: Arc<Metrics>,
    mut unread: Unread,
    relisted: Arc<Notify>,
) where
    Raw: Resource + Clone + DeserializeOwned + Send + 'static,
{
    // The task says that the watch has ended when this is dropped.
    let Intake { watch, task, trim } = intake;
    let known = store.as_reader();
    let follower = Follower::new(watch, &task, metrics);
    follower
        .run(|event| {
            unread.hear(&event);
            let Some(event) = readable(event, &trim, |place| find(&known, &passes.dynamic_type, place))
            else {
                return;
            };
            let before = if matches!(event, Event::InitDone) { known.state() } else { Vec::new() };
            store.apply_watcher_event(&event);
            match &event {
                Event::Apply(object) => trigger.notify_of(object),
                Event::Delete(object) => passes.forget(object.meta().uid.as_deref().unwrap_or_default()),
                // The store shows a list only when it is complete.
                Event::Init | Event::InitApply(_) => {}
                Event::InitDone => {
                    forget_gone(&before, &known.state(), &passes);
                    relisted.notify_one();
                }
            }
        })
        .await;
}

/// An object as it was when it could be read last.
fn find<K>(known: &Store<K>, dynamic_type: &K::DynamicType, place: &Place) -> Option<K>
where
    K: Resource<DynamicType: Hash + Eq + Clone> + Clone + 'static,
{
    let mut reference = ObjectRef::new_with(place.name.as_deref()?, dynamic_type.clone());
    if let Some(namespace) = &place.namespace {
        reference = reference.within(namespace);
    }
    let object = known.get(&reference)?;
    (object.meta().uid == place.uid).then(|| K::clone(&object))
}

/// Looks at every object again after a new list, when the settings change, or a watch came to life or lost its kind.
async fn retrigger<K>(
    mut settings: BoxStream<'static, ()>,
    health: &Health,
    relisted: &Notify,
    store: &Store<K>,
    trigger: &Trigger<K>,
) -> Infallible
where
    K: Resource<DynamicType: Hash + Eq + Clone> + Clone + 'static,
{
    let mut epoch = health.epoch();
    loop {
        select! {
            // The first list is news too, for which nobody has to wait.
            biased;
            () = relisted.notified() => {}
            Some(()) = settings.next() => {}
            () = health.next_epoch(epoch) => {
                // At a start, and after an outage, they come one after another.
                tokio::time::sleep(TOGETHER).await;
                epoch = health.epoch();
            }
        }
        ask_for_all(store, trigger, |_| true).await;
    }
}

/// Forgets the objects that went while nobody watched.
fn forget_gone<C: Controller>(before: &[Arc<C::Kind>], now: &[Arc<C::Kind>], passes: &Passes<C>) {
    let uids: HashSet<_> = now.iter().map(|object| object.meta().uid.as_deref()).collect();
    for gone in before.iter().filter(|object| !uids.contains(&object.meta().uid.as_deref())) {
        passes.forget(gone.meta().uid.as_deref().unwrap_or_default());
    }
}

/// Drops what is asked, for ever.
async fn drain<T>(receiver: &mut UnboundedReceiver<T>) -> Infallible {
    while receiver.recv().await.is_some() {}
    pending().await
}

//! One kind that is reconciled: its watch, its store and its passes.

use std::{
    collections::HashSet, convert::Infallible, fmt::Debug, future::pending, sync::Arc, time::Duration,
};

use futures::{
    FutureExt, StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::ObjectReference;
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
    sync::{mpsc::UnboundedReceiver, watch as flag},
    task::JoinSet,
};

use crate::{
    Controller, Seen, Trigger, Watch,
    controller::Passes,
    health::{Health, WatchStatus},
    metrics::Metrics,
    watch::{Shown, follow},
};

/// How long watches that come to life, or lose their kind, are gathered before every object is looked at again.
const TOGETHER: Duration = Duration::from_secs(1);

/// How many objects are asked for at once when all are.
const SLICE: usize = 64;
/// How long the next ones wait: passes that have nothing to do take no longer.
const BREATH: Duration = Duration::from_millis(2);

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

/// How objects of a kind come in, and are read.
pub(crate) struct Intake<Raw, K> {
    pub watch: Watch<Raw>,
    pub status: Arc<WatchStatus>,
    pub read: Box<dyn Fn(Raw) -> Result<K, Unreadable> + Send + Sync>,
    /// What the watch has delivered, for read-your-own-writes.
    pub seen: Seen,
}

/// An object that is not what its kind says.
pub(crate) struct Unreadable {
    pub namespace: String,
    pub name: String,
    pub uid: Option<String>,
    pub error: String,
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
        Raw: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let Self { passes, filled, trigger, receiver, concurrency, settings, health, metrics } = self;
        let store = filled.as_reader();
        let mut watching = JoinSet::new();
        watching.spawn(watch(intake, filled, trigger.clone(), passes.clone(), metrics));
        select! {
            ended = watching.join_next() => Err(anyhow::anyhow!("the watch ended: {ended:?}")),
            never = retrigger(settings, &health, &store, &trigger) => match never {},
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
    tokio::join!(look_at_all(store, trigger), work);
    anyhow::ensure!(*phase.borrow_and_update() == Phase::Stopping, "the queue ended");
    Ok(())
}

/// Keeps the store filled. An object that cannot be read is reported and passed over, and stops no other.
async fn watch<C: Controller, Raw>(
    intake: Intake<Raw, C::Kind>,
    mut store: StoreWriter<C::Kind>,
    trigger: Trigger<C::Kind>,
    passes: Arc<Passes<C>>,
    metrics: Arc<Metrics>,
) where
    Raw: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let Intake { watch, status, read, seen } = intake;
    let known = store.as_reader();
    let mut shown = Shown::default();
    follow(watch, &status, &metrics, |event| {
        shown.hear(&event);
        let Some(mut event) = readable(event, &read, &passes, &known) else { return };
        if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &mut event {
            object.meta_mut().managed_fields = None;
        }
        let before = if matches!(event, Event::InitDone) { known.state() } else { Vec::new() };
        store.apply_watcher_event(&event);
        match &event {
            Event::Apply(object) => trigger.notify_of(object),
            Event::Delete(object) => passes.forget(object.meta().uid.as_deref().unwrap_or_default()),
            // The store shows a list only when it is complete.
            Event::Init | Event::InitApply(_) => {}
            Event::InitDone => relisted(&before, &known.state(), &trigger, &passes),
        }
        shown.tell(&seen);
    })
    .await;
}

/// Looks at every object again when the settings change, or a watch came to life or lost its kind.
async fn retrigger<K>(
    mut settings: BoxStream<'static, ()>,
    health: &Health,
    store: &Store<K>,
    trigger: &Trigger<K>,
) -> Infallible
where
    K: Resource<DynamicType: std::hash::Hash + Eq + Clone> + Clone + 'static,
{
    let mut epoch = health.epoch();
    loop {
        select! {
            Some(()) = settings.next() => {}
            () = health.next_epoch(epoch) => {
                // At a start, and after an outage, they come one after another.
                tokio::time::sleep(TOGETHER).await;
                epoch = health.epoch();
            }
        }
        look_at_all(store, trigger).await;
    }
}

/// Asks for a pass over every object, a slice at a time: what waits in the queue weighs more than a small row.
async fn look_at_all<K>(store: &Store<K>, trigger: &Trigger<K>)
where
    K: Resource<DynamicType: std::hash::Hash + Eq + Clone> + Clone + 'static,
{
    for slice in store.state().chunks(SLICE) {
        for object in slice {
            trigger.notify_of(object);
        }
        if slice.len() == SLICE {
            tokio::time::sleep(BREATH).await;
        }
    }
}

/// Looks at every object of a new list, and forgets those that went while nobody watched.
fn relisted<C: Controller>(
    before: &[Arc<C::Kind>],
    now: &[Arc<C::Kind>],
    trigger: &Trigger<C::Kind>,
    passes: &Passes<C>,
) {
    let uids: HashSet<_> = now.iter().map(|object| object.meta().uid.clone()).collect();
    for gone in before.iter().filter(|object| !uids.contains(&object.meta().uid)) {
        passes.forget(gone.meta().uid.as_deref().unwrap_or_default());
    }
    for object in now {
        trigger.notify_of(object);
    }
}

/// Drops what is asked, for ever.
async fn drain<T>(receiver: &mut UnboundedReceiver<T>) -> Infallible {
    while receiver.recv().await.is_some() {}
    pending().await
}

fn readable<C: Controller, Raw>(
    event: Event<Raw>,
    read: impl Fn(Raw) -> Result<C::Kind, Unreadable>,
    passes: &Passes<C>,
    known: &Store<C::Kind>,
) -> Option<Event<C::Kind>> {
    let read = |raw: Raw| {
        read(raw).map_err(|Unreadable { namespace, name, uid, error }| {
            let text = format!("this object cannot be read and is passed over: {error}; correct it");
            tracing::error!(object = format!("{namespace}/{name}"), "{text}");
            let object = ObjectReference {
                api_version: Some(C::Kind::api_version(&passes.dynamic_type).into_owned()),
                kind: Some(C::Kind::kind(&passes.dynamic_type).into_owned()),
                namespace: Some(namespace.clone()),
                name: Some(name.clone()),
                uid,
                ..ObjectReference::default()
            };
            passes.events.warn(&object, "Malformed", &text);
            passes.metrics.failed("waits_for_change", "Malformed");
            ObjectRef::new_with(&name, passes.dynamic_type.clone()).within(&namespace)
        })
    };
    Some(match event {
        Event::Apply(object) => Event::Apply(read(object).ok()?),
        // What could be read before goes also when it cannot be read any more.
        Event::Delete(object) => match read(object) {
            Ok(object) => Event::Delete(object),
            Err(reference) => Event::Delete(known.get(&reference)?.as_ref().clone()),
        },
        Event::InitApply(object) => Event::InitApply(read(object).ok()?),
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
    })
}

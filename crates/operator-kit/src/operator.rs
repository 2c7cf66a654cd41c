use std::{collections::HashSet, convert::Infallible, sync::Arc, time::Duration};

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client, Config, Resource,
    core::DeserializeGuard,
    runtime::{
        controller,
        reflector::{self, ObjectRef, Store, store::Writer as StoreWriter},
        watcher::Event,
    },
};
use serde::de::DeserializeOwned;
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    sync::{mpsc::UnboundedReceiver, watch as flag},
};

use crate::{
    Arguments, Controller, Queue, Settings, Trigger, Validate, Watch, Writer,
    backoff::Backoff,
    controller::Passes,
    events::Events,
    health::Health,
    leader::{Candidate, Leadership},
    metrics::Metrics,
    server,
    telemetry::{self, Traces},
    watch::{Shown, Watches, follow},
};

/// How often the heartbeat for liveness is given.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a connection may take to come about.
const CONNECTING: Duration = Duration::from_secs(10);
/// How long the start waits for watches that neither deliver nor fail.
const SETTLING: Duration = Duration::from_secs(30);
/// How long passes that are under way may take after SIGTERM.
const GRACE: Duration = Duration::from_secs(15);

/// A controller's process: what it starts from, and what it runs on.
pub struct Operator<S> {
    name: &'static str,
    arguments: Arguments,
    client: Client,
    settings: Settings<S>,
    writer: Writer,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    _traces: Traces,
}

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> Operator<S> {
    /// Starts logging, reads the settings and finds the cluster. `name` is the field manager, the Lease and the
    /// reporter of Events.
    ///
    /// # Errors
    /// When the settings are not valid, or no cluster is configured.
    pub async fn start(name: &'static str, arguments: Arguments) -> anyhow::Result<Self> {
        let traces = telemetry::start(name, &arguments)?;
        tracing::info!(controller = name, version = env!("CARGO_PKG_VERSION"), "starting");
        let metrics = Arc::new(Metrics::new());
        let settings = Settings::follow(arguments.settings.clone(), metrics.clone()).await?;
        let mut config =
            Config::infer().await.context("no cluster is configured: run in a pod, or set KUBECONFIG")?;
        // It would repeat a POST whose answer was lost (kube-rs/kube#2082).
        config.default_retry = false;
        config.connect_timeout = Some(CONNECTING);
        let client = Client::try_from(config).context("the cluster's configuration cannot be used")?;
        let writer = Writer::new(client.clone(), name, metrics.clone());
        Ok(Self {
            name,
            arguments,
            client,
            settings,
            writer,
            health: Arc::default(),
            metrics,
            _traces: traces,
        })
    }

    /// A client that does not retry.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The settings, which follow their file.
    #[must_use]
    pub fn settings(&self) -> Settings<S> {
        self.settings.clone()
    }

    /// The only way to write.
    #[must_use]
    pub fn writer(&self) -> Writer {
        self.writer.clone()
    }

    /// Starts watches.
    #[must_use]
    pub fn watches(&self) -> Watches {
        Watches { health: self.health.clone(), metrics: self.metrics.clone() }
    }

    /// Runs a controller until SIGTERM or SIGINT; passes that are under way end first.
    ///
    /// # Errors
    /// When the Lease is lost, or a part that must not end did.
    pub async fn run<C: Controller>(self, controller: C, queue: Queue<C::Kind>) -> anyhow::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop = async {
            select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {} }
        };
        let server = server::serve(self.arguments.listen, self.health.clone(), self.metrics.clone());
        select! {
            ended = server => ended.context("stopping"),
            ended = self.lead_and_run(controller, queue, stop) => ended,
        }
    }

    async fn lead_and_run<C: Controller>(
        &self,
        controller: C,
        queue: Queue<C::Kind>,
        stop: impl Future,
    ) -> anyhow::Result<()> {
        let mut stop = std::pin::pin!(stop);
        let (store, filled) = reflector::store();
        let trigger = queue.trigger();
        let settings = self.settings.clone();
        let passes = Arc::new(Passes {
            controller,
            store: store.clone(),
            backoff: Backoff::default(),
            writer: self.writer.clone(),
            events: Events::new(self.client.clone(), self.name, &self.arguments.identity),
            health: self.health.clone(),
            metrics: self.metrics.clone(),
            settings_version: Box::new(move || settings.version()),
        });
        let primary = tokio::spawn(self.watch_primary(filled, trigger.clone(), passes.clone()));

        // Followers keep their caches warm and are ready, so that a rollout of two replicas goes on; what is asked
        // of them meanwhile is dropped.
        let mut receiver = queue.receiver;
        let mut leadership = select! {
            leadership = self.lead() => leadership,
            () = drain(&mut receiver) => None,
            () = self.idle() => None,
            _ = &mut stop => return Ok(()),
        };
        for object in store.state() {
            notify(&trigger, &*object);
        }
        self.metrics.leading(true);
        select! {
            settled = tokio::time::timeout(SETTLING, self.health.settled()) => {
                if settled.is_err() {
                    tracing::warn!("some watches have not answered yet; starting without them");
                }
            }
            lost = keep(leadership.as_mut()) => return lost,
            _ = &mut stop => return release(leadership).await,
        }

        let (draining, mut drained) = flag::channel(false);
        let requests = stream::poll_fn(move |context| receiver.poll_recv(context))
            .take_until(async move { drained.wait_for(|draining| *draining).await.is_ok() })
            .map(Ok::<_, Infallible>);
        let config = controller::Config::default().concurrency(self.arguments.concurrency);
        let pass = |object, passes: Arc<Passes<C>>| {
            Box::pin(async move { Ok::<_, Infallible>(passes.pass(object).await) })
        };
        let policy = |_, never: &Infallible, _| match *never {};
        let running = controller::applier(pass, policy, passes, store.clone(), requests, config);
        let mut running =
            std::pin::pin!(running.inspect_err(|error| tracing::debug!("{error}")).for_each(async |_| {}));

        let retrigger = self.retrigger(&store, &trigger);
        let outcome = select! {
            () = &mut running => Err(anyhow::anyhow!("the queue ended")),
            () = retrigger => Err(anyhow::anyhow!("the settings are not followed any more")),
            ended = primary => Err(anyhow::anyhow!("the watch ended: {ended:?}")),
            lost = keep(leadership.as_mut()) => lost,
            () = self.idle() => Ok(()),
            _ = &mut stop => Ok(()),
        };
        tracing::info!("stopping");
        self.health.stopping();
        if outcome.is_ok() {
            draining.send_replace(true);
            if tokio::time::timeout(GRACE, running).await.is_err() {
                tracing::warn!("some passes were still under way");
            }
            release(leadership).await?;
        }
        outcome
    }

    /// Watches the kind that is reconciled. An object that cannot be read is reported and passed over, and
    /// stops no other.
    fn watch_primary<C: Controller>(
        &self,
        mut store: StoreWriter<C::Kind>,
        trigger: Trigger<C::Kind>,
        passes: Arc<Passes<C>>,
    ) -> impl Future<Output = ()> + use<C, S> {
        let kind = C::Kind::kind(&()).into_owned();
        let status = self.health.watch(&kind);
        let metrics = self.metrics.clone();
        let seen = self.writer.primary().clone();
        let watch = Watch::new(Api::<DeserializeGuard<C::Kind>>::all(self.client.clone()), kind);
        async move {
            let known = store.as_reader();
            let mut shown = Shown::default();
            follow(watch, &status, &metrics, |event| {
                shown.hear(&event);
                let Some(mut event) = readable(event, &passes, &known) else { return };
                if let Event::Apply(object) | Event::Delete(object) | Event::InitApply(object) = &mut event {
                    object.meta_mut().managed_fields = None;
                }
                let before = if matches!(event, Event::InitDone) { known.state() } else { Vec::new() };
                store.apply_watcher_event(&event);
                match &event {
                    Event::Apply(object) => notify(&trigger, object),
                    Event::Delete(object) => passes.forget(object.meta().uid.as_deref().unwrap_or_default()),
                    // The store shows a list only when it is complete.
                    Event::Init | Event::InitApply(_) => {}
                    Event::InitDone => relisted(&before, &known.state(), &trigger, &passes),
                }
                shown.tell(&seen);
            })
            .await;
        }
    }

    async fn lead(&self) -> Option<Leadership> {
        if !self.arguments.leader_election {
            return None;
        }
        let namespace =
            self.arguments.lease_namespace.as_deref().unwrap_or_else(|| self.client.default_namespace());
        let name = self.arguments.lease_name.as_deref().unwrap_or(self.name);
        Some(Candidate::new(self.client.clone(), namespace, name, &self.arguments.identity).lead().await)
    }

    /// Looks at every object again when the settings change or a watch came to life.
    async fn retrigger<K>(&self, store: &Store<K>, trigger: &Trigger<K>)
    where
        K: Resource<DynamicType = ()> + Clone + 'static,
    {
        let mut settings = self.settings.clone();
        let mut recoveries = self.health.recoveries();
        loop {
            select! {
                () = settings.changed() => {}
                () = self.health.recovered(recoveries) => recoveries = self.health.recoveries(),
            }
            for object in store.state() {
                notify(trigger, &*object);
            }
        }
    }

    /// Gives the heartbeat, for ever.
    async fn idle(&self) {
        loop {
            self.health.beat();
            tokio::time::sleep(HEARTBEAT).await;
        }
    }
}

fn notify<K: Resource<DynamicType = ()>>(trigger: &Trigger<K>, object: &K) {
    let meta = object.meta();
    trigger.notify(meta.namespace.as_deref().unwrap_or_default(), meta.name.as_deref().unwrap_or_default());
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
        notify(trigger, &**object);
    }
}

/// Drops what is asked, for ever.
async fn drain<T>(receiver: &mut UnboundedReceiver<T>) {
    while receiver.recv().await.is_some() {}
    std::future::pending::<()>().await;
}

fn readable<C: Controller>(
    event: Event<DeserializeGuard<C::Kind>>,
    passes: &Passes<C>,
    known: &Store<C::Kind>,
) -> Option<Event<C::Kind>> {
    let read = |guard: DeserializeGuard<C::Kind>| {
        guard.0.map_err(|invalid| {
            let meta = invalid.metadata;
            let (namespace, name) = (meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default());
            tracing::error!(
                object = format!("{namespace}/{name}"),
                "this object cannot be read and is passed over: {}; correct it",
                invalid.error
            );
            passes.metrics.failed("waits_for_change", "Malformed");
            ObjectRef::new(&name).within(&namespace)
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

async fn keep(leadership: Option<&mut Leadership>) -> anyhow::Result<()> {
    match leadership {
        Some(leadership) => leadership.keep().await,
        None => std::future::pending().await,
    }
}

async fn release(leadership: Option<Leadership>) -> anyhow::Result<()> {
    if let Some(leadership) = leadership {
        leadership.release().await;
    }
    Ok(())
}

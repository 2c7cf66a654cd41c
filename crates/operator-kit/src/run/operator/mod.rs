mod lifecycle;

use std::{
    convert::Infallible, fmt::Debug, future::pending, pin::pin, process::exit, sync::Arc, time::Duration,
};

use anyhow::Context;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Api, Client, Config, Resource};
use operator_watch::{
    Health, Intake, Need, ServedKinds, SharedRows, Unmanaged, Watch, Watched, WatchedKind, Watches,
};
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use tokio::{
    select,
    sync::watch as flag,
    task::{AbortHandle, JoinError, JoinSet, yield_now},
};

use crate::{
    report::{Events, WatchReports, logging, metrics::Metrics, settings_status::SettingsStatus},
    run::{
        Arguments, Controller, Identity, LiveSettings, Queue, Triggers, Validate,
        backoff::Backoff,
        controller::Passes,
        leader::{LEASE_DURATION, RENEW_DEADLINE},
        probe::probe,
        reconciler::{Phase, Reconciler},
        settings::SettingsFile,
    },
    write::Writer,
};

/// Time limit for establishing a connection. A write may need one when its gate is about to close.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);
const _: () = assert!(
    RENEW_DEADLINE.as_secs() + CONNECT_TIMEOUT.as_secs() < LEASE_DURATION.as_secs(),
    "such a write would be sent when another leader may have begun"
);

/// A controller's process: its arguments, settings, client and health.
pub struct Operator<S> {
    /// A client that does not retry.
    pub client: Client,
    /// The settings, updated with their file.
    pub settings: LiveSettings<S>,
    /// The only way to write.
    pub writer: Writer,
    /// Publishes Events about objects.
    pub events: Events,
    /// The `ConfigMap` that the settings come from, for Events about them, if it is known.
    pub config_map: Option<ObjectReference>,
    /// Looks up the served versions of kinds.
    pub served_kinds: ServedKinds,
    /// Starts watches.
    pub watches: Watches,
    name: &'static str,
    arguments: Arguments,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
    settings_status: Arc<SettingsStatus>,
}

impl<S: DeserializeOwned + Validate + Send + Sync + 'static> Operator<S> {
    /// Starts logging, reads the settings and connects to the cluster. With `--probe`, the process ends here, once it has an answer.
    ///
    /// # Errors
    /// When the settings are not valid, or no cluster is configured; with `--probe`, when the answer is not good.
    pub async fn start(identity: Identity, arguments: Arguments) -> anyhow::Result<Self> {
        let Identity { name, version, prefix, .. } = identity;
        if !arguments.probe.is_empty() {
            for url in &arguments.probe {
                println!("{url} answers: {}", probe(url).await?);
            }
            // As with --version, there is nothing more to do.
            exit(0);
        }
        logging::start(&arguments.log, arguments.log_format)?;
        tracing::info!(controller = name, version, "starting");
        let metrics = Arc::new(Metrics::new(prefix));
        let file = SettingsFile::read(&arguments.settings).await?;
        let settings = file.parse::<S>()?;
        let mut config =
            Config::infer().await.context("no cluster is configured: run in a pod, or set KUBECONFIG")?;
        // It would repeat a POST whose answer was lost (kube-rs/kube#2082).
        config.default_retry = false;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        let client = Client::try_from(config).context("the configuration of the cluster cannot be used")?;
        let writer = Writer::new(client.clone(), name, metrics.clone());
        let events = Events::new(client.clone(), name, &arguments.identity, metrics.clone());
        let config_map = arguments.settings_config_map.clone().map(|name| ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            name: Some(name),
            namespace: Some(arguments.lease_namespace(&client).to_owned()),
            ..ObjectReference::default()
        });
        let status =
            SettingsStatus::new(&file.version(), metrics.clone(), events.clone(), config_map.clone());
        let settings_status = Arc::new(status);
        let settings = LiveSettings::follow(file, settings, client.clone(), settings_status.clone());
        let health = Arc::<Health>::default();
        let (mut changes, epoch) = (settings.clone(), health.requeue_epoch.clone());
        tokio::spawn(async move {
            loop {
                changes.changed().await;
                epoch.send_modify(|epoch| *epoch += 1);
            }
        });
        let reports = WatchReports { events: events.clone(), metrics: metrics.clone() };
        Ok(Self {
            served_kinds: ServedKinds::new(client.clone()),
            watches: Watches::new(health.clone(), Arc::new(reports)),
            client,
            settings,
            writer,
            events,
            config_map,
            name,
            arguments,
            health,
            metrics,
            settings_status,
        })
    }

    /// The namespace that the controller runs in: that of its Lease.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.arguments.lease_namespace(&self.client)
    }

    /// Adds the controller's own metrics, with its prefix.
    pub fn add_metrics(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.metrics.registry.lock());
    }

    /// Runs a controller of one kind until SIGTERM or SIGINT; current passes finish first.
    ///
    /// # Errors
    /// When the Lease is lost, or an essential task ended.
    pub async fn run<C>(self, controller: C, queue: Queue) -> anyhow::Result<()>
    where
        C: Controller<Kind: Resource<DynamicType = ()> + DeserializeOwned>,
    {
        Box::pin(self.run_beside(controller, queue, pending())).await
    }

    /// Like [`Operator::run`], with another task beside the passes while this process is active.
    ///
    /// # Errors
    /// When the Lease is lost, or an essential task ended.
    pub async fn run_beside<C>(
        self,
        controller: C,
        queue: Queue,
        beside: impl Future<Output = Infallible>,
    ) -> anyhow::Result<()>
    where
        C: Controller<Kind: Resource<DynamicType = ()> + DeserializeOwned>,
    {
        let (phase, follow_phase) = flag::channel(Phase::Standby);
        let kind = C::Kind::kind(&()).into_owned();
        let intake = Intake {
            status: self.health.watch(&kind, Need::Always),
            seen: self.writer.primary().clone(),
            watch: Watch::new(Api::<Unmanaged<C::Kind>>::all(self.client.clone()), kind),
            trim: Box::new(|Unmanaged(object)| object),
        };
        let objects = SharedRows::default();
        let reconciler = self.reconciler(Arc::new(controller), (), queue, objects, Arc::default());
        let mut leading = follow_phase.clone();
        let beside = async move {
            leading.wait_for(|phase| *phase == Phase::Leading).await?;
            match beside.await {}
        };
        let work = async {
            select! { ended = reconciler.run(intake, follow_phase) => ended, ended = beside => ended }
        };
        self.steer(phase, Box::pin(work)).await
    }

    /// Runs a controller of any number of kinds, which change with `kinds`, until SIGTERM or SIGINT. A kind whose
    /// version is not served is watched in another version.
    ///
    /// # Errors
    /// When the Lease is lost, or an essential task ended. A kind that is not served is no error.
    pub async fn run_each<C, R>(
        self,
        controller: C,
        kinds: flag::Receiver<Vec<WatchedKind<R>>>,
        triggers: Triggers<R>,
    ) -> anyhow::Result<()>
    where
        C: Controller<Kind = Watched<R>>,
        R: Clone + Debug + Send + Sync + 'static,
    {
        let (phase, follow_phase) = flag::channel(Phase::Standby);
        let work = self.follow_kinds(Arc::new(controller), kinds, triggers, follow_phase);
        self.steer(phase, Box::pin(work)).await
    }

    async fn follow_kinds<C, R>(
        &self,
        controller: Arc<C>,
        mut kinds: flag::Receiver<Vec<WatchedKind<R>>>,
        triggers: Triggers<R>,
        mut phase: flag::Receiver<Phase>,
    ) -> anyhow::Result<()>
    where
        C: Controller<Kind = Watched<R>>,
        R: Clone + Debug + Send + Sync + 'static,
    {
        let backoff = Arc::new(Backoff::default());
        let mut tasks = JoinSet::new();
        let mut namespaces = pin!(triggers.follow_namespaces());
        let mut running: Vec<(WatchedKind<R>, AbortHandle, Arc<Passes<C>>)> = Vec::new();
        loop {
            let wanted = kinds.borrow_and_update().clone();
            let is_gone =
                |(kind, ..): &mut (WatchedKind<R>, _, _)| !wanted.iter().any(|wanted| wanted.is_same(kind));
            for (kind, task, passes) in running.extract_if(.., is_gone) {
                tracing::info!(id = %kind.id, kind = kind.resource.kind, "no longer watched");
                passes.forget_attempts_of_all();
                triggers.close(&kind);
                // A pass that is cut off may note something about its object.
                cut_off(&task).await;
                passes.unwatch_all();
            }
            for kind in wanted {
                if running.iter().any(|(running, ..)| running.is_same(&kind)) {
                    continue;
                }
                let intake = kind.clone().intake(&self.client, &self.served_kinds, &self.health);
                let state = intake.status.subscribe();
                let is_served = move || {
                    let state = state.borrow();
                    if state.is_unserved() { Ok(false) } else { state.problem().map_or(Ok(true), Err) }
                };
                let (queue, objects) = triggers.open(&kind, is_served);
                let (controller, resource) = (controller.clone(), kind.resource.clone());
                let reconciler = self.reconciler(controller, resource, queue, objects, backoff.clone());
                let passes = reconciler.passes.clone();
                running.push((kind, tasks.spawn(reconciler.run(intake, phase.clone())), passes));
            }
            select! {
                never = &mut namespaces => match never {},
                changed = kinds.changed() => changed.context("the kinds are no longer followed")?,
                Some(ended) = tasks.join_next() => went_on(ended)?,
                stopping = phase.wait_for(|phase| *phase == Phase::Stopping) => {
                    drop(stopping?);
                    break;
                }
            }
        }
        while let Some(ended) = tasks.join_next().await {
            match ended {
                Err(error) if error.is_cancelled() => {}
                ended => ended??,
            }
        }
        Ok(())
    }

    fn reconciler<C: Controller>(
        &self,
        controller: Arc<C>,
        dynamic_type: <C::Kind as Resource>::DynamicType,
        queue: Queue,
        objects: SharedRows<C::Kind>,
        backoff: Arc<Backoff>,
    ) -> Reconciler<C> {
        let passes = Arc::new(Passes {
            controller,
            dynamic_type,
            objects,
            backoff,
            writer: self.writer.clone(),
            events: self.events.clone(),
            health: self.health.clone(),
            metrics: self.metrics.clone(),
        });
        let (concurrency, watches) = (self.arguments.concurrency, self.watches.clone());
        Reconciler { passes, queue, concurrency, watches }
    }
}

/// Tasks of removed kinds are cancelled; all other tasks must not end.
fn went_on(ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<()> {
    match ended {
        Err(error) if error.is_cancelled() => Ok(()),
        ended => ended?.and_then(|()| unexpected()),
    }
}

fn unexpected() -> anyhow::Result<()> {
    Err(anyhow::anyhow!("the queue was closed"))
}

/// Ends a task wherever it waits, and returns once it has dropped everything that it held. An abort alone only asks for that.
async fn cut_off(task: &AbortHandle) {
    task.abort();
    while !task.is_finished() {
        yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use tokio::task::JoinSet;

    use super::*;

    /// Notes that it is dropped.
    struct Held(Arc<AtomicBool>);

    impl Drop for Held {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[tokio::test]
    async fn what_a_task_held_is_dropped_when_it_is_cut_off() {
        let is_dropped = Arc::<AtomicBool>::default();
        let (held, mut tasks) = (Held(is_dropped.clone()), JoinSet::new());
        let task = tasks.spawn(async move {
            let _held = held;
            pending::<()>().await;
        });
        yield_now().await;
        cut_off(&task).await;
        assert!(is_dropped.load(Ordering::Relaxed));
    }
}

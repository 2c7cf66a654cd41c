mod lifecycle;

use std::{fmt::Debug, pin::pin, process::exit, sync::Arc, time::Duration};

use anyhow::Context;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Config, Resource};
use operator_watch::{Cache, Discovery, DynamicKind, DynamicRow, Watches};
use prometheus_client::registry::Registry;
use serde::de::DeserializeOwned;
use tokio::{
    select,
    sync::watch as flag,
    task::{AbortHandle, JoinError, JoinSet, yield_now},
};

use crate::{
    report::{Events, health::Health, metrics::Metrics, settings_status::SettingsStatus},
    run::{
        Arguments, Controller, Identity, Queue, SettingsHandle, Triggers, Validate,
        arguments::start_logging,
        backoff::AllBackoffs,
        controller::{Memory, Phase, Reconciler},
        leader::{LEASE_DURATION, RENEW_DEADLINE},
        probe::probe,
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
    pub settings: SettingsHandle<S>,
    /// The only way to write.
    pub writer: Writer,
    /// Publishes Events about objects.
    pub events: Events,
    /// The `ConfigMap` that the settings come from, for Events about them, if it is known.
    pub config_map: Option<ObjectReference>,
    /// Looks up the served versions of kinds.
    pub discovery: Discovery,
    /// Starts watches.
    pub watches: Watches,
    name: &'static str,
    arguments: Arguments,
    health: Arc<Health>,
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
        start_logging(&arguments.log, arguments.log_format)?;
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
        let events = Events::new(client.clone(), name, &arguments.identity, metrics);
        let config_map = arguments.settings_config_map.clone().map(|name| ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("ConfigMap".into()),
            name: Some(name),
            namespace: Some(arguments.lease_namespace(&client).to_owned()),
            ..ObjectReference::default()
        });
        let status = SettingsStatus::new(&file.version(), events.clone(), config_map.clone());
        let settings_status = Arc::new(status);
        let watches = Watches::new(Arc::new(events.clone()));
        let epoch = watches.requeue_epoch.clone();
        let settings = SettingsHandle::follow(file, settings, client.clone(), settings_status.clone(), epoch);
        Ok(Self {
            discovery: Discovery::new(client.clone()),
            health: Arc::new(Health::new(watches.clone())),
            watches,
            client,
            settings,
            writer,
            events,
            config_map,
            name,
            arguments,
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
        add(&mut self.events.metrics.registry.lock());
    }

    /// Runs a controller of one kind until SIGTERM or SIGINT; current passes finish first.
    ///
    /// # Errors
    /// When the Lease is lost, or an essential task ended.
    pub async fn run<C>(self, controller: C, queue: Queue) -> anyhow::Result<()>
    where
        C: Controller<Kind: Resource<DynamicType = ()> + DeserializeOwned>,
    {
        let (phase, follow_phase) = flag::channel(Phase::Standby);
        let memory = self.memory(Arc::new(controller), Arc::default());
        let (seen, on_change) = (self.writer.primary().clone(), memory.on_change(&queue));
        let objects = self.watches.cache_primaries(&self.client, seen, on_change);
        let reconciler = self.reconciler(memory, (), objects, queue);
        self.run_lifecycle(phase, Box::pin(reconciler.run(follow_phase))).await
    }

    /// Runs a controller of any number of kinds, which change with `kinds`, until SIGTERM or SIGINT. A kind whose
    /// version is not served is watched in another version.
    ///
    /// # Errors
    /// When the Lease is lost, or an essential task ended. A kind that is not served is no error.
    pub async fn run_each<C, R>(
        self,
        controller: C,
        kinds: flag::Receiver<Vec<DynamicKind<R>>>,
        triggers: Triggers<R>,
    ) -> anyhow::Result<()>
    where
        C: Controller<Kind = DynamicRow<R>>,
        R: Clone + Debug + Send + Sync + 'static,
    {
        let (phase, follow_phase) = flag::channel(Phase::Standby);
        let work = self.follow_kinds(Arc::new(controller), kinds, triggers, follow_phase);
        self.run_lifecycle(phase, Box::pin(work)).await
    }

    async fn follow_kinds<C, R>(
        &self,
        controller: Arc<C>,
        mut kinds: flag::Receiver<Vec<DynamicKind<R>>>,
        triggers: Triggers<R>,
        mut phase: flag::Receiver<Phase>,
    ) -> anyhow::Result<()>
    where
        C: Controller<Kind = DynamicRow<R>>,
        R: Clone + Debug + Send + Sync + 'static,
    {
        let backoff = Arc::new(AllBackoffs::default());
        let mut tasks = JoinSet::new();
        let mut namespaces = pin!(triggers.follow_namespaces());
        let mut running: Vec<(DynamicKind<R>, AbortHandle, Arc<Reconciler<C>>)> = Vec::new();
        loop {
            let wanted = kinds.borrow_and_update().clone();
            let is_gone =
                |(kind, ..): &mut (DynamicKind<R>, _, _)| !wanted.iter().any(|wanted| wanted.is_same(kind));
            for (kind, task, reconciler) in running.extract_if(.., is_gone) {
                tracing::info!(id = %kind.id, kind = kind.resource.kind, "no longer watched");
                reconciler.forget_of_all(Memory::forget_attempts);
                triggers.close(&kind);
                // A pass that is cut off may note something about its object.
                abort_and_wait(&task).await;
                reconciler.forget_of_all(|memory, uid| memory.controller.forget(uid));
            }
            for kind in wanted {
                if running.iter().any(|(running, ..)| running.is_same(&kind)) {
                    continue;
                }
                let (memory, queue) = (self.memory(controller.clone(), backoff.clone()), Queue::default());
                let (client, discovery, on_change) =
                    (&self.client, &self.discovery, memory.on_change(&queue));
                let objects = self.watches.cache_kind(kind.clone(), client, discovery, on_change);
                triggers.open(&kind, queue.clone(), objects.clone());
                let reconciler = self.reconciler(memory, kind.resource.clone(), objects, queue);
                let task = tasks.spawn(reconciler.clone().run(phase.clone()));
                running.push((kind, task, reconciler));
            }
            select! {
                never = &mut namespaces => match never {},
                changed = kinds.changed() => changed.context("the kinds are no longer followed")?,
                Some(ended) = tasks.join_next() => if has_ended(ended)? { return unexpected() },
                stopping = phase.wait_for(|phase| *phase == Phase::Stopping) => {
                    drop(stopping?);
                    break;
                }
            }
        }
        while let Some(ended) = tasks.join_next().await {
            has_ended(ended)?;
        }
        Ok(())
    }

    fn memory<C>(&self, controller: Arc<C>, backoff: Arc<AllBackoffs>) -> Arc<Memory<C>> {
        let (writer, events) = (self.writer.clone(), self.events.clone());
        Arc::new(Memory { controller, backoff, writer, events })
    }

    fn reconciler<C: Controller>(
        &self,
        memory: Arc<Memory<C>>,
        dynamic_type: <C::Kind as Resource>::DynamicType,
        objects: Arc<Cache<C::Kind>>,
        queue: Queue,
    ) -> Arc<Reconciler<C>> {
        let (concurrency, health) = (self.arguments.concurrency, self.health.clone());
        Arc::new(Reconciler { memory, dynamic_type, objects, queue, concurrency, health })
    }
}

/// Whether a task has ended by itself; those of removed kinds are cancelled.
fn has_ended(ended: Result<anyhow::Result<()>, JoinError>) -> anyhow::Result<bool> {
    match ended {
        Err(error) if error.is_cancelled() => Ok(false),
        ended => ended?.map(|()| true),
    }
}

fn unexpected() -> anyhow::Result<()> {
    Err(anyhow::anyhow!("the queue was closed"))
}

/// Ends a task wherever it waits, and returns once it has dropped everything that it held. An abort alone only asks for that.
async fn abort_and_wait(task: &AbortHandle) {
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
        abort_and_wait(&task).await;
        assert!(is_dropped.load(Ordering::Relaxed));
    }
}

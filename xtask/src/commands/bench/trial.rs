//! One subject with its objects in a namespace of its own, taken through scenarios.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    runtime::{WatchStreamExt, watcher},
};
use serde_json::{Value, json};

use super::{
    figure::{Figure, TIME},
    meter::Meter,
    subject::Subject,
};

/// Connections that create, change or delete objects.
const CONNECTIONS: usize = 16;

/// The fixed facts of a run.
pub struct Setting<'a> {
    pub meter: &'a Meter,
    pub objects: usize,
    pub replicas: usize,
    pub pod_bytes: usize,
    pub timeout: Duration,
    /// Counted from 1.
    pub run: usize,
}

/// A subject in a run.
pub struct Trial<'a> {
    pub setting: &'a Setting<'a>,
    pub subject: Subject,
    pub namespace: String,
    pub objects: Api<DynamicObject>,
    /// Those of each object at present.
    pub replicas: usize,
}

impl<'a> Trial<'a> {
    /// A trial with a new namespace.
    pub async fn begin(setting: &'a Setting<'a>, subject: Subject) -> Result<Self> {
        let client = &setting.meter.client;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let name = format!("bench-{}-{}", subject.short(), jiff::Timestamp::now().as_millisecond());
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        namespaces.create(&PostParams::default(), &namespace).await?;
        // No pod is admitted before the namespace's service account exists.
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &name);
        while accounts.get_opt("default").await?.is_none() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let objects = Api::namespaced_with(client.clone(), &name, &subject.resource());
        Ok(Self { setting, subject, namespace: name, objects, replicas: setting.replicas })
    }

    /// The names of the objects.
    pub fn names(&self) -> impl Iterator<Item = String> + use<> {
        (0..self.setting.objects).map(|number| format!("bench-{number}"))
    }

    /// Changes all objects, and measures the time until they are ready.
    pub async fn change(&self, change: &Patch<Value>) -> Result<Vec<Figure>> {
        let started = Instant::now();
        each(self.names(), async |name| {
            self.objects.patch(&name, &PatchParams::default(), change).await.map(drop)
        })
        .await?;
        self.until_ready().await?;
        Ok(vec![Figure::seconds(TIME, started.elapsed())])
    }

    /// Waits until all objects are ready.
    pub async fn until_ready(&self) -> Result<()> {
        let is_ready = |object: &DynamicObject| self.subject.is_ready(object, self.replicas);
        self.until(watcher::Config::default(), self.setting.objects, is_ready).await
    }

    /// Watches until this number of objects is done.
    pub async fn until(
        &self,
        config: watcher::Config,
        count: usize,
        is_done: impl Fn(&DynamicObject) -> bool,
    ) -> Result<()> {
        let (started, limit) = (Instant::now(), self.setting.timeout);
        let mut done = std::collections::HashSet::new();
        let mut events = pin!(watcher(self.objects.clone(), config).default_backoff().applied_objects());
        while done.len() < count {
            let left = limit.saturating_sub(started.elapsed());
            match tokio::time::timeout(left, events.next()).await {
                Ok(Some(Ok(object))) if is_done(&object) => {
                    done.insert(object.name_any());
                }
                Ok(Some(Ok(object))) => {
                    done.remove(&object.name_any());
                }
                Ok(_) => {}
                Err(_) => bail!("{} of {count} objects were done after {} s", done.len(), limit.as_secs()),
            }
        }
        Ok(())
    }

    /// Waits until a question is answered with yes.
    pub async fn until_true(&self, what: &str, question: impl AsyncFn() -> Result<bool>) -> Result<()> {
        let started = Instant::now();
        while !question().await? {
            if started.elapsed() > self.setting.timeout {
                bail!("{what}: not after {} s", self.setting.timeout.as_secs());
            }
            // The answers are small.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// Deletes the objects, and waits until no pod is left.
    pub async fn delete(&self) -> Result<()> {
        let all = self.objects.list_metadata(&ListParams::default()).await?;
        each(all.items.iter().map(ResourceExt::name_any), async |name| {
            self.objects.delete(&name, &DeleteParams::background()).await.map(drop)
        })
        .await?;
        let pods: Api<Pod> = Api::namespaced(self.setting.meter.client.clone(), &self.namespace);
        let any = ListParams::default().limit(1);
        let are_gone = async || -> Result<bool> { Ok(pods.list_metadata(&any).await?.items.is_empty()) };
        self.until_true("no pod is left", are_gone).await
    }
}

/// Does something with each item, with several connections.
pub async fn each<T>(items: impl Iterator<Item = T>, act: impl AsyncFn(T) -> kube::Result<()>) -> Result<()> {
    let act = async |item| act(item).await;
    stream::iter(items.map(Ok)).try_for_each_concurrent(CONNECTIONS, act).await.map_err(Into::into)
}

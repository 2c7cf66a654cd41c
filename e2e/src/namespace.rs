use std::{panic::Location, thread, time::Duration};

use anyhow::{Result, ensure};
use catena_api::{BasicDeployment, BasicReplicaSet};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{
        core::v1::{Namespace as CoreNamespace, Pod, ResourceQuota},
        events::v1::Event,
    },
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    discovery::ApiResource,
    runtime::wait::await_condition,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::{
    COLLECTION_TIMEOUT, Namespaced, Pace, WAIT_TIMEOUT,
    cleanup::clean_up,
    eventually,
    eventually::{EVERY, until_gone},
    kubectl::inspect,
    pods, yaml,
};

/// A namespace of one test, deleted at the end with all its objects.
pub struct Namespace {
    /// Its name.
    pub name: String,
    uid: String,
    client: Client,
}

impl Namespace {
    pub(crate) fn new(client: Client, made: &CoreNamespace) -> Self {
        Self { name: made.name_any(), uid: made.uid().unwrap_or_default(), client }
    }

    /// The metadata of a cluster-wide object of the test, which is deleted with its namespace.
    #[must_use]
    pub fn owns(&self, name: &str) -> Value {
        let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": self.name, "uid": self.uid});
        json!({"name": name, "ownerReferences": [owner]})
    }

    /// The objects of a kind in it.
    #[must_use]
    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// The objects of a kind that is known only at run time.
    #[must_use]
    pub fn api_of(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), &self.name, kind)
    }

    /// Creates an object.
    pub async fn create<K: Namespaced>(&self, object: &K) -> kube::Result<K> {
        self.api().create(&PostParams::default(), object).await
    }

    /// Merges a patch into an object.
    pub async fn merge<K: Namespaced>(&self, name: &str, patch: Value) -> kube::Result<K> {
        self.api().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await
    }

    /// Deletes an object in the background.
    pub async fn delete<K: Namespaced>(&self, name: &str) -> kube::Result<()> {
        self.api::<K>().delete(name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Creates a quota, and waits until it is counted: until then, it refuses nothing.
    pub async fn limit(&self, name: &str, hard: Value) -> Result<()> {
        let quota = json!({"metadata": {"name": name}, "spec": {"hard": hard}});
        self.create::<ResourceQuota>(&serde_json::from_value(quota)?).await?;
        self.until(name, "is counted", |quota: &ResourceQuota| {
            quota.status.as_ref().is_some_and(|status| status.hard.is_some())
        })
        .await;
        Ok(())
    }

    /// Waits until `is` is true for an object.
    #[track_caller]
    pub fn until<K: Namespaced + Send + 'static>(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&K) -> bool,
    ) -> impl Future<Output = K> {
        self.until_within(WAIT_TIMEOUT, name, what, is)
    }

    /// Like [`Namespace::until`], with another time limit.
    ///
    /// # Panics
    /// When that does not happen in time; with the last state of the object.
    #[track_caller]
    pub fn until_within<K: Namespaced + Send + 'static>(
        &self,
        limit: Duration,
        name: &str,
        what: &str,
        is: impl Fn(&K) -> bool,
    ) -> impl Future<Output = K> {
        let (caller, api) = (Location::caller(), self.api::<K>());
        async move {
            let last = Mutex::new(String::from("nothing"));
            let is_so = |object: Option<&K>| {
                *last.lock() = object.map_or_else(|| String::from("no such object"), yaml);
                object.is_some_and(&is)
            };
            let object = async {
                loop {
                    match await_condition(api.clone(), name, &is_so).await {
                        Ok(Some(object)) => return object,
                        // A busy API server may break a watch.
                        other => *last.lock() = format!("{other:?}"),
                    }
                    sleep(EVERY).await;
                }
            };
            match timeout(limit, object).await {
                Ok(object) => object,
                Err(elapsed) => panic!(
                    "{caller}: {elapsed} ({limit:?}): {} {name} {what}; it was last:\n{}",
                    K::kind(&()),
                    last.into_inner()
                ),
            }
        }
    }

    /// Like [`Namespace::until`], but fails if it took longer than a limit at the [`Pace`] of the cluster. It waits on
    /// after the limit, so that the failure tells by how much it was missed.
    pub async fn until_soon<K: Namespaced + Send + 'static>(
        &self,
        limit: Duration,
        name: &str,
        what: &str,
        is: impl Fn(&K) -> bool,
    ) -> Result<K> {
        let pace = Pace::start(self).await?;
        let object = self.until(name, what, is).await;
        let took = pace.elapsed();
        ensure!(took <= limit, "{name} {what} after {took:?} at the cluster's pace, instead of {limit:?}");
        Ok(object)
    }

    /// Waits until an object is gone.
    #[track_caller]
    pub fn until_gone<K: Namespaced>(&self, name: &str) -> impl Future<Output = ()> {
        until_gone("it is gone", WAIT_TIMEOUT, self.api::<K>(), name)
    }

    /// Waits until the garbage collector has deleted an object.
    #[track_caller]
    pub fn until_collected<K: Namespaced>(&self, name: &str) -> impl Future<Output = ()> {
        until_gone("it is collected", COLLECTION_TIMEOUT, self.api::<K>(), name)
    }

    /// Waits for an Event with a reason about an object, and returns its note.
    #[track_caller]
    pub fn until_event(&self, name: &str, reason: &str) -> impl Future<Output = String> {
        self.until_event_within(WAIT_TIMEOUT, name, reason)
    }

    /// Like [`Namespace::until_event`], with another time limit.
    #[track_caller]
    pub fn until_event_within(
        &self,
        limit: Duration,
        name: &str,
        reason: &str,
    ) -> impl Future<Output = String> {
        eventually("an Event says so", limit, async move || {
            let events = self.api::<Event>().list(&ListParams::default()).await;
            let events = events.map_err(|error| vec![error.to_string()])?.items;
            let about = events.into_iter().filter(|event| {
                event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(name)
            });
            let told: Vec<_> = about
                .map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default()))
                .collect();
            let found = told.iter().find(|(said, _)| said == reason).map(|(_, note)| note.clone());
            found.ok_or_else(|| {
                told.iter().map(|(reason, note)| format!("{reason}: {note}")).collect::<Vec<_>>()
            })
        })
    }

    /// Waits until a `BasicDeployment` is ready with its current spec.
    #[track_caller]
    pub fn until_ready(&self, name: &str) -> impl Future<Output = BasicDeployment> {
        self.until_ready_within(WAIT_TIMEOUT, name)
    }

    /// Like [`Namespace::until_ready`], with another time limit.
    #[track_caller]
    pub fn until_ready_within(&self, limit: Duration, name: &str) -> impl Future<Output = BasicDeployment> {
        self.until_within(limit, name, "is ready", |deployment: &BasicDeployment| {
            let status = deployment.status.as_ref();
            status.is_some_and(|status| {
                status.ready && status.observed_generation == deployment.metadata.generation
            })
        })
    }

    /// Waits until a `BasicReplicaSet` is ready with its current spec.
    #[track_caller]
    pub fn until_set_ready(&self, name: &str) -> impl Future<Output = BasicReplicaSet> {
        self.until(name, "is ready", |set: &BasicReplicaSet| {
            set.status.as_ref().is_some_and(|status| {
                crate::is_true(&status.conditions, "Ready")
                    && status.observed_generation == set.metadata.generation
            })
        })
    }

    /// All pods in it, by name.
    pub async fn pods(&self) -> kube::Result<Vec<Pod>> {
        let mut pods = self.api::<Pod>().list(&ListParams::default()).await?.items;
        pods.sort_by_key(ResourceExt::name_any);
        Ok(pods)
    }

    /// Waits until `are` is true for the pods that are not terminating.
    #[track_caller]
    pub fn until_pods(&self, what: &str, are: impl Fn(&[Pod]) -> bool) -> impl Future<Output = Vec<Pod>> {
        self.until_pods_within(WAIT_TIMEOUT, what, are)
    }

    /// Like [`Namespace::until_pods`], with another time limit.
    #[track_caller]
    pub fn until_pods_within(
        &self,
        limit: Duration,
        what: &str,
        are: impl Fn(&[Pod]) -> bool,
    ) -> impl Future<Output = Vec<Pod>> {
        eventually(what, limit, async move || {
            let pods = pods::alive(self.pods().await.map_err(|error| vec![error.to_string()])?);
            if are(&pods) { Ok(pods) } else { Err(pods.iter().map(pods::describe).collect::<Vec<_>>()) }
        })
    }

    /// Waits until exactly this number of pods exists that are not terminating, and each is ready.
    #[track_caller]
    pub fn until_ready_pods(&self, count: usize) -> impl Future<Output = Vec<Pod>> {
        let what = format!("{count} pods serve, and there is no other (asked at {})", Location::caller());
        async move { self.until_pods(&what, |pods| pods.len() == count && pods.iter().all(pods::is_ready)).await }
    }

    /// Waits until no pod is terminating: those of a former version take up to half a minute on real nodes.
    pub async fn until_no_pod_ends(&self) {
        eventually("no pod is terminating", WAIT_TIMEOUT, async || {
            let mut pods = self.pods().await.map_err(|error| vec![error.to_string()])?;
            pods.retain(|pod| !pods::is_alive(pod));
            if pods.is_empty() { Ok(()) } else { Err(pods.iter().map(pods::describe).collect::<Vec<_>>()) }
        })
        .await;
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", inspect(&self.name));
        }
        let name = self.name.clone();
        clean_up("deleting a namespace", async move |client| {
            let namespaces = Api::<CoreNamespace>::all(client.clone());
            match namespaces.delete(&name, &DeleteParams::background()).await {
                Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            // The namespace controller begins after five seconds, and comes back after five more for what is not gone at
            // once. What is deleted now is gone by then.
            delete_all::<BasicDeployment>(&client, &name).await?;
            delete_all::<BasicReplicaSet>(&client, &name).await?;
            delete_all::<Pod>(&client, &name).await
        });
    }
}

async fn delete_all<K: Namespaced>(client: &Client, namespace: &str) -> Result<()> {
    let (all, background) = (ListParams::default(), DeleteParams::background());
    match Api::<K>::namespaced(client.clone(), namespace).delete_collection(&background, &all).await {
        // A test may have taken away the kind, for which the answer is a page, or the namespace is gone already.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}

//! The namespace of the trials, and the objects in it. The only writer.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_cluster::{At, Change, Cluster, How, Kind};
use catena_terminal::{sanitized, tell, until};
use jiff::Timestamp;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, VersionMatch},
    core::DynamicObject,
};
use operator_watch::Lenient;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Replica;

/// The label of the namespaces of trials.
const OF_A_CHECK: &str = "catena.dev/contract-check";
/// The field manager of the parent's part.
const PARENT: &str = "kubectl-catena";
/// The field manager of somebody else's part.
const SOMEBODY_ELSE: &str = "kubectl-catena-somebody-else";
/// The key of somebody else's label and annotation.
const FOREIGN: &str = "catena.dev/somebody-else";
/// Time for the controllers of children to remove their finalizers; it is most of the whole time.
const FINALIZER_TIMEOUT: Duration = Duration::from_secs(45);
/// Time for the namespace to go; what is still there then has a finalizer of another controller.
const REMOVAL_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two looks at a namespace that goes.
const REMOVAL_INTERVAL: Duration = Duration::from_millis(250);
/// Time in which the server may still come to the creation of a namespace that was interrupted.
const UNANSWERED_TIMEOUT: Duration = Duration::from_secs(3);

/// A namespace of its own for the trials.
pub struct Stage {
    cluster: Cluster,
    kind: Kind,
    pods: Kind,
    namespaces: Kind,
    uid: String,
}

impl Stage {
    /// A namespace that is not created yet. Its name is its own, and is known before, so that it can be deleted at any time.
    pub fn planned(mut cluster: Cluster, kind: Kind) -> Result<Self> {
        let now = Timestamp::now().as_millisecond();
        cluster.namespace = format!("contract-check-{now}-{}", std::process::id());
        let [pods, namespaces] = ["pods", "namespaces"].map(|word| cluster.kinds.find(word).cloned());
        Ok(Self { pods: pods?, namespaces: namespaces?, cluster, kind, uid: String::new() })
    }

    /// Creates the namespace.
    pub async fn set_up(&mut self) -> Result<()> {
        let metadata = json!({"name": self.name(), "labels": {OF_A_CHECK: "replicas"}});
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
        let created = self.namespace().write(Change::Create(&object), How::default()).await;
        let created: Value =
            created.context("the namespace of the trials cannot be created; you need that right")?;
        created["metadata"]["uid"].as_str().unwrap_or_default().clone_into(&mut self.uid);
        Ok(())
    }

    /// Deletes the namespace after its creation had no answer: the server may still be at it.
    pub async fn withdraw(&self) -> Result<()> {
        let deleted =
            until(REMOVAL_INTERVAL, UNANSWERED_TIMEOUT, async || Ok(self.namespace().delete(None).await?));
        deleted.await.map(drop)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.cluster.namespace
    }

    /// Its children, for a watch.
    pub fn children(&self) -> Api<Lenient<DynamicObject>> {
        self.cluster.api(&self.kind, Some(self.name()))
    }

    /// Its pods, for a watch.
    pub fn pods(&self) -> Api<Lenient<DynamicObject>> {
        self.cluster.api(&self.pods, Some(self.name()))
    }

    /// Its replicas now.
    pub async fn replicas(&self) -> Result<Vec<Replica>> {
        let listed = self.list_replicas(ListParams::default()).await;
        listed.map_err(|error| self.cluster.refused(&self.pods, "", "list", error))
    }

    /// Its replicas when a child got this version: by default, all kinds share one store and its versions. Where the server
    /// does not have that state, its replicas now.
    pub async fn replicas_at(&self, version: &str) -> Result<Vec<Replica>> {
        let then = ListParams::default().at(version).matching(VersionMatch::Exact);
        match self.list_replicas(then).await {
            Ok(replicas) => Ok(replicas),
            Err(_) => self.replicas().await,
        }
    }

    async fn list_replicas(&self, params: ListParams) -> kube::Result<Vec<Replica>> {
        let pods = self.cluster.list(&self.pods, Some(self.name()), params).await?;
        Ok(pods.iter().map(Replica::of).collect())
    }

    /// Applies a child as a parent does, and returns it as it then is.
    pub async fn apply(&self, child: &Value) -> Result<DynamicObject> {
        let name = child["metadata"]["name"].as_str().unwrap_or_default();
        let params = PatchParams::apply(PARENT).force().validation_strict();
        let api: Api<DynamicObject> = self.cluster.api(&self.kind, Some(self.name()));
        let applied = api.patch(name, &params, &Patch::Apply(child)).await;
        applied.map_err(|error| self.cluster.refused(&self.kind, name, "patch", error))
    }

    /// Sets a label and an annotation of somebody else on a child.
    pub async fn mark(&self, name: &str) -> Result<()> {
        let marks = json!({"metadata": {"labels": {FOREIGN: "stays"}, "annotations": {FOREIGN: "stays"}}});
        let how = How { manager: SOMEBODY_ELSE, ..How::default() };
        let marked = self.child(name).write::<Value>(Change::Merge(&marks), how).await;
        marked.map(drop).map_err(|error| self.cluster.refused(&self.kind, name, "patch", error))
    }

    /// The marks that a child has lost.
    pub async fn lost_marks(&self, name: &str) -> Result<Vec<&'static str>> {
        let child = self.find(name).await?.with_context(|| format!("{name} is gone"))?;
        let mut marks = vec![("label", child.labels()), ("annotation", child.annotations())];
        marks.retain(|(_, there)| !there.contains_key(FOREIGN));
        Ok(marks.into_iter().map(|(what, _)| what).collect())
    }

    /// A child, if it is there.
    pub async fn find(&self, name: &str) -> Result<Option<DynamicObject>> {
        let found = self.child(name).find().await;
        found.map_err(|error| self.cluster.refused(&self.kind, name, "get", error))
    }

    /// Deletes a child, in the background.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let deleted = self.child(name).delete(None).await;
        deleted.map(drop).map_err(|error| self.cluster.refused(&self.kind, name, "delete", error))
    }

    /// Deletes the children and the namespace, and waits until it is gone. Finalizers of children are for their controllers,
    /// which may have something to clean up; only after a while they are removed, so that they do not keep the namespace.
    pub async fn remove(&self) -> Result<()> {
        let begin = Instant::now();
        self.delete_children().await.ok();
        self.namespace().delete(Some(&self.uid)).await?;
        let gone = until(REMOVAL_INTERVAL, REMOVAL_TIMEOUT, async || {
            if begin.elapsed() > FINALIZER_TIMEOUT {
                self.release().await.ok();
            }
            let found = self.namespace().read::<Value>().await?;
            Ok(found.is_none_or(|found| found["metadata"]["uid"] != *self.uid))
        });
        ensure!(gone.await?, "it is still there: `kubectl describe namespace {}` says why", self.name());
        Ok(())
    }

    async fn delete_children(&self) -> Result<()> {
        for child in self.list_children().await? {
            self.delete(&child.name_any()).await?;
        }
        Ok(())
    }

    /// Removes the finalizers of children that are being deleted, and says so: what they stood for may be left.
    async fn release(&self) -> Result<()> {
        let children = self.list_children().await?;
        let is_held = |child: &&DynamicObject| {
            child.metadata.deletion_timestamp.is_some() && !child.finalizers().is_empty()
        };
        for child in children.iter().filter(is_held) {
            let name = child.name_any();
            let none = json!({"metadata": {"uid": child.uid(), "finalizers": null}});
            self.child(&name).write::<Value>(Change::Merge(&none), How::default()).await?;
            let told = format!(
                "{name} was not gone after {} s: its finalizers were removed ({}), so that something of it may be left elsewhere",
                FINALIZER_TIMEOUT.as_secs(),
                child.finalizers().join(", ")
            );
            tell(&sanitized(&told));
        }
        Ok(())
    }

    fn namespace(&self) -> At<'_> {
        self.cluster.at(&self.namespaces, None, self.name())
    }

    fn child<'s>(&'s self, name: &'s str) -> At<'s> {
        self.cluster.at(&self.kind, Some(self.name()), name)
    }

    async fn list_children(&self) -> kube::Result<Vec<DynamicObject>> {
        self.cluster.list(&self.kind, Some(self.name()), ListParams::default()).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use catena_cluster::testing::cluster;
    use http::{Method, Request, Response, StatusCode};
    use kube::{Client, client::Body};
    use tokio::time::timeout;
    use tower::service_fn;

    use super::*;

    type Writes = Arc<Mutex<Vec<(u64, String)>>>;

    /// A stage with a child that its finalizer holds and one that is not deleted, and the writes with the seconds after
    /// which they came. The namespace goes when a finalizer is removed.
    fn stage() -> (Stage, Writes) {
        let writes = Writes::default();
        let (log, begin) = (writes.clone(), Instant::now());
        let service = service_fn(move |request: Request<Body>| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            if method != Method::GET {
                log.lock().unwrap().push((begin.elapsed().as_secs(), format!("{method} {path}")));
            }
            let is_released = log.lock().unwrap().iter().any(|(_, write)| write.starts_with("PATCH"));
            let (status, answer) = match (method, path.ends_with("/basicreplicasets")) {
                (Method::GET, true) => {
                    let child = |name: &str, deleted: Option<&str>| {
                        json!({
                            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet",
                            "metadata": {"name": name, "uid": name, "finalizers": ["x.dev/clean"], "deletionTimestamp": deleted},
                        })
                    };
                    let items = [child("held", Some("2026-01-01T00:00:00Z")), child("kept", None)];
                    (
                        StatusCode::OK,
                        json!({"apiVersion": "catena.dev/v1alpha1", "kind": "List", "metadata": {}, "items": items}),
                    )
                }
                (Method::GET, false) if is_released => (
                    StatusCode::NOT_FOUND,
                    json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}),
                ),
                (Method::GET | Method::PATCH, _) => (
                    StatusCode::OK,
                    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u"}}),
                ),
                _ => (StatusCode::OK, json!({"kind": "Status", "status": "Success"})),
            };
            futures::future::ready(
                Response::builder().status(status).body(Body::from(answer.to_string().into_bytes())),
            )
        });
        let cluster = Cluster { client: Client::new(service, "shop"), ..cluster().0 };
        let [kind, pods, namespaces] =
            ["basicreplicasets", "pods", "namespaces"].map(|word| cluster.kinds.find(word).unwrap().clone());
        (Stage { cluster, kind, pods, namespaces, uid: "u".into() }, writes)
    }

    #[tokio::test(start_paused = true)]
    async fn a_namespace_that_comes_after_its_creation_was_interrupted_is_deleted() {
        let deleted = Arc::new(Mutex::new(Vec::new()));
        let log = deleted.clone();
        let service = service_fn(move |request: Request<Body>| {
            let log = log.clone();
            async move {
                if request.method() == Method::POST {
                    futures::future::pending::<()>().await;
                }
                let path = request.uri().path().to_owned();
                let mut log = log.lock().unwrap();
                log.push(path);
                // The server comes to the creation only after the first attempt.
                let (status, answer) = if log.len() == 1 {
                    let missing =
                        json!({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404});
                    (StatusCode::NOT_FOUND, missing)
                } else {
                    (StatusCode::OK, json!({"kind": "Status", "status": "Success"}))
                };
                Response::builder().status(status).body(Body::from(answer.to_string().into_bytes()))
            }
        });
        let cluster = Cluster { client: Client::new(service, "shop"), ..cluster().0 };
        let kind = cluster.kinds.find("basicreplicasets").unwrap().clone();
        let mut stage = Stage::planned(cluster, kind).unwrap();
        timeout(Duration::from_secs(1), stage.set_up()).await.unwrap_err();
        stage.withdraw().await.unwrap();
        let path = format!("/api/v1/namespaces/{}", stage.name());
        assert_eq!(*deleted.lock().unwrap(), [path.clone(), path]);
    }

    #[tokio::test(start_paused = true)]
    async fn finalizers_are_removed_late_and_only_from_children_that_are_being_deleted() {
        let (stage, writes) = stage();
        stage.remove().await.unwrap();
        let writes = writes.lock().unwrap();
        let children = "/apis/catena.dev/v1alpha1/namespaces/shop/basicreplicasets";
        let told: Vec<_> = writes.iter().map(|(_, write)| write.clone()).collect();
        let expected = [
            format!("DELETE {children}/held"),
            format!("DELETE {children}/kept"),
            "DELETE /api/v1/namespaces/shop".to_owned(),
            format!("PATCH {children}/held"),
        ];
        assert_eq!(told, expected);
        assert!(writes[2].0 == 0 && writes[3].0 >= FINALIZER_TIMEOUT.as_secs(), "{writes:?}");
    }
}

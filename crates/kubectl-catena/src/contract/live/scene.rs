//! What happens on the stage, followed by watches, so that no state of a child is missed.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::pending,
    pin::pin,
};

use basic_deployment_controller::outputs::Outputs;
use futures::{StreamExt, future::join};
use kube::{
    ResourceExt,
    core::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use operator_watch::Unmanaged;

use super::{
    replica::{Expectation, Replica, serving},
    requirement::Requirement,
    run::Run,
};

/// A state of a child.
#[derive(Clone, Debug)]
pub struct Child {
    /// Its name.
    pub name: String,
    /// Its version.
    pub resource_version: String,
    /// The generation of its spec.
    pub generation: i64,
    /// Its outputs, by the parent's own rules.
    pub outputs: Outputs,
}

impl Child {
    /// Whether its outputs refer to its present spec.
    pub fn is_current(&self) -> bool {
        self.outputs.observed_generation == Some(self.generation)
    }
}

/// The state of the stage, as the watches have shown it.
#[derive(Default)]
pub struct Scene {
    children: RefCell<BTreeMap<String, Child>>,
    replicas: RefCell<BTreeMap<String, Replica>>,
    expectation: RefCell<Option<Expectation>>,
    least_serving: Cell<Option<usize>>,
}

impl Scene {
    /// A child, as it was last seen.
    pub fn child(&self, name: &str) -> Option<Child> {
        self.children.borrow().get(name).cloned()
    }

    /// The replicas, as they were last seen.
    pub fn replicas(&self) -> Vec<Replica> {
        self.replicas.borrow().values().cloned().collect()
    }

    /// The versions of everything.
    pub fn versions(&self) -> BTreeMap<String, String> {
        let children = self.children.borrow();
        let children = children.values().map(|child| (child.name.clone(), child.resource_version.clone()));
        let replicas = self.replicas.borrow();
        let pods = replicas.values().map(|pod| (format!("Pod/{}", pod.name), pod.resource_version.clone()));
        children.chain(pods).collect()
    }

    /// The uids of all pods.
    pub fn uids(&self) -> BTreeSet<String> {
        self.replicas.borrow().keys().cloned().collect()
    }

    /// From now on, the fewest serving replicas are kept.
    pub fn count_serving(&self) {
        self.least_serving.set(Some(serving(&self.replicas())));
    }

    /// The fewest replicas that served at any time since they are counted.
    pub fn least_serving(&self) -> Option<usize> {
        self.least_serving.get()
    }
}

impl Run<'_> {
    /// From now on, any readiness is judged by this; `None` while a change is on its way.
    pub async fn expect(&self, expectation: Option<Expectation>) {
        let name = expectation.as_ref().map(|expectation| expectation.child.clone());
        self.scene.expectation.replace(expectation);
        if let Some(child) = name.and_then(|name| self.scene.child(&name)) {
            self.judge(&child).await;
        }
    }

    /// Follows everything. It never ends.
    pub async fn follow(&self) -> Infallible {
        join(self.follow_children(), self.follow_pods()).await;
        pending().await
    }

    async fn follow_children(&self) {
        let mut events = pin!(watcher(self.stage.children(), watcher::Config::default()).default_backoff());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Apply(Unmanaged(object)) | Event::InitApply(Unmanaged(object))) => {
                    let child = self.look_at(&object);
                    self.scene.children.borrow_mut().insert(child.name.clone(), child.clone());
                    self.judge(&child).await;
                }
                Ok(Event::Delete(Unmanaged(object))) => {
                    drop(self.scene.children.borrow_mut().remove(&object.name_any()));
                }
                // The watch repeats its request by itself.
                Ok(Event::Init | Event::InitDone) | Err(_) => {}
            }
        }
    }

    async fn follow_pods(&self) {
        let mut events = pin!(watcher(self.stage.pods(), watcher::Config::default()).default_backoff());
        let (scene, mut listed) = (&self.scene, BTreeMap::new());
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listed.clear(),
                Ok(Event::InitApply(Unmanaged(pod))) => {
                    listed.insert(pod.uid().unwrap_or_default(), Replica::of(&pod));
                    continue;
                }
                Ok(Event::InitDone) => drop(scene.replicas.replace(std::mem::take(&mut listed))),
                Ok(Event::Apply(Unmanaged(pod))) => {
                    scene.replicas.borrow_mut().insert(pod.uid().unwrap_or_default(), Replica::of(&pod));
                }
                Ok(Event::Delete(Unmanaged(pod))) => {
                    scene.replicas.borrow_mut().remove(&pod.uid().unwrap_or_default());
                }
                Err(_) => continue,
            }
            if let Some(least) = scene.least_serving.get() {
                scene.least_serving.set(Some(least.min(serving(&scene.replicas()))));
            }
        }
    }

    /// A child, by the parent's own rules.
    pub fn look_at(&self, object: &DynamicObject) -> Child {
        let generation = object.metadata.generation.unwrap_or_default();
        let value = serde_json::to_value(object).unwrap_or_default();
        Child {
            name: object.name_any(),
            resource_version: object.resource_version().unwrap_or_default(),
            generation,
            outputs: self.mapping.outputs(&value, generation),
        }
    }

    /// Judges the outputs of a child, and its claim to be ready by its replicas at the moment of the claim: a moment later,
    /// they may have become what it claims.
    pub async fn judge(&self, child: &Child) {
        if let Some(problem) = &child.outputs.problem {
            let seen = format!("its parent would report ContractBroken, and write nothing: {problem}");
            self.ledger.fail(Requirement::Outputs, seen);
        }
        let Some(expected) = self.scene.expectation.borrow().clone() else { return };
        let is_meant = child.name == expected.child && child.generation >= expected.generation;
        if !(is_meant && child.is_current() && child.outputs.ready) {
            return;
        }
        let Ok(replicas) = self.stage.replicas_at(&child.resource_version).await else { return };
        if self.scene.expectation.borrow().as_ref() == Some(&expected)
            && let Some(lie) = expected.lie(&replicas)
        {
            self.ledger.fail(expected.blame, lie);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use basic_deployment_controller::outputs::Mapping;
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        connection::tests::{answering, status},
        contract::live::{manifest::Manifest, report::Ledger, requirement::Limits, stage::Stage},
        progress::Progress,
    };

    /// The results of a child that reports something with version 7. A pod serves now; there was none when that was reported,
    /// if the server still has that state.
    async fn judged(reported: &Value, has_that_state: bool) -> Ledger {
        let (cluster, _requests) = answering(move |_, uri, _| {
            let is_of_then = uri.contains("resourceVersion=7&resourceVersionMatch=Exact");
            if is_of_then && !has_that_state {
                return status(410, "Expired", "it is too old");
            }
            let serving = json!({
                "metadata": {"name": "web-1", "uid": "new"},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            });
            let items = if is_of_then { json!([]) } else { json!([serving]) };
            (StatusCode::OK, json!({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}))
        });
        let kind = cluster.kinds.find("basicreplicasets").unwrap().clone();
        let text = "{apiVersion: catena.dev/v1alpha1, kind: BasicReplicaSet, metadata: {name: web}}";
        let (manifest, mapping) = (Manifest::read(text, &kind).unwrap(), Mapping::default());
        let limits = Limits { each: Duration::ZERO, own: BTreeMap::new(), window: Duration::ZERO };
        let run = Run {
            stage: Stage::planned(cluster, kind).unwrap(),
            scene: Scene::default(),
            ledger: Ledger::default(),
            mapping: &mapping,
            good: &manifest,
            bad: &manifest,
            limits: &limits,
            status: Progress::new("web"),
        };
        let expectation = Expectation {
            child: "web".into(),
            generation: 1,
            replicas: 1,
            old: BTreeSet::new(),
            others: BTreeSet::new(),
            blame: Requirement::Restart,
        };
        run.expect(Some(expectation)).await;
        let child = json!({
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet",
            "metadata": {"name": "web", "resourceVersion": "7", "generation": 1}, "status": reported,
        });
        run.judge(&run.look_at(&serde_json::from_value(child).unwrap())).await;
        run.ledger
    }

    #[tokio::test]
    async fn a_claim_to_be_ready_is_judged_by_the_pods_of_that_moment() {
        let ready = json!({
            "active": 1, "observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}],
        });
        assert!(judged(&ready, true).await.has_failed(Requirement::Restart));
        assert!(!judged(&ready, false).await.has_failed(Requirement::Restart), "by those of now instead");
    }

    #[tokio::test]
    async fn an_output_of_another_type_is_told_in_any_status() {
        let ledger = judged(&json!({"active": "none"}), true).await;
        assert!(ledger.has_failed(Requirement::Outputs) && !ledger.has_failed(Requirement::Restart));
    }
}

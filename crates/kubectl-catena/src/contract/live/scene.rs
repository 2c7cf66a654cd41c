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
use operator_kit::watch::Unmanaged;

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

    fn look_at(&self, object: &DynamicObject) -> Child {
        let generation = object.metadata.generation.unwrap_or_default();
        let value = serde_json::to_value(object).unwrap_or_default();
        Child {
            name: object.name_any(),
            resource_version: object.resource_version().unwrap_or_default(),
            generation,
            outputs: self.mapping.outputs(&value, generation),
        }
    }

    /// Judges the claim of a child to be ready, by a look at its replicas after the claim: a replaced one that is still
    /// there was there when the claim was made.
    async fn judge(&self, child: &Child) {
        if child.outputs.observed_generation.is_some_and(|observed| observed > child.generation) {
            let seen = "it is higher than the generation of the object";
            self.ledger.fail(Requirement::ObservedGeneration, seen);
        }
        let Some(expected) = self.scene.expectation.borrow().clone() else { return };
        let is_meant = child.name == expected.child && child.generation >= expected.generation;
        if !(is_meant && child.is_current() && child.outputs.ready) {
            return;
        }
        let Ok(replicas) = self.stage.replicas().await else { return };
        if self.scene.expectation.borrow().as_ref() == Some(&expected)
            && let Some(lie) = expected.lie(&replicas)
        {
            self.ledger.fail(expected.blame, lie);
        }
    }
}

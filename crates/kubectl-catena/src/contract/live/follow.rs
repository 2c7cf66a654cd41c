//! Follows the children and the pods by watches, so that no state of a child is missed, and judges each.

use std::{collections::BTreeMap, convert::Infallible, future::pending, pin::pin};

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

use super::{Child, Expectation, Replica, Requirement, Run};

impl Run<'_> {
    /// From now on, any readiness is judged by this; `None` while a change is on its way.
    pub async fn expect(&self, expectation: Option<Expectation>) {
        let child = expectation.as_ref().and_then(|expected| self.child(&expected.child));
        self.observed.send_modify(|observed| observed.expectation = expectation);
        if let Some(child) = child {
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
                    self.observed.send_modify(|observed| {
                        observed.children.insert(child.name.clone(), child.clone());
                    });
                    self.judge(&child).await;
                }
                Ok(Event::Delete(Unmanaged(object))) => self.observed.send_modify(|observed| {
                    observed.children.remove(&object.name_any());
                }),
                // The watch repeats its request by itself.
                Ok(Event::Init | Event::InitDone) | Err(_) => {}
            }
        }
    }

    async fn follow_pods(&self) {
        let mut events = pin!(watcher(self.stage.pods(), watcher::Config::default()).default_backoff());
        let mut listed = BTreeMap::new();
        while let Some(event) = events.next().await {
            let Ok(event) = event else { continue };
            self.observed.send_modify(|observed| {
                match event {
                    Event::Init => listed.clear(),
                    Event::InitApply(Unmanaged(pod)) => {
                        listed.insert(pod.uid().unwrap_or_default(), Replica::of(&pod));
                    }
                    Event::InitDone => observed.replicas = std::mem::take(&mut listed),
                    Event::Apply(Unmanaged(pod)) => {
                        observed.replicas.insert(pod.uid().unwrap_or_default(), Replica::of(&pod));
                    }
                    Event::Delete(Unmanaged(pod)) => {
                        observed.replicas.remove(&pod.uid().unwrap_or_default());
                    }
                }
                let serving = observed.serving();
                observed.least_serving = observed.least_serving.map(|least| least.min(serving));
            });
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
            outputs: self.subject.mapping.outputs(&value, generation),
        }
    }

    /// Judges the outputs of a child, and its claim to be ready by its replicas at the moment of the claim: a moment later,
    /// they may have become what it claims.
    pub async fn judge(&self, child: &Child) {
        if let Some(problem) = &child.outputs.problem {
            let seen = format!("its parent would report ContractBroken, and write nothing: {problem}");
            self.ledger.fail(Requirement::Outputs, seen);
        }
        let Some(expected) = self.observed.borrow().expectation.clone() else { return };
        let is_meant = child.name == expected.child && child.generation >= expected.generation;
        if !(is_meant && child.is_current() && child.outputs.ready) {
            return;
        }
        let Ok(replicas) = self.stage.replicas_at(&child.resource_version).await else { return };
        if self.observed.borrow().expectation.as_ref() == Some(&expected)
            && let Some(lie) = expected.lie(&replicas)
        {
            self.ledger.fail(expected.blame, lie);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use basic_deployment_controller::outputs::Mapping;
    use catena_cluster::testing::{answering, status};
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;
    use crate::contract::live::{
        Subject, manifest::Manifest, report::Ledger, requirement::Limits, stage::Stage,
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
        let limits = Limits { timeouts: vec![(None, Duration::ZERO)], window: Duration::ZERO };
        let subject = Subject { kind, mapping, good: manifest.clone(), bad: manifest };
        let stage = Stage::planned(cluster, subject.kind.clone()).unwrap();
        let run = Run::new(stage, &subject, &limits);
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

//! One run of the trials: it follows the children and the pods by watches, so that no state of a child is missed, and judges
//! each.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    future::pending,
    pin::pin,
};

use anyhow::Result;
use catena_api::contract::ReplicaContract;
use catena_terminal::Progress;
use futures::{StreamExt, future::join};
use kube::{
    ResourceExt,
    core::DynamicObject,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use operator_watch::Lenient;
use tokio::{sync::watch, time::timeout};

use super::{Child, Expectation, Ledger, Limits, Manifest, Observed, Replica, Requirement, Stage, Subject};

/// The number of steps that are shown as progress.
const STEPS: u64 = 12;

/// A run of the trials.
pub struct Run<'r> {
    /// The only writer.
    pub stage: Stage,
    /// What is seen.
    pub observed: watch::Sender<Observed>,
    /// The results so far.
    pub ledger: Ledger,
    /// The restart token of all children from now on.
    pub token: RefCell<Option<String>>,
    /// The child that is tried.
    pub subject: &'r Subject,
    /// The time limits.
    pub limits: &'r Limits,
    /// The display.
    pub status: Progress,
}

impl<'r> Run<'r> {
    /// A run on a stage that is set up.
    pub fn new(stage: Stage, subject: &'r Subject, limits: &'r Limits) -> Self {
        let status = Progress::new(&format!("{} in {}", subject.kind.resource.kind, stage.name()));
        let (observed, ledger) = (watch::Sender::new(Observed::default()), Ledger::default());
        Self { stage, observed, ledger, token: RefCell::default(), subject, limits, status }
    }

    /// The contract of the kind.
    pub fn contract(&self) -> &ReplicaContract {
        &self.subject.mapping.contract
    }

    /// A child, as it was last seen.
    pub fn child(&self, name: &str) -> Option<Child> {
        self.observed.borrow().children.get(name).cloned()
    }

    /// Shows the step that begins.
    pub fn step(&self, done: u64, what: &str) {
        self.status.show(what, Some((done, STEPS)));
    }

    /// Waits until something is visible, for as long as a requirement may take.
    pub async fn until(&self, limit: Requirement, is: impl FnMut(&Observed) -> bool) -> bool {
        let mut changes = self.observed.subscribe();
        let seen = timeout(self.limits.of(limit), changes.wait_for(is)).await;
        seen.is_ok_and(|seen| seen.is_ok())
    }

    /// Waits until something is visible that a requirement asks for, which otherwise is broken in these words.
    pub async fn saw(&self, asked: Requirement, is: impl FnMut(&Observed) -> bool, unseen: &str) -> bool {
        let is_seen = self.until(asked, is).await;
        if !is_seen {
            self.ledger.fail(asked, format!("{}: {unseen}", self.in_time(asked)));
        }
        is_seen
    }

    /// Waits until a state of a child is visible.
    pub async fn until_child(&self, name: &str, limit: Requirement, is: impl Fn(&Child) -> bool) -> bool {
        self.until(limit, |observed| observed.children.get(name).is_some_and(&is)).await
    }

    /// Applies a child, and judges its readiness by its replicas from then on.
    pub async fn change(
        &self,
        manifest: &Manifest,
        replicas: usize,
        old: &BTreeSet<String>,
        blame: Requirement,
    ) -> Result<Expectation> {
        self.expect(None).await;
        let is_good = manifest.name() == self.subject.good.name();
        let others = if is_good { BTreeSet::new() } else { self.observed.borrow().uids() };
        let child = manifest.child(self.contract(), replicas, self.token.borrow().as_deref());
        let applied = self.stage.apply(&child).await?;
        let applied = self.look_at(&applied);
        // A watch may show a new child only after its first status.
        self.judge(&applied).await;
        let (child, generation) = (manifest.name().to_owned(), applied.generation);
        let expected = Expectation { child, generation, replicas, old: old.clone(), others, blame };
        self.expect(Some(expected.clone())).await;
        Ok(expected)
    }

    /// Waits until the replicas of the good child are as expected, and judges its outputs by them. `false` if they are
    /// never so, which breaks `blame`.
    pub async fn settle(&self, expected: &Expectation, blame: Requirement) -> bool {
        let counts = !self.ledger.has_failed(Requirement::Scaling);
        let is_settled = |observed: &Observed| {
            let mut alive = observed.replicas.values().filter(|replica| replica.is_alive);
            let number = observed.alive();
            alive.all(|replica| replica.serves && !expected.old.contains(&replica.uid))
                && (number == expected.replicas || !counts && number > 0)
        };
        if !self.until(blame, is_settled).await {
            self.ledger.fail(blame, format!("{}: {}", self.in_time(blame), self.described(expected)));
            return false;
        }
        self.judge_generation(expected).await;
        self.judge_active(&expected.child).await;
        self.judge_ready(&expected.child).await;
        true
    }

    /// Waits until a child has observed the generation of its last change.
    pub async fn judge_generation(&self, expected: &Expectation) {
        let Expectation { child: name, generation, .. } = expected;
        let requirement = Requirement::ObservedGeneration;
        if self.ledger.has_failed(requirement) {
            return;
        }
        let follows = |child: &Child| child.generation >= *generation && child.is_current();
        if self.until_child(name, requirement, follows).await {
            self.ledger.pass(requirement, "it followed each change");
            return;
        }
        let observed = self.child(name).and_then(|child| child.outputs.observed_generation);
        let observed = observed.map_or_else(|| "missing".to_owned(), |number| number.to_string());
        let late = self.in_time(requirement);
        self.ledger.fail(requirement, format!("{late}: it is {observed} for generation {generation}"));
        for other in [Requirement::Ready, Requirement::BadTemplate] {
            self.ledger.leave_open(other, "without observedGeneration, ready refers to nothing");
        }
    }

    /// Waits until the number of active replicas is that of those that serve.
    pub async fn judge_active(&self, name: &str) {
        let requirement = Requirement::Active;
        if self.ledger.has_failed(requirement) {
            return;
        }
        let is_right = |observed: &Observed| {
            let active = observed.children.get(name).map(|child| usize::try_from(child.outputs.active));
            active == Some(Ok(observed.serving()))
        };
        if self.until(requirement, is_right).await {
            self.ledger.pass(requirement, "it was the number of serving pods");
            return;
        }
        let active = self.child(name).map(|child| child.outputs.active).unwrap_or_default();
        let serving = self.observed.borrow().serving();
        self.ledger.fail(requirement, format!("it stays {active} while {serving} pods serve"));
    }

    async fn judge_ready(&self, name: &str) {
        let requirement = Requirement::Ready;
        let before = [requirement, Requirement::Scaling, Requirement::ObservedGeneration];
        if before.into_iter().any(|requirement| self.ledger.has_failed(requirement)) {
            return;
        }
        let is_ready = |child: &Child| child.is_current() && child.outputs.ready;
        if self.until_child(name, requirement, is_ready).await {
            self.ledger.pass(requirement, "true when all replicas were new and served, and never before");
            return;
        }
        let problem = self.child(name).and_then(|child| child.outputs.problem);
        let why = problem.map_or_else(String::new, |problem| format!(": {problem}"));
        let late = self.in_time(requirement);
        self.ledger.fail(requirement, format!("{late}, although all replicas serve{why}"));
    }

    /// The words for a limit that has passed.
    pub fn in_time(&self, requirement: Requirement) -> String {
        format!("not within {} s", self.limits.of(requirement).as_secs())
    }

    fn described(&self, Expectation { replicas: wanted, old, .. }: &Expectation) -> String {
        let observed = self.observed.borrow();
        let left =
            observed.replicas.values().filter(|replica| replica.is_alive && old.contains(&replica.uid));
        let left = left.count();
        let of_old = if left > 0 { format!(", {left} of them old") } else { String::new() };
        let (serving, alive) = (observed.serving(), observed.alive());
        format!("{serving} pods serve, and {alive} are there{of_old}; {wanted} are desired")
    }

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
                Ok(Event::Apply(Lenient(object)) | Event::InitApply(Lenient(object))) => {
                    let child = self.look_at(&object);
                    self.observed.send_modify(|observed| {
                        observed.children.insert(child.name.clone(), child.clone());
                    });
                    self.judge(&child).await;
                }
                Ok(Event::Delete(Lenient(object))) => self.observed.send_modify(|observed| {
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
                    Event::InitApply(Lenient(pod)) => {
                        listed.insert(pod.uid().unwrap_or_default(), Replica::of(&pod));
                    }
                    Event::InitDone => observed.replicas = std::mem::take(&mut listed),
                    Event::Apply(Lenient(pod)) => {
                        observed.replicas.insert(pod.uid().unwrap_or_default(), Replica::of(&pod));
                    }
                    Event::Delete(Lenient(pod)) => {
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
    use std::time::Duration;

    use catena_cluster::testing::{answering, status};
    use http::StatusCode;
    use serde_json::{Value, json};

    use super::*;

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
        let manifest = Manifest::read(text, &kind).unwrap();
        let limits = Limits { timeouts: vec![(None, Duration::ZERO)], window: Duration::ZERO };
        let mapping = replica_contract::Mapping::default();
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

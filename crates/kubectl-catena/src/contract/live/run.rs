//! One run of the trials: the hands of each trial.

use std::{collections::BTreeSet, time::Duration};

use anyhow::Result;
use basic_deployment_controller::outputs::Mapping;
use catena_api::contract::ReplicaContract;

use super::{
    manifest::Manifest,
    replica::{Expectation, Replica, alive, serving},
    report::Ledger,
    requirement::{Limits, Requirement},
    scene::{Child, Scene},
    stage::Stage,
};
use crate::{progress::Progress, waiting::poll};

/// Time between two looks at what the watches have shown.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// The number of steps that are shown as progress.
const STEPS: u64 = 11;

/// A run of the trials.
pub struct Run<'r> {
    /// The only writer.
    pub stage: Stage,
    /// What is seen.
    pub scene: Scene,
    /// The results so far.
    pub ledger: Ledger,
    /// The contract of the kind.
    pub mapping: &'r Mapping,
    /// The child that serves.
    pub good: &'r Manifest,
    /// The child that never serves.
    pub bad: &'r Manifest,
    /// The time limits.
    pub limits: &'r Limits,
    /// The display.
    pub status: Progress,
}

/// What is visible at a moment.
pub struct View {
    /// The child.
    pub child: Child,
    /// All replicas on the stage.
    pub replicas: Vec<Replica>,
}

impl Run<'_> {
    /// The contract of the kind.
    pub fn contract(&self) -> &ReplicaContract {
        &self.mapping.contract
    }

    /// Shows the step that begins.
    pub fn step(&self, done: u64, what: &str) {
        self.status.show(what, Some((done, STEPS)));
    }

    /// Waits until something is visible, for as long as a requirement may take.
    pub async fn until(&self, child: &str, limit: Requirement, is: impl Fn(&View) -> bool) -> bool {
        let seen = poll(LOOK_INTERVAL, self.limits.of(limit), async || -> Result<Option<()>> {
            let child = self.scene.child(child);
            let view = child.map(|child| View { child, replicas: self.scene.replicas() });
            Ok(view.is_some_and(|view| is(&view)).then_some(()))
        });
        seen.await.is_ok_and(|seen| seen.is_some())
    }

    /// Applies a child, and judges its readiness by its replicas from then on.
    pub async fn change(
        &self,
        manifest: &Manifest,
        replicas: i32,
        token: Option<&str>,
        old: &BTreeSet<String>,
        blame: Requirement,
    ) -> Result<i64> {
        self.expect(None).await;
        let others = if manifest.name() == self.good.name() { BTreeSet::new() } else { self.scene.uids() };
        let applied = self.stage.apply(&manifest.child(self.contract(), replicas, token)).await?;
        let applied = self.look_at(&applied);
        // A watch may show a new child only after its first status.
        self.judge(&applied).await;
        let generation = applied.generation;
        let expectation = Expectation {
            child: manifest.name().to_owned(),
            generation,
            replicas: usize::try_from(replicas).unwrap_or(0),
            old: old.clone(),
            others,
            blame,
        };
        self.expect(Some(expectation)).await;
        Ok(generation)
    }

    /// Waits until the replicas of the good child are as desired, and judges its outputs by them. `false` if they are
    /// never so, which breaks `blame`.
    pub async fn settle(
        &self,
        wanted: i32,
        generation: i64,
        old: &BTreeSet<String>,
        blame: Requirement,
    ) -> bool {
        let wanted = usize::try_from(wanted).unwrap_or(0);
        let counts = !self.ledger.has_failed(Requirement::Scaling);
        let is_settled = |replicas: &[Replica]| {
            let all_serve = replicas.iter().all(|replica| !replica.is_alive || replica.serves);
            let none_is_old = !replicas.iter().any(|replica| replica.is_alive && old.contains(&replica.uid));
            let number = alive(replicas);
            all_serve && none_is_old && (number == wanted || !counts && number > 0)
        };
        let name = self.good.name();
        if !self.until(name, blame, |view| is_settled(&view.replicas)).await {
            self.ledger.fail(blame, format!("{}: {}", self.in_time(blame), self.described(wanted, old)));
            return false;
        }
        self.judge_generation(name, generation).await;
        self.judge_active(name).await;
        self.judge_ready(name).await;
        true
    }

    /// Waits until a child has observed a generation.
    pub async fn judge_generation(&self, name: &str, generation: i64) {
        let requirement = Requirement::ObservedGeneration;
        if self.ledger.has_failed(requirement) {
            return;
        }
        let follows = |view: &View| view.child.generation >= generation && view.child.is_current();
        if self.until(name, requirement, follows).await {
            self.ledger.pass(requirement, "it followed each change");
            return;
        }
        let observed = self.scene.child(name).and_then(|child| child.outputs.observed_generation);
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
        let is_right = |view: &View| {
            usize::try_from(view.child.outputs.active).is_ok_and(|active| active == serving(&view.replicas))
        };
        if self.until(name, requirement, is_right).await {
            self.ledger.pass(requirement, "it was the number of serving pods");
            return;
        }
        let active = self.scene.child(name).map(|child| child.outputs.active).unwrap_or_default();
        let serving = serving(&self.scene.replicas());
        self.ledger.fail(requirement, format!("it stays {active} while {serving} pods serve"));
    }

    async fn judge_ready(&self, name: &str) {
        let requirement = Requirement::Ready;
        let before = [requirement, Requirement::Scaling, Requirement::ObservedGeneration];
        if before.into_iter().any(|requirement| self.ledger.has_failed(requirement)) {
            return;
        }
        let is_ready = |view: &View| view.child.is_current() && view.child.outputs.ready;
        if self.until(name, requirement, is_ready).await {
            self.ledger.pass(requirement, "true when all replicas were new and served, and never before");
            return;
        }
        let problem = self.scene.child(name).and_then(|child| child.outputs.problem);
        let why = problem.map_or_else(String::new, |problem| format!(": {problem}"));
        let late = self.in_time(requirement);
        self.ledger.fail(requirement, format!("{late}, although all replicas serve{why}"));
    }

    /// The words for a limit that has passed.
    pub fn in_time(&self, requirement: Requirement) -> String {
        format!("not within {} s", self.limits.of(requirement).as_secs())
    }

    fn described(&self, wanted: usize, old: &BTreeSet<String>) -> String {
        let replicas = self.scene.replicas();
        let left = replicas.iter().filter(|replica| replica.is_alive && old.contains(&replica.uid)).count();
        let of_old = if left > 0 { format!(", {left} of them old") } else { String::new() };
        format!(
            "{} pods serve, and {} are there{of_old}; {wanted} are desired",
            serving(&replicas),
            alive(&replicas)
        )
    }
}

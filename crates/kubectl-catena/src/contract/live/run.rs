//! One run of the trials: the hands of each trial.

use std::collections::BTreeSet;

use anyhow::Result;
use catena_api::contract::ReplicaContract;
use tokio::{sync::watch, time::timeout};

use super::{Child, Expectation, Ledger, Limits, Manifest, Observed, Requirement, Stage, Subject};
use crate::screen::Progress;

/// The number of steps that are shown as progress.
const STEPS: u64 = 11;

/// A run of the trials.
pub struct Run<'r> {
    /// The only writer.
    pub stage: Stage,
    /// What is seen.
    pub observed: watch::Sender<Observed>,
    /// The results so far.
    pub ledger: Ledger,
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
        Self { stage, observed, ledger, subject, limits, status }
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
    pub async fn saw(
        &self,
        requirement: Requirement,
        is: impl FnMut(&Observed) -> bool,
        unseen: &str,
    ) -> bool {
        let is_seen = self.until(requirement, is).await;
        if !is_seen {
            self.ledger.fail(requirement, format!("{}: {unseen}", self.in_time(requirement)));
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
        replicas: i32,
        token: Option<&str>,
        old: &BTreeSet<String>,
        blame: Requirement,
    ) -> Result<i64> {
        self.expect(None).await;
        let is_good = manifest.name() == self.subject.good.name();
        let others = if is_good { BTreeSet::new() } else { self.observed.borrow().uids() };
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
        let is_settled = |observed: &Observed| {
            let mut alive = observed.replicas.values().filter(|replica| replica.is_alive);
            let number = observed.alive();
            alive.all(|replica| replica.serves && !old.contains(&replica.uid))
                && (number == wanted || !counts && number > 0)
        };
        let name = self.subject.good.name();
        if !self.until(blame, is_settled).await {
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
        let follows = |child: &Child| child.generation >= generation && child.is_current();
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

    fn described(&self, wanted: usize, old: &BTreeSet<String>) -> String {
        let observed = self.observed.borrow();
        let is_left = |uid: &&String| observed.replicas.get(*uid).is_some_and(|replica| replica.is_alive);
        let left = old.iter().filter(is_left).count();
        let of_old = if left > 0 { format!(", {left} of them old") } else { String::new() };
        let (serving, alive) = (observed.serving(), observed.alive());
        format!("{serving} pods serve, and {alive} are there{of_old}; {wanted} are desired")
    }
}

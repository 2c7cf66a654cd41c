//! The story that runs with faults: create, scale, roll out, restart, roll back, delete with a
//! backup.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, BasicDeploymentRollback,
    BasicDeploymentRollbackSpec, TargetRef,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::{
    cast::{Cast, Stage},
    census::{Census, Seen},
    plan::{Fault, Plan},
    state::Counts,
    world::World,
};
use crate::{BACKUP_BY, Cluster, Namespace, REPLICA_SETS, deployment, texts};

/// Time limit of each step: an exponential backoff, a list that stalls, and a busy machine.
const STEP: Duration = Duration::from_secs(150);
/// Time without writes at the end, in which late writes are noticed.
const QUIET: Duration = Duration::from_secs(2);
/// The same for an undisturbed story: statuses that only change numbers are up to 20 s late.
const ALL_SAID: Duration = Duration::from_secs(21);
/// Number of tries of a write that a view of the past asks for, one in each second.
const SECONDS_OF_THE_PAST: usize = 3;
const EVERY: Duration = Duration::from_millis(100);
/// Replicas, and one more while they are replaced.
const MOST_PODS: usize = REPLICAS + 1;
/// Replicas, at most.
const REPLICAS: usize = 3;

/// The result of an undisturbed story.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The objects before the deletion.
    before_deletion: World,
    /// The objects at the end.
    in_the_end: World,
    /// The number of objects of each kind that ever existed.
    made: BTreeMap<&'static str, usize>,
    /// The requests of each controller.
    pub counts: Vec<(crate::Controller, Counts)>,
    /// The writes in their order.
    pub writes: Vec<String>,
}

/// The outcome of a disturbed story.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The reason why it did not end like the undisturbed one.
    pub lost: Option<String>,
    /// The objects that were created in addition to those of an undisturbed story.
    pub duplicated: Option<String>,
    /// Actions that no controller may take.
    pub offences: Vec<String>,
    /// Faults that did not occur, because the story ended before.
    pub ahead: Vec<Fault>,
}

/// One run of the story.
struct Telling<'p> {
    namespace: Namespace,
    census: Census,
    cast: Cast,
    plans: &'p [Plan],
}

/// Runs the story undisturbed.
pub async fn undisturbed(cluster: &Cluster, stage: &Stage) -> Result<Reference> {
    let telling = Telling::begin(cluster, stage, &[]).await?;
    telling.until_rolled_back().await?;
    telling.until_quiet(ALL_SAID).await?;
    let before_deletion = telling.world();
    telling.end().await?;
    telling.until_quiet(QUIET).await?;
    let offences = telling.cast.offences();
    ensure!(offences.is_empty(), "undisturbed: {offences:#?}");
    Ok(Reference {
        before_deletion,
        in_the_end: telling.world(),
        made: telling.made(),
        counts: telling.cast.counts().collect(),
        writes: telling.cast.writes(),
    })
}

/// Runs the story with the faults of a plan.
pub async fn disturbed(
    cluster: &Cluster,
    stage: &Stage,
    plans: &[Plan],
    reference: &Reference,
) -> Result<Outcome> {
    let telling = Telling::begin(cluster, stage, plans).await?;
    let told = telling.tell(reference).await;
    let seen = telling.census.so_far();
    let mut outcome =
        Outcome { offences: telling.cast.offences(), ahead: telling.cast.ahead(), ..Outcome::default() };
    let allowed = |kind: &str| {
        let is_past = |plan: &Plan| plan.controller == REPLICA_SETS.name() && plan.shows_the_past();
        let again = if kind == "Pod" && plans.iter().any(is_past) { REPLICAS } else { 0 };
        reference.made.get(kind).copied().unwrap_or_default() + again
    };
    let more: Vec<_> = telling
        .made()
        .iter()
        .filter(|(kind, count)| **count > allowed(kind))
        .map(|(kind, count)| {
            format!("{count} × {kind} instead of {}", reference.made.get(kind).unwrap_or(&0))
        })
        .chain((seen.most_pods > MOST_PODS).then(|| format!("{} pods at once", seen.most_pods)))
        .collect();
    if !more.is_empty() {
        outcome.duplicated = Some(format!("{}\n{}", more.join(", "), telling.explain()));
    }
    if let Err(error) = told {
        outcome.lost = Some(format!("{error:#}\n{}", telling.explain()));
    }
    telling.let_go().await;
    Ok(outcome)
}

impl<'p> Telling<'p> {
    async fn begin(cluster: &Cluster, stage: &Stage, plans: &'p [Plan]) -> Result<Self> {
        let namespace = cluster.namespace("chaos").await?;
        let census = Census::begin(&stage.client, &namespace.name).await;
        let cast = Cast::start(stage, &namespace.name, plans).await?;
        Ok(Self { namespace, census, cast, plans })
    }

    async fn tell(&self, reference: &Reference) -> Result<()> {
        self.until_rolled_back().await?;
        self.until_like(&reference.before_deletion).await.context("before the deletion")?;
        self.end().await?;
        self.until_like(&reference.in_the_end).await.context("in the end")
    }

    async fn until_rolled_back(&self) -> Result<()> {
        let mut web = deployment("web", 2);
        web.metadata.labels = Some(texts! { BACKUP_BY => "chaos" });
        self.namespace.create(&web).await?;
        self.until("two pods serve", |seen| serves(seen, 2, None)).await?;

        self.change(json!({"replicas": 3})).await?;
        self.until("three pods serve", |seen| serves(seen, 3, None)).await?;

        self.change(json!({"parameters": {"env.VERSION": "2"}})).await?;
        self.until("version 2 serves", |seen| serves(seen, 3, Some("2"))).await?;

        let before = uids(&self.census.so_far());
        let target_ref = || TargetRef { name: "web".into(), namespace: None };
        let restart = BasicDeploymentRestartSpec {
            target_ref: target_ref(),
            ttl_seconds_after_finished: Some(0),
            ..BasicDeploymentRestartSpec::default()
        };
        self.namespace.create(&BasicDeploymentRestart::new("restart", restart)).await?;
        self.until("the restart is done and gone, and other pods serve", |seen| {
            seen.get("BasicDeploymentRestart", "restart").is_none()
                && serves(seen, 3, Some("2"))
                && uids(seen).is_disjoint(&before)
        })
        .await?;

        let rollback = BasicDeploymentRollbackSpec {
            target_ref: target_ref(),
            ttl_seconds_after_finished: Some(0),
            ..BasicDeploymentRollbackSpec::default()
        };
        self.namespace.create(&BasicDeploymentRollback::new("rollback", rollback)).await?;
        self.until("the rollback is done and gone, and version 1 serves", |seen| {
            seen.get("BasicDeploymentRollback", "rollback").is_none() && serves(seen, 3, None)
        })
        .await
    }

    async fn end(&self) -> Result<()> {
        self.namespace.delete::<BasicDeployment>("web").await?;
        self.until("nothing but a backup is left", |seen| {
            seen.now.len() == 1 && seen.all("Secret").count() == 1
        })
        .await?;
        ensure!(self.census.so_far().was_backed_up(), "it was gone before its backup was there");
        Ok(())
    }

    async fn change(&self, spec: Value) -> Result<()> {
        self.namespace.merge::<BasicDeployment>("web", json!({"spec": spec})).await?;
        Ok(())
    }

    async fn until(&self, what: &str, is: impl Fn(&Seen) -> bool) -> Result<()> {
        self.census.until(what, STEP, is).await
    }

    /// The number of objects of each kind that ever existed. In the end, a pod of a set that has just gone may be replaced once
    /// more: the watch of pods may be ahead of that of sets. It has no owner, and garbage collection deletes it.
    fn made(&self) -> BTreeMap<&'static str, usize> {
        let seen = self.census.so_far();
        let mut made = seen.made();
        made.entry("Pod").and_modify(|pods| *pods -= seen.orphans.len());
        made
    }

    fn world(&self) -> World {
        World::of(&self.census.so_far(), &self.namespace.name)
    }

    /// Waits until the objects are those of an undisturbed story, after which nothing more is written.
    async fn until_like(&self, reference: &World) -> Result<()> {
        let deadline = Instant::now() + STEP;
        while self.world() != *reference {
            if Instant::now() > deadline {
                let world = self.world();
                bail!("there is {:#?} instead of {:#?}", world.beyond(reference), reference.beyond(&world));
            }
            sleep(EVERY).await;
        }
        let done = Instant::now();
        sleep(QUIET).await;
        let mut more = self.cast.written_since(done);
        // As in `made`.
        more.retain(|write| {
            !(self.census.so_far().is_over() && write.starts_with("POST") && write.contains("/pods "))
        });
        // A slow answer may outlast its object, and a view of the past shows it for some seconds, in each of which the write is
        // tried again. It has no effect, unless that goes on and on.
        let tries = if self.plans.iter().any(Plan::shows_the_past) { SECONDS_OF_THE_PAST } else { 1 };
        let all = more.clone();
        more.retain(|write| {
            !write.ends_with("→ 404") || all.iter().filter(|other| *other == write).count() > tries
        });
        ensure!(more.is_empty(), "it wrote when all was done: {more:#?}");
        Ok(())
    }

    async fn until_quiet(&self, time: Duration) -> Result<()> {
        let quiet = async {
            while self.cast.quiet_for() < time || self.census.so_far().changed.elapsed() < QUIET {
                sleep(EVERY).await;
            }
        };
        timeout(STEP, quiet).await.context("the controllers went on writing")
    }

    fn explain(&self) -> String {
        format!("{}\n{}", self.cast.writes().join("\n"), self.cast.last_words(self.plans))
    }

    /// Ends the controllers, and releases the objects that one of them still protects.
    async fn let_go(self) {
        let Self { namespace, cast, .. } = self;
        drop(cast);
        let unprotected = json!({"metadata": {"finalizers": null}});
        // It is gone if the story came to its end.
        let _ = namespace.merge::<BasicDeployment>("web", unprotected).await;
    }
}

/// Whether this number of pods of a version serves and no other pod does, and the `BasicDeployment` reports it.
fn serves(seen: &Seen, count: usize, version: Option<&str>) -> bool {
    let is_ready = |pod: &Value| {
        let conditions = pod["status"]["conditions"].as_array();
        conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
    };
    let pods: Vec<&Value> = seen.all("Pod").collect();
    let is_right = |pod: &Value| {
        is_ready(pod) && pod.pointer("/spec/containers/0/env/0/value").and_then(Value::as_str) == version
    };
    seen.get("BasicDeployment", "web").is_some_and(|web| {
        web["status"]["ready"] == true
            && web["status"]["active"] == count
            && web["status"]["observedGeneration"] == web["metadata"]["generation"]
    }) && pods.len() == count
        && pods.into_iter().all(is_right)
}

fn uids(seen: &Seen) -> BTreeSet<String> {
    seen.all("Pod").filter_map(|pod| pod["metadata"]["uid"].as_str().map(str::to_owned)).collect()
}

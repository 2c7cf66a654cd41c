//! The controllers of one story: all five as separate processes, each behind a proxy that shows it only the
//! story's namespace. One whose leader is lost has two replicas.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

use super::{
    keeper::Keeper,
    plan::{Fault, Plan},
    proxy::ChaosProxy,
    state::Counts,
};
use crate::{
    BACKUP_BY, BACKUPS, CONTROLLERS, Cluster, Controller, OwnProcess, Paused, system::NAMESPACE,
    until_all_are_ready,
};

/// Number of lines of a log that are printed for a failed story.
const LAST_LINES: usize = 12;

/// The programs and settings of all controllers, which do not run in the cluster until this is dropped.
pub struct Programs {
    all: Vec<(Controller, PathBuf, Value)>,
    paused: Vec<Paused>,
}

/// The controllers of one story, until this is dropped.
pub struct Cast {
    players: Vec<Player>,
}

struct Player {
    controller: Controller,
    proxy: Arc<ChaosProxy>,
    /// A log for each replica.
    logs: Vec<PathBuf>,
    /// Actions of its processes that no process may take.
    offences: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Programs {
    /// Ends the cluster's own controllers, which would take part in every story.
    pub async fn take_over(cluster: &Cluster) -> Result<Self> {
        let pausing = CONTROLLERS.map(async |controller| Paused::for_its_program(cluster, controller).await);
        let (mut all, mut kept) = (Vec::new(), Vec::new());
        for (controller, (paused, program)) in CONTROLLERS.into_iter().zip(try_join_all(pausing).await?) {
            all.push((controller, program, settings(&cluster.client, controller).await?));
            kept.push(paused);
        }
        Ok(Self { all, paused: kept })
    }

    /// Starts the cluster's own controllers again.
    pub async fn give_back(self, cluster: &Cluster) -> Result<()> {
        let Self { paused, .. } = self;
        tokio::task::spawn_blocking(move || drop(paused)).await?;
        until_all_are_ready(cluster).await;
        Ok(())
    }
}

/// The settings that a controller has by its chart.
async fn settings(client: &Client, controller: Controller) -> Result<Value> {
    let maps = Api::<ConfigMap>::namespaced(client.clone(), NAMESPACE);
    let map = maps.get(controller.name()).await?;
    let text = map.data.as_ref().and_then(|data| data.get("settings.yaml")).context("no settings")?;
    serde_saphyr::from_str(text).with_context(|| format!("the settings of {}", controller.name()))
}

/// A `BasicDeployment` is backed up as a Secret beside it.
fn backup_settings(namespace: &str) -> Value {
    json!({
        "kinds": {"basicdeployments": {
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "resource": "basicdeployments",
            "backup": "manifest", "selector": {"matchLabels": {BACKUP_BY: "chaos"}}, "retryAfter": "2s",
        }},
        "backups": {"manifest": {
            "apiVersion": "v1", "kind": "Secret", "resource": "secrets", "namespace": namespace,
            "template": "{apiVersion: v1, kind: Secret, metadata: {name: {{ 'backup-' ~ suffix }}}, immutable: true, stringData: {manifest.json: {{ manifest }}}}",
            "succeeded": "has(object.data) && 'manifest.json' in object.data",
        }},
    })
}

impl Cast {
    /// Starts all controllers in a namespace, with the faults of the plan.
    pub async fn start(
        client: &Client,
        programs: &Programs,
        namespace: &str,
        plans: &[Plan],
    ) -> Result<Self> {
        let mut players = Vec::new();
        for (controller, program, settings) in &programs.all {
            let of_it = plans.iter().filter(|plan| plan.controller == controller.name());
            let faults: Vec<Fault> = of_it.flat_map(|plan| plan.faults.clone()).collect();
            let is_doubled = faults.iter().any(Fault::is_hand_over);
            let (mut proxy, ends) = ChaosProxy::in_namespace(client.clone(), namespace, faults).await?;
            let settings = if *controller == BACKUPS { backup_settings(namespace) } else { settings.clone() };
            let mut replicas = Vec::new();
            if is_doubled {
                for address in [proxy.address, proxy.another_door().await?] {
                    replicas.push(OwnProcess::start_replica(program.clone(), address, &settings, namespace)?);
                }
            } else {
                replicas.push(OwnProcess::start(program.clone(), &proxy, &settings)?);
            }
            let (proxy, offences): (_, Arc<Mutex<Vec<String>>>) = (Arc::new(proxy), Arc::default());
            let logs = replicas.iter().map(OwnProcess::log_file).collect();
            let keeper = Keeper::new(replicas, proxy.clone(), offences.clone());
            let task = tokio::spawn(keeper.keep(ends));
            players.push(Player { controller: *controller, proxy, logs, offences, task });
        }
        Ok(Self { players })
    }

    /// The requests of each controller.
    pub fn counts(&self) -> impl Iterator<Item = (Controller, Counts)> {
        self.players.iter().map(|player| (player.controller, player.proxy.counts()))
    }

    /// The writes that arrived after a moment.
    #[must_use]
    pub fn written_since(&self, moment: Instant) -> Vec<String> {
        let all = self.players.iter().flat_map(|player| player.proxy.timed_writes());
        all.filter(|(at, _)| *at > moment).map(|(_, write)| write).collect()
    }

    /// The writes in their order, a line each with the seconds since the first.
    #[must_use]
    pub fn writes(&self) -> Vec<String> {
        let of = |player: &Player| {
            let name = player.controller.name();
            player.proxy.timed_writes().into_iter().map(move |(at, write)| (at, format!("{name}: {write}")))
        };
        let mut all: Vec<_> = self.players.iter().flat_map(of).collect();
        all.sort();
        let Some(first) = all.first().map(|(at, _)| *at) else { return Vec::new() };
        all.into_iter().map(|(at, write)| format!("{:>7.3} {write}", (at - first).as_secs_f64())).collect()
    }

    /// The time since the last write of any controller.
    #[must_use]
    pub fn quiet_for(&self) -> Duration {
        self.players.iter().map(|player| player.proxy.quiet_for()).min().unwrap_or_default()
    }

    /// Faults that did not occur.
    #[must_use]
    pub fn ahead(&self) -> Vec<Fault> {
        self.players.iter().flat_map(|player| player.proxy.ahead()).collect()
    }

    /// Actions that no controller may take in any case.
    #[must_use]
    pub fn offences(&self) -> Vec<String> {
        let of = |player: &Player| {
            let name = player.controller.name();
            let mut all = player.proxy.unsafe_writes();
            all.extend(player.offences.lock().iter().cloned());
            all.extend(player.proxy.two_writers());
            all.into_iter().map(|offence| format!("{name}: {offence}")).collect::<Vec<_>>()
        };
        self.players.iter().flat_map(of).collect()
    }

    /// The last lines that the controllers of some plans logged.
    #[must_use]
    pub fn last_words(&self, plans: &[Plan]) -> String {
        let is_planned =
            |player: &&Player| plans.iter().any(|plan| plan.controller == player.controller.name());
        let last = |player: &Player| {
            let last = player.logs.iter().map(|log| last_lines(log));
            format!("{}:\n{}\n", player.controller.name(), last.collect::<Vec<_>>().join("\n\n"))
        };
        self.players.iter().filter(is_planned).map(last).collect()
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn last_lines(log: &Path) -> String {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

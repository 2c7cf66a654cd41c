//! The controllers of one story: all five as separate processes, each behind a proxy that shows it only the
//! story's namespace. One whose leader is lost has two replicas.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::Instant};

use super::{
    keeper::Keeper,
    plan::{Fault, Plan},
    proxy::{ChaosProxy, client},
    state::{Answered, Counts},
};
use crate::{
    BACKUP_BY, BACKUPS, CONTROLLERS, Cluster, Controller, OwnProcess, Paused, system::NAMESPACE,
    until_all_are_ready,
};

/// Number of lines of a log that are printed for a failed story.
const LAST_LINES: usize = 12;

/// What the stories share: the settings of all controllers, which do not run in the cluster until this is dropped.
pub struct Stage {
    /// Without retries.
    pub client: Client,
    settings: Vec<(Controller, Value)>,
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
    _keeper: JoinSet<()>,
}

impl Stage {
    /// Ends the cluster's own controllers, which would take part in every story.
    pub async fn take_over(cluster: &Cluster) -> Result<Self> {
        let taken = CONTROLLERS.map(async |controller| {
            let settings = settings(&cluster.client, controller).await?;
            anyhow::Ok(((controller, settings), Paused::pause(cluster, controller).await?))
        });
        let (settings, paused) = try_join_all(taken).await?.into_iter().unzip();
        Ok(Self { client: client().await?, settings, paused })
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
    pub async fn start(stage: &Stage, namespace: &str, plans: &[Plan]) -> Result<Self> {
        let mut players = Vec::new();
        for (controller, settings) in &stage.settings {
            let of_it = plans.iter().filter(|plan| plan.controller == controller.name());
            let faults: Vec<Fault> = of_it.flat_map(|plan| plan.faults.clone()).collect();
            let is_doubled = faults.iter().any(Fault::is_hand_over);
            let (mut proxy, ends) =
                ChaosProxy::with(stage.client.clone(), Some(namespace.to_owned()), faults).await?;
            let settings = if *controller == BACKUPS { backup_settings(namespace) } else { settings.clone() };
            let program = OwnProcess::program(*controller)?;
            let mut replicas = Vec::new();
            if is_doubled {
                for address in [proxy.address, proxy.another_door().await?] {
                    replicas.push(OwnProcess::start_replica(program.clone(), address, &settings, namespace)?);
                }
            } else {
                replicas.push(OwnProcess::start(program, &proxy, &settings)?);
            }
            let logs = replicas.iter().map(OwnProcess::log_file).collect();
            let proxy = Arc::new(proxy);
            let keeper = Keeper { replicas, proxy: proxy.clone(), deposed: BTreeSet::new() };
            let keeper = JoinSet::from_iter([keeper.keep(ends)]);
            players.push(Player { controller: *controller, proxy, logs, _keeper: keeper });
        }
        Ok(Self { players })
    }

    /// The requests of each controller.
    pub fn counts(&self) -> impl Iterator<Item = (Controller, Counts)> {
        self.players.iter().map(|player| (player.controller, player.proxy.state().counts()))
    }

    /// The writes that arrived after a moment.
    pub fn written_since(&self, moment: Instant) -> Vec<String> {
        let all = self.players.iter().flat_map(|player| player.proxy.state().writes.clone());
        all.filter(|answered| answered.at > moment).map(|answered| answered.write).collect()
    }

    /// The writes in their order, a line each with the seconds since the first.
    pub fn writes(&self) -> Vec<String> {
        let of = |player: &Player| {
            let (name, writes) = (player.controller.name(), player.proxy.state().writes.clone());
            writes.into_iter().map(move |Answered { at, write, .. }| (at, format!("{name}: {write}")))
        };
        let mut all: Vec<_> = self.players.iter().flat_map(of).collect();
        all.sort();
        let Some(first) = all.first().map(|(at, _)| *at) else { return Vec::new() };
        all.into_iter().map(|(at, write)| format!("{:>7.3} {write}", (at - first).as_secs_f64())).collect()
    }

    /// The time since the last write of any controller.
    pub fn quiet_for(&self) -> Duration {
        self.players.iter().map(|player| player.proxy.state().last_write.elapsed()).min().unwrap_or_default()
    }

    /// Faults that did not occur.
    pub fn ahead(&self) -> Vec<Fault> {
        self.players.iter().flat_map(|player| player.proxy.state().ahead.clone()).collect()
    }

    /// Actions that no controller may take in any case.
    pub fn offences(&self) -> Vec<String> {
        let of = |player: &Player| {
            let state = player.proxy.state();
            let all = state.offences.iter().cloned().chain(state.two_writers());
            all.map(|offence| format!("{}: {offence}", player.controller.name())).collect::<Vec<_>>()
        };
        self.players.iter().flat_map(of).collect()
    }

    /// The last lines that the controllers of some plans logged.
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

fn last_lines(log: &Path) -> String {
    let log = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

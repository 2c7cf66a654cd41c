//! Keeps the watches in line with the kinds of the settings and of definitions.

use std::{collections::HashMap, sync::Arc, time::Duration};

use command_binder::{Settings, command::CommandRow};
use command_kinds::{CommandKind, Registry, TargetKind, Targets};
use kube::discovery::ApiResource;
use operator_kit::run::{Operator, Triggers};
use operator_watch::{Discovery, DynamicKind, ObjectId};
use tokio::{select, sync::watch, time::sleep};

use super::waiting::{Awaited, TargetName, Waiting};

/// Time between checks of kinds of targets that are not served or watched in another version. A check alone makes no request.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// The kinds of commands, which change at run time.
pub struct Catalog {
    discovery: Discovery,
    registry: Registry,
    waiting: Waiting,
    triggers: Triggers<CommandRow>,
    targets: Targets,
}

impl Catalog {
    pub fn new(operator: &Operator<Settings>, waiting: Waiting, triggers: Triggers<CommandRow>) -> Self {
        let (waiters, woken) = (waiting.clone(), triggers.clone());
        let targets = Targets::new(operator, move |kind, ObjectId { namespace, name, .. }| {
            let target = Some(TargetName { namespace: namespace.into(), name: name.into() });
            waiters.target_came(&Awaited { kind: kind.clone(), target }, &woken);
        });
        let (discovery, registry) = (operator.discovery.clone(), Registry::new(operator, "bound"));
        Self { discovery, registry, waiting, triggers, targets }
    }

    /// Sends the kinds, forever.
    pub async fn follow(mut self, kinds: watch::Sender<Vec<DynamicKind<CommandRow>>>) {
        loop {
            let mut wanted = self.registry.current();
            wanted.retain(|kind| kind.target.is_some());
            self.targets.follow(&wanted);
            let substitutes = self.targets.substitutes();
            kinds.send_replace(wanted.iter().map(|kind| watched(kind, &substitutes)).collect());
            while self.targets.substitutes() == substitutes {
                select! {
                    () = self.registry.changed() => break,
                    () = sleep(DISCOVERY_INTERVAL) => self.follow_awaited().await,
                }
            }
        }
    }

    /// Wakes the commands whose target's kind was not served, as soon as it is.
    async fn follow_awaited(&self) {
        for kind in self.waiting.kinds() {
            if let Ok(Some(_)) = self.discovery.find(&kind.resource).await {
                self.waiting.kind_came(kind, &self.triggers);
            }
        }
    }
}

/// Watches commands. When their targets are watched in another version, all of them are listed again, because the references of
/// those that are bound may have to be refreshed.
fn watched(
    kind: &CommandKind,
    substitutes: &HashMap<Arc<TargetKind>, ApiResource>,
) -> DynamicKind<CommandRow> {
    let watched = |target: &Arc<TargetKind>| substitutes.get(target).unwrap_or(&target.resource).clone();
    let watched_targets: Vec<_> = kind.targets().iter().map(watched).collect();
    let versions: Vec<_> = watched_targets.iter().map(|target| &*target.api_version).collect();
    let versions = versions.join(" ");
    let kind = Arc::new(CommandKind { watched_targets, ..kind.clone() });
    kind.clone().watched(&versions, move |object| CommandRow::of(&kind, object))
}

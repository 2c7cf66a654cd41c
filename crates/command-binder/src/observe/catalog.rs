//! Keeps the watches in line with the kinds of the settings and of definitions.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use command_binder::{Settings, command::CommandRow};
use command_kinds::{CommandKind, Registry, TargetKind};
use kube::{Api, Client, discovery::ApiResource};
use operator_kit::run::{Operator, Triggers};
use operator_watch::{ObjectId, PrunedObject, ServedKinds, Watch, WatchHandle, WatchedKind, Watches};
use tokio::{select, sync::watch, time::sleep};

use super::waiting::{Awaited, TargetName, Waiting};

/// Time between checks of kinds of targets that are not served or watched in another version. A check alone makes no request.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(1);

/// The kinds of commands, which change at run time.
pub struct Catalog {
    client: Client,
    watches: Watches,
    served_kinds: ServedKinds,
    registry: Registry<Settings>,
    waiting: Waiting,
    triggers: Triggers<CommandRow>,
    targets: HashMap<Arc<TargetKind>, WatchHandle>,
}

impl Catalog {
    pub fn new(operator: &Operator<Settings>, waiting: Waiting, triggers: Triggers<CommandRow>) -> Self {
        Self {
            client: operator.client.clone(),
            watches: operator.watches.clone(),
            served_kinds: operator.served_kinds.clone(),
            registry: Registry::new(operator),
            waiting,
            triggers,
            targets: HashMap::new(),
        }
    }

    /// Sends the kinds, forever.
    pub async fn follow(mut self, kinds: watch::Sender<Vec<WatchedKind<CommandRow>>>) {
        loop {
            let mut wanted = self.registry.current();
            wanted.retain(|kind| kind.target.is_some());
            self.watch_targets(&wanted);
            let substitutes = self.substitutes();
            kinds.send_replace(wanted.iter().map(|kind| watched(kind, &substitutes)).collect());
            while self.substitutes() == substitutes {
                select! {
                    () = self.registry.changed() => break,
                    () = sleep(DISCOVERY_INTERVAL) => self.follow_awaited().await,
                }
            }
        }
    }

    /// Of targets, only the names that wake waiting commands are read, and nothing is kept.
    fn watch_targets(&mut self, kinds: &[Arc<CommandKind>]) {
        let wanted: HashSet<_> = kinds.iter().flat_map(|kind| kind.targets().iter().cloned()).collect();
        self.targets.retain(|kind, _| wanted.contains(kind));
        for kind in wanted {
            if !self.targets.contains_key(&kind) {
                let watch = self.watch(kind.clone());
                self.targets.insert(kind, watch);
            }
        }
    }

    /// The versions in which targets are watched instead of the wanted ones.
    fn substitutes(&self) -> HashMap<Arc<TargetKind>, ApiResource> {
        let substitute = |(kind, watch): (&Arc<TargetKind>, &WatchHandle)| {
            Some((kind.clone(), ApiResource::clone(&*watch.substitute()?)))
        };
        self.targets.iter().filter_map(substitute).collect()
    }

    /// Wakes the commands whose target's kind was not served, as soon as it is.
    async fn follow_awaited(&self) {
        for kind in self.waiting.kinds() {
            if let Ok(Some(_)) = self.served_kinds.find(&kind.resource).await {
                self.waiting.kind_came(kind, &self.triggers);
            }
        }
    }

    fn watch(&self, kind: Arc<TargetKind>) -> WatchHandle {
        let (waiting, triggers) = (self.waiting.clone(), self.triggers.clone());
        let api = Api::all_with(self.client.clone(), &kind.resource);
        let watch = Watch::new(api, format!("{} (as a target)", kind.resource.kind))
            .metadata_only()
            .in_any_version(&self.served_kinds, kind.resource.clone());
        self.watches.watch_changes(watch, move |target: &PrunedObject| {
            let ObjectId { namespace, name, .. } = ObjectId::of(target);
            let target = Some(TargetName { namespace: namespace.into(), name: name.into() });
            waiting.target_came(&Awaited { kind: kind.clone(), target }, &triggers);
        })
    }
}

/// Watches commands. When their targets are watched in another version, all of them are listed again, because the references of
/// those that are bound may have to be refreshed.
fn watched(
    kind: &CommandKind,
    substitutes: &HashMap<Arc<TargetKind>, ApiResource>,
) -> WatchedKind<CommandRow> {
    let watched = |target: &Arc<TargetKind>| substitutes.get(target).unwrap_or(&target.resource).clone();
    let watched_targets: Vec<_> = kind.targets().iter().map(watched).collect();
    let versions: Vec<_> = watched_targets.iter().map(|target| &*target.api_version).collect();
    let fingerprint = format!("{} {}", kind.fingerprint, versions.join(" "));
    let (id, resource, selector) = (kind.id.clone(), kind.resource.clone(), kind.selector.clone());
    let kind = Arc::new(CommandKind { watched_targets, ..kind.clone() });
    let trim = Arc::new(move |object| CommandRow::of(&kind, object));
    WatchedKind { id, resource: resource.into(), selector, is_metadata_only: false, trim, fingerprint }
}

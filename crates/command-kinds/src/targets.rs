//! The watches of the targets of commands.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use kube::{Client, discovery::ApiResource};
use operator_kit::run::Operator;
use operator_watch::{Discovery, ObjectId, PrunedObject, Watch, WatchHandle, Watches};

use crate::{
    kind::{CommandKind, TargetKind},
    settings::Kinds,
};

/// Gets each target that comes, changes or goes.
type Changed = dyn Fn(&Arc<TargetKind>, ObjectId<'_>) + Send + Sync;

/// The watches of targets. Only their metadata is read, and nothing is kept.
pub struct Targets {
    client: Client,
    watches: Watches,
    discovery: Discovery,
    changed: Arc<Changed>,
    watched: HashMap<Arc<TargetKind>, WatchHandle>,
}

impl Targets {
    /// Watches none yet.
    #[must_use]
    pub fn new(
        operator: &Operator<Kinds>,
        changed: impl Fn(&Arc<TargetKind>, ObjectId<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self {
            client: operator.client.clone(),
            watches: operator.watches.clone(),
            discovery: operator.discovery.clone(),
            changed: Arc::new(changed),
            watched: HashMap::new(),
        }
    }

    /// From now on, watches the targets of these kinds of commands, and no others.
    pub fn follow(&mut self, kinds: &[Arc<CommandKind>]) {
        let wanted: HashSet<_> = kinds.iter().flat_map(|kind| kind.targets().iter().cloned()).collect();
        self.watched.retain(|kind, _| wanted.contains(kind));
        for kind in wanted {
            if !self.watched.contains_key(&kind) {
                let watch = self.watch(kind.clone());
                self.watched.insert(kind, watch);
            }
        }
    }

    /// The versions in which targets are watched instead of the wanted ones.
    #[must_use]
    pub fn substitutes(&self) -> HashMap<Arc<TargetKind>, ApiResource> {
        let substitute = |(kind, watch): (&Arc<TargetKind>, &WatchHandle)| {
            Some((kind.clone(), ApiResource::clone(&*watch.substitute()?)))
        };
        self.watched.iter().filter_map(substitute).collect()
    }

    fn watch(&self, kind: Arc<TargetKind>) -> WatchHandle {
        let changed = self.changed.clone();
        let watch = Watch::all(&self.client, &kind.resource)
            .called(format!("{} (as a target)", kind.resource.kind))
            .metadata_only()
            .in_any_version(&self.discovery);
        self.watches.watch_changes(watch, move |target: &PrunedObject| changed(&kind, ObjectId::of(target)))
    }
}

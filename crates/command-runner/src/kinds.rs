//! The watches of commands and of their targets follow the settings and the definitions that describe kinds.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use command_kinds::{CommandKind, Registry, TargetKind};
use command_runner::{
    Settings,
    command::{CommandRow, TargetId},
};
use kube::{Api, Client};
use operator_kit::run::Operator;
use operator_watch::{ObjectId, PrunedObject, ServedKinds, Watch, WatchHandle, WatchedKind, Watches};
use tokio::sync::watch;

use crate::memory::Memory;

/// The kinds that are carried out, now and after each change.
pub fn follow(
    operator: &Operator<Settings>,
    memory: Memory,
) -> watch::Receiver<Vec<WatchedKind<CommandRow>>> {
    let mut targets = Targets {
        client: operator.client.clone(),
        watches: operator.watches.clone(),
        served_kinds: operator.served_kinds.clone(),
        memory: memory.clone(),
        watched: HashMap::new(),
    };
    let registry = Registry::new(operator);
    memory.follow_definitions(registry.problem());
    registry.follow(move |kinds| {
        let kinds: Vec<_> = kinds.iter().filter(|kind| kind.run.is_some()).cloned().collect();
        targets.follow(&kinds);
        let watched = kinds.iter().filter_map(|kind| watched(kind, &memory)).collect();
        memory.follow(kinds);
        watched
    })
}

fn watched(kind: &Arc<CommandKind>, memory: &Memory) -> Option<WatchedKind<CommandRow>> {
    let (run, memory, of) = (kind.run.clone()?, memory.clone(), kind.clone());
    let trim = move |object: PrunedObject| {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let row = CommandRow::of(&of, &run, object);
        memory.came(&of.id, &uid, row.target_id());
        row
    };
    Some(WatchedKind {
        id: kind.id.clone(),
        resource: kind.resource.clone().into(),
        selector: kind.selector.clone(),
        is_metadata_only: false,
        trim: Arc::new(trim),
        fingerprint: kind.fingerprint.to_string(),
    })
}

/// The watches of targets, whose changes wake their commands. Only their metadata is read, and nothing is kept.
struct Targets {
    client: Client,
    watches: Watches,
    served_kinds: ServedKinds,
    memory: Memory,
    watched: HashMap<Arc<TargetKind>, WatchHandle>,
}

impl Targets {
    fn follow(&mut self, kinds: &[Arc<CommandKind>]) {
        let wanted: HashSet<_> = kinds.iter().flat_map(|kind| kind.targets().iter().cloned()).collect();
        self.watched.retain(|kind, _| wanted.contains(kind));
        for kind in wanted {
            if !self.watched.contains_key(&kind) {
                let handle = self.watch(&kind);
                self.watched.insert(kind, handle);
            }
        }
    }

    fn watch(&self, kind: &TargetKind) -> WatchHandle {
        let memory = self.memory.clone();
        let api = Api::all_with(self.client.clone(), &kind.resource);
        let watch = Watch::new(api, format!("{} (as a target)", kind.resource.kind))
            .metadata_only()
            .in_any_version(&self.served_kinds, kind.resource.clone());
        self.watches.watch_changes(watch, move |target: &PrunedObject| {
            let ObjectId { namespace, uid, .. } = ObjectId::of(target);
            memory.wake(&TargetId { namespace: namespace.into(), uid: uid.into() }, "");
        })
    }
}

//! The watches of commands and of their targets follow the settings and the definitions that describe kinds.

use std::sync::Arc;

use command_kinds::{CommandKind, Registry, Targets};
use command_runner::{
    Settings,
    command::{CommandRow, TargetId},
};
use operator_kit::run::Operator;
use operator_watch::{DynamicKind, ObjectId};
use tokio::sync::watch;

use crate::memory::Memory;

/// The kinds that are carried out, now and after each change. The changes of their targets wake their commands.
pub fn follow(
    operator: &Operator<Settings>,
    registry: Registry,
    memory: Memory,
) -> watch::Receiver<Vec<DynamicKind<CommandRow>>> {
    let woken = memory.clone();
    let mut targets = Targets::new(operator, move |_, ObjectId { namespace, name, uid }| {
        woken.wake(&TargetId { namespace: namespace.into(), name: name.into(), uid: uid.into() }, None);
    });
    registry.follow(move |kinds| {
        let kinds: Vec<_> = kinds.iter().filter(|kind| kind.run.is_some()).cloned().collect();
        targets.follow(&kinds);
        let watched = kinds.iter().filter_map(|kind| watched(kind, &memory)).collect();
        memory.follow(kinds);
        watched
    })
}

fn watched(kind: &Arc<CommandKind>, memory: &Memory) -> Option<DynamicKind<CommandRow>> {
    let (run, memory, of) = (kind.run.clone()?, memory.clone(), kind.clone());
    Some(kind.watched("", move |object| {
        let uid = object.metadata.uid.clone().unwrap_or_default();
        let row = CommandRow::of(&of, &run, object);
        if !memory.is_still_at_work(&uid, &row) {
            memory.came(&of.id, &uid, row.target_id());
        }
        row
    }))
}

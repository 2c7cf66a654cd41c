//! The glue of command-reaper.

use std::sync::Arc;

use catena_api::keys;
use command_reaper::{
    command::CommandRow,
    decide::{Action, decide},
    observed::Observed,
};
use operator_watch::{DynamicRow, WriteTarget};

use super::super::{
    content::{Answer, Server, Stored, metadata, pruned},
    process::{Memory, Process},
    sabotage::Sabotage,
    scope::Scope,
    settings::{Described, commands},
    write::{Purpose, Write},
};
use crate::{
    clock,
    server::operation::{Change, Preconditions},
};

/// A pass over a command.
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, command: &Stored) -> Vec<Write> {
    let Described { kind, expiry, .. } = commands(command.meta.key.kind);
    let mut row = CommandRow::of(pruned(command), kind.filter.as_ref(), expiry);
    if scope.has(Sabotage::ReapsDeclared) {
        row.declared_by = None;
    }
    row.is_kept &= !scope.has(Sabotage::OverlooksKept);
    let (uid, now) = (&command.meta.uid, clock::time(server.clock));
    let removed = process.memory.removed.get(&command.meta.key.name);
    let is_deleted = removed.is_some_and(|(removed, _)| removed == uid);
    // An hour is longer than any history.
    let came_back = removed.is_some_and(|(removed, spec)| removed != uid && *spec == row.spec);
    let write_target = Arc::new(WriteTarget::unwatched(kind.resource.clone()));
    let observed = Observed {
        command: Arc::new(DynamicRow {
            metadata: metadata(command),
            kind_id: kind.id.clone(),
            write_target,
            row,
        }),
        backoffs: process.backoffs(command),
        now,
        is_deleted,
        came_back: came_back && !scope.has(Sabotage::ForgetsDeletions),
    };
    match decide(&observed) {
        Action::Delete => {
            let preconditions = if scope.has(Sabotage::ReapsByName) {
                Preconditions::default()
            } else {
                Preconditions { uid: Some(uid.clone()), version: Some(command.meta.version) }
            };
            let key = command.meta.key.clone();
            let write = Write::delete(command, Purpose::Reap, key, preconditions, None);
            vec![Write { meant: Some(uid.clone()), ..write }]
        }
        Action::Keep => {
            let mark = Change::Annotation(keys::KEPT.into(), Some(uid.clone()));
            let preconditions = Preconditions::uid(uid);
            vec![Write::patch(command, Purpose::Keep, command.meta.key.clone(), preconditions, vec![mark])]
        }
        Action::Refuse(_) => {
            process.fails(command, "", None);
            Vec::new()
        }
        Action::Tell { .. } | Action::Wait(_) | Action::Settle => Vec::new(),
    }
}

/// Records an answer. Returns whether the write failed.
pub fn hears(memory: &mut Memory, write: &Write, answer: &Answer) -> bool {
    if write.purpose == Purpose::Keep {
        return !matches!(answer, Answer::Done(_));
    }
    // One that is already gone counts as deleted here.
    if !matches!(answer, Answer::Done(_) | Answer::NotFound) {
        return true;
    }
    let meta = &write.whose.meta;
    let Described { kind, expiry, .. } = commands(meta.key.kind);
    let spec = CommandRow::of(pruned(&write.whose), kind.filter.as_ref(), expiry).spec;
    memory.removed.insert(meta.key.name.clone(), (meta.uid.clone(), spec));
    false
}

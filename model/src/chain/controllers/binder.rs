//! The glue of command-binder.

use std::sync::Arc;

use catena_api::{command::BOUND, keys};
use command_binder::{
    command::{CommandRow, Finding},
    decide::{Action, decide},
    observed::{Observed, Target, TargetObject},
};
use operator_watch::{DynamicRow, WriteTarget};
use serde_json::json;

use super::super::{
    content::{Server, Stored, metadata, pruned},
    process::Process,
    sabotage::Sabotage,
    scope::Scope,
    settings::commands,
    write::{Purpose, Write},
};
use crate::{
    clock,
    metadata::resource,
    server::{
        object::{Key, Kind, Owner},
        operation::{Change, Preconditions},
    },
};

/// A pass over a command.
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, command: &Stored) -> Vec<Write> {
    let kind = &commands(command.meta.key.kind).kind;
    let row = CommandRow::of(kind, pruned(command));
    let backoffs = process.backoffs(command);
    let is_needed = backoffs.is_empty() && !command.meta.is_deleting;
    let target = match &row.finding {
        Finding::Target(to) if is_needed && row.proven_target(to, false).is_none() => {
            let key = Key { kind: Kind::Deployment, name: to.name.as_ref().into() };
            let live = server.get(&key).map(|live| TargetObject {
                uid: live.meta.uid.as_ref().into(),
                is_terminating: live.meta.is_deleting && !scope.has(Sabotage::BindsToTheDying),
                created: None,
            });
            let target_kind = (resource(Kind::Deployment), kube::discovery::Scope::Namespaced);
            Some(Target::Served { kind: target_kind, object: live })
        }
        _ => None,
    };
    let write_target = Arc::new(WriteTarget::unwatched(kind.resource.clone()));
    let action = decide(&Observed {
        command: Arc::new(DynamicRow {
            metadata: metadata(command),
            kind_id: kind.id.clone(),
            write_target,
            row,
        }),
        backoffs,
        now: clock::time(server.clock),
        target,
        refreshed: None,
        is_label_checked: false,
        can_report: Some(true),
    });
    let (key, uid) = (command.meta.key.clone(), &command.meta.uid);
    match action {
        Action::Bind(reference) => {
            let owner = Owner {
                key: Key { kind: Kind::Deployment, name: (&*reference.name).into() },
                uid: (&*reference.uid).into(),
                is_controller: reference.controller.unwrap_or_default(),
                blocks_deletion: reference.block_owner_deletion.unwrap_or_default(),
            };
            let preconditions = if scope.has(Sabotage::BindsByName) {
                Preconditions::default()
            } else {
                Preconditions { uid: Some(uid.clone()), version: Some(command.meta.version) }
            };
            let record = Change::Annotation(keys::BOUND_TO.into(), Some(owner.uid.clone()));
            let purpose = Purpose::Bind(owner.uid.clone());
            let changes = vec![Change::AddOwner(owner), record];
            let write = Write::patch(command, purpose, key, preconditions, changes);
            vec![Write { meant: Some(uid.clone()), ..write }]
        }
        Action::Report(condition) => {
            let status = json!({"conditions": [condition]});
            vec![Write::status(command, Purpose::Other, key, Preconditions::uid(uid), status, &[BOUND])]
        }
        // Each kind of the model has one version.
        Action::Refresh(_) | Action::Tell { .. } | Action::Wait(_) | Action::Settle => Vec::new(),
    }
}

//! A command that no process watches, for tests.

use std::sync::Arc;

use command_binder::{
    command::CommandRow,
    observed::{Observed, Target},
};
use command_kinds::CommandKind;
use operator_kit::run::Backoffs;
use operator_watch::{DynamicRow, PrunedObject, WriteTarget};

/// The object as a command of the kind.
pub fn command(kind: &Arc<CommandKind>, object: PrunedObject) -> DynamicRow<CommandRow> {
    let write_target = Arc::new(WriteTarget::unwatched(kind.resource.clone()));
    let (kind_id, metadata) = (kind.id.clone(), object.metadata.clone());
    DynamicRow { metadata, kind_id, write_target, row: CommandRow::of(kind, object) }
}

/// An observation at this time of a command that is reported by Events.
pub fn observed(command: DynamicRow<CommandRow>, target: Option<Target>, now: &str) -> Observed {
    Observed {
        command: Arc::new(command),
        backoffs: Backoffs::default(),
        now: now.parse().unwrap(),
        target,
        refreshed: None,
        is_label_checked: false,
        can_report: Some(false),
    }
}

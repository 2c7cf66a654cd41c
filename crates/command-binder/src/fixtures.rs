//! A command that no process watches, for tests.

use std::sync::Arc;

use command_binder::{
    command::CommandRow,
    observed::{Observed, Target},
};
use command_kinds::CommandKind;
use operator_kit::run::Backoffs;
use operator_watch::{DynamicRow, PrunedObject, Source, WriteTarget};

/// The object as a command of the kind.
pub fn command(kind: &Arc<CommandKind>, object: PrunedObject) -> DynamicRow<CommandRow> {
    let watched = WriteTarget::unwatched(kind.resource.clone());
    let source = Arc::new(Source { id: kind.id.clone(), watched });
    DynamicRow { metadata: object.metadata.clone(), source, row: CommandRow::of(kind, object) }
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

//! A command that no process watches.

use std::sync::Arc;

use command_binder::{command::CommandRow, kind::CommandKind};
use operator_kit::watch::{Source, TrimmedObject, Watched, WatchedResource};

/// The object as a command of the kind.
pub fn command(kind: &Arc<CommandKind>, object: TrimmedObject) -> Watched<CommandRow> {
    let watched = WatchedResource::unwatched(kind.resource.clone());
    let source = Arc::new(Source { id: kind.id.clone(), watched });
    Watched { metadata: object.metadata.clone(), source, row: CommandRow::of(kind, object) }
}

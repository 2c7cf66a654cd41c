//! The watched kinds follow the settings and the definitions that describe kinds.

use std::sync::Arc;

use command_kinds::{CommandKind, Registry};
use command_reaper::{Settings, command::CommandRow};
use operator_kit::run::Operator;
use operator_watch::WatchedKind;
use tokio::sync::watch;

/// The kinds, now and after each change.
pub fn follow(operator: &Operator<Settings>) -> watch::Receiver<Vec<WatchedKind<CommandRow>>> {
    let settings = operator.settings.clone();
    Registry::new(operator).follow(move |kinds| {
        let settings = settings.current();
        kinds.iter().filter_map(|kind| watched(kind, &settings)).collect()
    })
}

fn watched(kind: &Arc<CommandKind>, settings: &Settings) -> Option<WatchedKind<CommandRow>> {
    let reading = settings.reading(kind)?;
    let fingerprint = format!("{} {:?}", kind.fingerprint, reading.declared_by);
    let trim = Arc::new(move |object| CommandRow::of(object, &reading));
    Some(WatchedKind {
        id: kind.id.clone(),
        resource: kind.resource.clone().into(),
        selector: kind.selector.clone(),
        is_metadata_only: false,
        trim,
        fingerprint,
    })
}

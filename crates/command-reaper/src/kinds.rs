//! The watched kinds follow the settings and the definitions that describe kinds.

use command_kinds::Registry;
use command_reaper::{Settings, command::CommandRow};
use operator_kit::run::Operator;
use operator_watch::DynamicKind;
use tokio::sync::watch;

/// The kinds, now and after each change.
pub fn follow(operator: &Operator<Settings>) -> watch::Receiver<Vec<DynamicKind<CommandRow>>> {
    let settings = operator.settings.clone();
    Registry::new(operator, "deleted").follow(move |kinds| {
        let settings = settings.current();
        let watched = kinds.iter().filter_map(|kind| {
            let expiry = settings.expiry(kind)?;
            let marks = format!("{:?}", expiry.declared_by);
            let filter = kind.filter.clone();
            Some(kind.watched(&marks, move |object| CommandRow::of(object, filter.as_ref(), &expiry)))
        });
        watched.collect()
    })
}

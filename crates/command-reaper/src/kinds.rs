//! The watched kinds follow the settings.

use std::sync::Arc;

use command_reaper::{Settings, command::CommandRow, settings::Kind};
use operator_kit::run::LiveSettings;
use operator_watch::WatchedKind;
use tokio::sync::watch;

/// The configured kinds, now and after each change.
pub fn follow(mut settings: LiveSettings<Settings>) -> watch::Receiver<Vec<WatchedKind<CommandRow>>> {
    let (sender, receiver) = watch::channel(watched(&settings.current()));
    tokio::spawn(async move {
        while !sender.is_closed() {
            settings.changed().await;
            sender.send_replace(watched(&settings.current()));
        }
    });
    receiver
}

fn watched(settings: &Settings) -> Vec<WatchedKind<CommandRow>> {
    settings.kinds.iter().cloned().map(watch).collect()
}

fn watch(kind: Kind) -> WatchedKind<CommandRow> {
    let Kind { id, resource, selector, reading, fingerprint } = kind;
    let trim = Arc::new(move |object| CommandRow::of(object, &reading));
    WatchedKind { id, resource: resource.into(), selector, is_metadata_only: false, trim, fingerprint }
}

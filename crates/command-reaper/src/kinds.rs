//! The watched kinds follow the settings.

use operator_kit::watch::WatchedKind;
use tokio::sync::watch;

use crate::{
    command::Command,
    settings::{Kind, Settings},
};

/// The kinds as they are configured, now and after each change.
pub fn follow(
    mut settings: operator_kit::run::Settings<Settings>,
) -> watch::Receiver<Vec<WatchedKind<Command>>> {
    let (sender, receiver) = watch::channel(watched(&settings.current()));
    tokio::spawn(async move {
        while !sender.is_closed() {
            settings.changed().await;
            sender.send_replace(watched(&settings.current()));
        }
    });
    receiver
}

fn watched(settings: &Settings) -> Vec<WatchedKind<Command>> {
    settings.kinds.iter().cloned().map(watch).collect()
}

fn watch(kind: Kind) -> WatchedKind<Command> {
    let Kind { id, resource, selector, reading, fingerprint } = kind;
    WatchedKind::new(id, resource, fingerprint, move |object| Command::of(object, &reading))
        .labelled(selector)
}

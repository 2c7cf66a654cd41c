//! Holds configured objects of any kind when they are deleted, until their backup is proven.

mod act;
mod backup;
mod backup_watches;
mod decide;
mod drain;
mod error;
mod finalizer;
mod force_release;
mod held;
mod kinds;
mod live;
mod manifest;
mod memory;
mod metadata;
mod namespaces;
mod observe;
mod settings;
mod status;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use operator_kit::run::{Arguments, Operator, Triggers};
use tokio::sync::watch;

use crate::{
    act::Actor, backup_watches::BackupWatches, held::HeldObjects, memory::Refusals, namespaces::Namespaces,
    observe::Backups, settings::Settings,
};

/// Holds configured objects of any kind when they are deleted, until their backup is proven.
#[derive(Parser)]
#[command(version, after_help = "Example: backup-controller --settings settings.yaml --log-format text")]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Take the finalizer from every object, before the controller is uninstalled
    #[command(
        after_help = "Example: backup-controller --settings settings.yaml drain --deployment backup-controller"
    )]
    Drain(drain::Options),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let Command { arguments, task } = Command::parse();
    match task {
        Some(Task::Drain(options)) => drain::run(arguments, &options).await,
        None => control(arguments).await.map(|()| ExitCode::SUCCESS),
    }
}

async fn control(arguments: Arguments) -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), arguments).await?;
    let triggers = Triggers::default();
    let watches = BackupWatches::new(&operator, triggers.clone());
    let namespaces = Namespaces::new(&operator, triggers.clone());
    let held = HeldObjects::new();
    operator.add_metrics(|registry| held.register(registry));

    let (wanted, kinds) = watch::channel(Vec::new());
    let follow = kinds::follow(operator.settings(), wanted, watches.clone(), namespaces.clone());
    tokio::spawn(follow);

    let refusals = Refusals::default();
    let actor = Actor::new(
        operator.client(),
        operator.writer(),
        operator.served_kinds(),
        operator.events(),
        watches,
        refusals.clone(),
        held,
    );
    let backups = Backups::new(
        operator.client(),
        operator.served_kinds(),
        operator.settings(),
        namespaces,
        refusals,
        actor,
    );
    operator.run_each(backups, kinds, triggers).await
}

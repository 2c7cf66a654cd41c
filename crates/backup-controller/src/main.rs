//! Holds configured objects of any kind when they are deleted, until their backup is proven.

mod act;
mod controller;
mod drain;
#[cfg(test)]
mod fixtures;
mod memory;
mod metrics;
#[cfg(test)]
mod mock_server;
mod observe;

use std::process::ExitCode;

use backup_controller::Settings;
use clap::{Parser, Subcommand};
use operator_kit::run::{Arguments, Identity, Operator, Triggers};
use tokio::sync::watch;

use crate::{
    act::Executor,
    controller::ProtectedObjects,
    memory::Memory,
    metrics::HeldMetrics,
    observe::{BackupWatches, Followers, Namespaces, Observer},
};

const IDENTITY: Identity = Identity {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Holds configured objects of any kind when they are deleted, until their backup is proven",
    prefix: "catena",
};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Subcommand)]
enum Task {
    /// Remove the finalizer from every object, before the controller is uninstalled
    #[command(
        after_help = "Example: backup-controller --settings settings.yaml drain --deployment backup-controller"
    )]
    Drain(drain::Options),
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<ExitCode> {
    let Cli { arguments, task } = IDENTITY.parse();
    match task {
        Some(Task::Drain(options)) => drain::run(arguments, &options).await,
        None => control(arguments).await.map(|()| ExitCode::SUCCESS),
    }
}

async fn control(arguments: Arguments) -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(IDENTITY, arguments).await?;
    let triggers = Triggers::default();
    let client = operator.client.clone();
    let backups = BackupWatches::new(client.clone(), operator.watches.clone(), triggers.clone());
    let namespaces = Namespaces::new(client.clone(), operator.watches.clone(), triggers.clone());
    let (wanted, kinds) = watch::channel(Vec::new());
    let metrics = HeldMetrics::default();
    operator.add_metrics(|registry| metrics.register(registry));
    let followers = Followers {
        backups: backups.clone(),
        namespaces: namespaces.clone(),
        metrics: metrics.clone(),
        triggers: triggers.clone(),
        events: operator.events.clone(),
        config_map: operator.config_map.clone(),
    };
    tokio::spawn(followers.follow(operator.settings.clone(), wanted));

    let memory = Memory::default();
    let executor = Executor::new(operator.writer.clone(), operator.events.clone(), memory.clone(), metrics);
    let observer = Observer::new(client, operator.settings.clone(), namespaces, backups, memory);
    operator.run_each(ProtectedObjects { observer, executor }, kinds, triggers).await
}

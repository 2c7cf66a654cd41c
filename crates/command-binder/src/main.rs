//! Finds the target of each command, of whatever kind, and makes it the command's owner.

mod act;
mod catalog;
mod discovery;
mod error;
mod memory;
mod observe;
mod schemas;
mod waiting;

use clap::Parser;
use command_binder::Settings;
use operator_kit::run::{Arguments, Operator, Triggers};
use tokio::sync::watch;

use crate::{act::Hands, catalog::Catalog, memory::Memory, observe::Commands, waiting::Waiting};

/// Finds the target of each command, of whatever kind, and makes it the command's owner.
#[derive(Parser)]
#[command(version, after_help = "Example: command-binder --settings settings.yaml --log-format text")]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Command::parse().arguments).await?;
    let (waiting, triggers) = (Waiting::default(), Triggers::default());
    let catalog = Catalog::new(&operator, waiting.clone(), triggers.clone());
    let (sender, kinds) = watch::channel(Vec::new());
    // The operator ends when this does: nobody else holds the sender.
    tokio::spawn(catalog.follow(sender));
    let memory = Memory::default();
    let hands = Hands::new(operator.writer(), operator.events(), memory.clone());
    let commands = Commands::new(operator.client(), operator.served_kinds(), waiting, memory, hands);
    operator.run_each(commands, kinds, triggers).await
}

//! Deletes finished commands after their TTL, of any number of configured kinds.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod kinds;
mod memory;
mod observe;

use clap::Parser;
use command_reaper::Settings;
use operator_kit::run::{Arguments, Operator, Triggers};

use crate::{act::Executor, controller::Commands, memory::Memory, observe::Observer};

/// Deletes finished commands when their TTL has expired, and keeps those that something would create again.
#[derive(Parser)]
#[command(version, after_help = "Example: command-reaper --settings settings.yaml --log-format text")]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Cli::parse().arguments).await?;
    let memory = Memory::default();
    let executor = Executor::new(operator.writer(), operator.events(), memory.clone());
    let commands = Commands { observer: Observer { memory }, executor };
    let kinds = kinds::follow(operator.settings());
    operator.run_each(commands, kinds, Triggers::default()).await
}

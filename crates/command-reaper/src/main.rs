//! Deletes finished commands after their TTL, of any number of configured kinds.

mod act;
mod command;
mod decide;
mod error;
mod kinds;
mod marks;
mod observe;
mod removed;
mod settings;

use clap::Parser;
use operator_kit::run::{Arguments, Operator, Triggers};

use crate::{observe::Commands, settings::Settings};

/// Deletes finished commands when their time to live is over, and keeps those that something would create again.
#[derive(Parser)]
#[command(version, after_help = "Example: command-reaper --settings settings.yaml --log-format text")]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Command::parse().arguments).await?;
    let commands = Commands::new(operator.writer(), operator.events());
    let kinds = kinds::follow(operator.settings());
    operator.run_each(commands, kinds, Triggers::default()).await
}

//! Finds the target of each command, of any kind, and makes it the command's owner.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod observe;

use clap::Parser;
use command_binder::Settings;
use operator_kit::run::{Arguments, Operator, Triggers};
use tokio::sync::watch;

use crate::{
    act::Executor,
    controller::Commands,
    observe::{Observer, Waiting, catalog::Catalog},
};

/// Finds the target of each command, of any kind, and makes it the command's owner.
#[derive(Parser)]
#[command(version, after_help = "Example: command-binder --settings settings.yaml --log-format text")]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Cli::parse().arguments).await?;
    let (waiting, triggers) = (Waiting::default(), Triggers::default());
    let executor = Executor::new(operator.writer(), operator.events());
    let observer = Observer::new(operator.client(), operator.served_kinds(), waiting.clone());
    let reporter = executor.clone();
    let on_malformed = Box::new(move |definitions: &[_]| reporter.report_malformed(definitions));
    let catalog = Catalog::new(&operator, waiting, triggers.clone(), on_malformed);
    let (sender, kinds) = watch::channel(Vec::new());
    // The operator ends when this does: nobody else holds the sender.
    tokio::spawn(catalog.follow(sender));
    operator.run_each(Commands { observer, executor }, kinds, triggers).await
}

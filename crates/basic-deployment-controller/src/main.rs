//! Keeps one child in line with each `BasicDeployment`, and carries out its commands.

mod act;
mod child;
mod children;
mod command;
mod command_status;
mod commands;
mod contest;
mod deadlines;
mod decide;
mod desired;
mod error;
mod history;
mod memory;
mod observe;
mod revision;
mod settings;
mod status;

use std::sync::Arc;

use catena_api::BasicDeployment;
use clap::Parser;
use operator_kit::run::{Arguments, Operator, Queue};

use crate::{
    act::Writes, children::Children, commands::Commands, deadlines::Deadlines, history::History,
    observe::Deployments, settings::Settings,
};

/// Keeps one child (by default a `BasicReplicaSet`) in line with each `BasicDeployment`.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: basic-deployment-controller --settings settings.yaml --log-format text"
)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Command::parse().arguments).await?;
    let queue = Queue::<BasicDeployment>::default();
    let (client, watches) = (operator.client(), operator.watches());
    let commands = Arc::new(Commands::new(client.clone(), &watches, &queue.trigger()));
    let history = History::new(client.clone(), &watches, queue.trigger());
    let children = Children::new(client.clone(), watches, queue.trigger());
    children.of(&operator.settings().current().child);
    let writes = Writes::new(client.clone(), operator.writer(), history.place(), &commands);
    let deadlines = Deadlines::new(commands.clone(), operator.writer());
    let deployments = Deployments::new(client, operator.settings(), children, history, commands, writes);
    Box::pin(operator.run_beside(deployments, queue, deadlines.keep())).await
}

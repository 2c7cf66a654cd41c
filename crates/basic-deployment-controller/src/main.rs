//! Keeps one child in line with each `BasicDeployment`.

mod act;
mod child;
mod children;
mod decide;
mod error;
mod observe;
mod settings;
mod status;

use catena_api::BasicDeployment;
use clap::Parser;
use operator_kit::{Arguments, Operator, Queue};

use crate::{act::Writes, children::Children, observe::Deployments, settings::Settings};

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
    let children = Children::new(operator.client(), operator.watches(), queue.trigger());
    children.of(&operator.settings().current().child);
    let deployments =
        Deployments::new(operator.client(), operator.settings(), children, Writes::new(operator.writer()));
    operator.run(deployments, queue).await
}

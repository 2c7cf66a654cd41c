//! Finds the target of each command, of any kind, and makes it the command's owner.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod observe;

use command_binder::Settings;
use operator_kit::run::{Identity, Operator, Triggers};
use tokio::sync::watch;

use crate::{
    act::Executor,
    controller::Commands,
    observe::{Observer, Waiting, catalog::Catalog},
};

const IDENTITY: Identity = Identity {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Finds the target of each command, of any kind, and makes it the command's owner",
    prefix: "catena",
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(IDENTITY, IDENTITY.parse()).await?;
    let (waiting, triggers) = (Waiting::default(), Triggers::default());
    let executor = Executor::new(operator.writer.clone(), operator.events.clone());
    let observer = Observer::new(operator.client.clone(), operator.discovery.clone(), waiting.clone());
    let catalog = Catalog::new(&operator, waiting, triggers.clone());
    let (sender, kinds) = watch::channel(Vec::new());
    // The operator ends when this does: nobody else holds the sender.
    tokio::spawn(catalog.follow(sender));
    operator.run_each(Commands { observer, executor }, kinds, triggers).await
}

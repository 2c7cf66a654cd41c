//! Finds the target of each command, of any kind, and makes it the command's owner.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod observe;

use command_binder::Settings;
use operator_kit::run::{Arguments, Operator, Triggers};
use tokio::sync::watch;

use crate::{
    act::Executor,
    controller::Commands,
    observe::{Observer, Waiting, catalog::Catalog},
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let about = "Finds the target of each command, of any kind, and makes it the command's owner";
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let arguments = Arguments::parse(name, version, about);
    let operator = Operator::<Settings>::start(name, arguments).await?;
    let (waiting, triggers) = (Waiting::default(), Triggers::default());
    let executor = Executor::new(operator.writer(), operator.events());
    let observer = Observer::new(operator.client(), operator.served_kinds(), waiting.clone());
    let catalog = Catalog::new(&operator, waiting, triggers.clone());
    let (sender, kinds) = watch::channel(Vec::new());
    // The operator ends when this does: nobody else holds the sender.
    tokio::spawn(catalog.follow(sender));
    operator.run_each(Commands { observer, executor }, kinds, triggers).await
}

//! Carries out commands of any kind, each once and in order, by one patch of its target.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod kinds;
mod memory;
mod observe;

use command_kinds::Registry;
use command_runner::Settings;
use operator_kit::run::{Identity, Operator, Triggers};

use crate::{act::Executor, controller::Commands, memory::Memory, observe::Observer};

const IDENTITY: Identity = Identity {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Carries out commands of any kind, each once and in order, by one patch of its target",
    prefix: "catena",
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(IDENTITY, IDENTITY.parse()).await?;
    let triggers = Triggers::default();
    let registry = Registry::new(&operator, "carried out");
    let memory = Memory::new(triggers.clone(), registry.problem());
    let executor = Executor::new(operator.writer.clone(), operator.events.clone(), memory.clone());
    let observer = Observer::new(operator.client.clone(), operator.discovery.clone(), memory.clone());
    let kinds = kinds::follow(&operator, registry, memory.clone());
    operator.run_each(Commands { observer, executor, memory }, kinds, triggers).await
}

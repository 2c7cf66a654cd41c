//! Carries out commands of any kind, each once and in order, by one patch of its target.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod kinds;
mod memory;
mod observe;

use command_runner::Settings;
use operator_kit::run::{Arguments, Operator, Triggers};

use crate::{act::Executor, controller::Commands, memory::Memory, observe::Observer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let about = "Carries out commands of any kind, each once and in order, by one patch of its target";
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let arguments = Arguments::parse(name, version, about);
    let operator = Operator::<Settings>::start(name, arguments).await?;
    let triggers = Triggers::default();
    let memory = Memory::new(triggers.clone());
    let executor = Executor::new(operator.writer(), operator.events(), memory.clone());
    let observer = Observer::new(operator.client(), operator.served_kinds(), memory.clone());
    let kinds = kinds::follow(&operator, memory.clone());
    operator.run_each(Commands { observer, executor, memory }, kinds, triggers).await
}

//! Deletes finished commands after their TTL, of any number of configured kinds.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod kinds;
mod memory;
mod observe;

use command_reaper::Settings;
use operator_kit::run::{Arguments, Operator, Triggers};

use crate::{act::Executor, controller::Commands, memory::Memory, observe::Observer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let about = "Deletes finished commands when their TTL has expired, and keeps those that something would create again";
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let arguments = Arguments::parse(name, version, about);
    let operator = Operator::<Settings>::start(name, arguments).await?;
    let memory = Memory::default();
    let executor = Executor::new(operator.writer(), operator.events(), memory.clone());
    let commands = Commands { observer: Observer { memory }, executor };
    let kinds = kinds::follow(&operator);
    operator.run_each(commands, kinds, Triggers::default()).await
}

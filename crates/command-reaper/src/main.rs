//! Deletes finished commands after their TTL, of any number of configured kinds.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod kinds;
mod memory;
mod observe;

use command_reaper::Settings;
use operator_kit::run::{Identity, Operator, Triggers};

use crate::{act::Executor, controller::Commands, memory::Memory, observe::Observer};

const IDENTITY: Identity = Identity {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Deletes finished commands when their TTL has expired, and keeps those that something would create again",
    prefix: "catena",
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(IDENTITY, IDENTITY.parse()).await?;
    let memory = Memory::default();
    let executor = Executor::new(operator.writer.clone(), operator.events.clone(), memory.clone());
    let commands = Commands { observer: Observer { memory }, executor };
    let kinds = kinds::follow(&operator);
    operator.run_each(commands, kinds, Triggers::default()).await
}

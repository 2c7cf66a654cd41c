//! Keeps one child in line with each `BasicDeployment`.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod memory;
mod observe;

use basic_deployment_controller::Settings;
use operator_kit::run::{Identity, Operator, Queue};

use crate::{act::Executor, controller::Deployments, memory::Memory, observe::Observer};

const IDENTITY: Identity = Identity {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Keeps one child (by default a `BasicReplicaSet`) in line with each `BasicDeployment`",
    prefix: "catena",
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(IDENTITY, IDENTITY.parse()).await?;
    let queue = Queue::default();
    let memory = Memory::default();
    let (settings, watches) = (operator.settings.clone(), operator.watches.clone());
    let (client, discovery) = (operator.client.clone(), operator.discovery.clone());
    let observer = Observer::new(client, settings, discovery, watches, &queue, memory.clone());
    let executor = Executor::new(operator.writer.clone(), observer.revisions(), memory);
    let (events, settings) = (operator.events.clone(), operator.settings.clone());
    let deployments = Deployments { observer, executor, events, settings };
    operator.run(deployments, queue).await
}

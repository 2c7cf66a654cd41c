//! Keeps one child in line with each `BasicDeployment`.

mod act;
mod controller;
#[cfg(test)]
mod fixtures;
mod memory;
mod observe;

use basic_deployment_controller::Settings;
use operator_kit::run::{Arguments, Operator, Queue};

use crate::{act::Executor, controller::Deployments, memory::Memory, observe::Observer};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let about = "Keeps one child (by default a `BasicReplicaSet`) in line with each `BasicDeployment`";
    let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
    let arguments = Arguments::parse(name, version, about);
    let operator = Operator::<Settings>::start(name, arguments).await?;
    let queue = Queue::default();
    let memory = Memory::default();
    let (settings, watches) = (operator.settings(), operator.watches());
    let (client, served_kinds) = (operator.client(), operator.served_kinds());
    let observer = Observer::new(client, settings, served_kinds, watches, &queue, memory.clone());
    let executor = Executor::new(operator.writer(), observer.revisions(), memory);
    let (events, settings) = (operator.events(), operator.settings());
    let deployments = Deployments { observer, executor, events, settings };
    operator.run(deployments, queue).await
}

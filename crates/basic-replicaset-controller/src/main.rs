//! Keeps `replicas` active pods of the rendered template for each `BasicReplicaSet`.

mod act;
mod adoption;
mod decide;
mod error;
mod observe;
mod pod;
mod settings;
mod status;

use catena_api::{BasicReplicaSet, keys};
use clap::Parser;
use kube::Api;
use operator_kit::{
    run::{Arguments, Operator, Queue},
    watch::Watch,
};

use crate::{act::Pods, observe::ReplicaSets, pod::PodRow, settings::Settings};

/// Keeps the pods of `BasicReplicaSets` running, and replaces them within a budget when their template changes.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: basic-replicaset-controller --settings settings.yaml --log-format text"
)]
struct Command {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Command::parse().arguments).await?;
    let queue = Queue::<BasicReplicaSet>::default();
    let trigger = queue.trigger();
    let watch = Watch::new(Api::all(operator.client()), "Pod").labelled(keys::REPLICA_SET_UID);
    let pods = operator.watches().cache(watch, PodRow::of, move |pod| {
        if let Some(owner) = &pod.owner {
            trigger.notify(&pod.namespace, &owner.name);
        }
    });
    let pods = Pods::new(operator.client(), operator.writer(), pods);
    let sets = ReplicaSets::new(operator.settings(), pods);
    operator.run(sets, queue).await
}

//! Keeps `replicas` active pods of the rendered template for each `BasicReplicaSet`.

mod act;
mod controller;
mod memory;
mod observe;
mod revisions;

use basic_replicaset_controller::{Settings, interner::Interner, pod::PodRow};
use catena_api::{BasicReplicaSet, keys};
use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, discovery::ApiResource};
use operator_kit::{
    run::{Arguments, Operator, Queue},
    watch::{Watch, WatchedResource},
};

use crate::{
    act::Executor, controller::ReplicaSets, memory::Memory, observe::Observer, revisions::Revisions,
};

/// Keeps the pods of `BasicReplicaSets` running, and replaces them within a budget when their template changes.
#[derive(Parser)]
#[command(
    version,
    after_help = "Example: basic-replicaset-controller --settings settings.yaml --log-format text"
)]
struct Cli {
    #[command(flatten)]
    arguments: Arguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(env!("CARGO_PKG_NAME"), Cli::parse().arguments).await?;
    let queue = Queue::<BasicReplicaSet>::default();
    let trigger = queue.trigger();
    let watch = Watch::new(Api::all(operator.client()), "Pod").labelled(keys::REPLICA_SET_UID);
    let shared = Interner::default();
    let trim = move |pod| PodRow::of(pod, &shared);
    let pods = operator.watches().cache(watch, trim, move |pod: &PodRow| {
        if let Some(owner) = &pod.owner {
            trigger.notify(&pod.namespace, &owner.name);
        }
    });
    let memory = Memory::default();
    let revisions = Revisions::new(operator.settings());
    let executor = Executor {
        writer: operator.writer(),
        memory: memory.clone(),
        revisions: revisions.clone(),
        pods: WatchedResource::new(ApiResource::erase::<Pod>(&()), pods.watch().seen()),
    };
    let observer = Observer { client: operator.client(), pods, memory, revisions };
    operator.run(ReplicaSets { observer, executor }, queue).await
}

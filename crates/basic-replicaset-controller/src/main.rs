//! Keeps `replicas` active pods of the rendered template for each `BasicReplicaSet`.

mod act;
mod controller;
mod memory;
mod observe;
mod revisions;

use basic_replicaset_controller::{Settings, interner::Interner, pod::PodRow};
use catena_api::keys;
use k8s_openapi::api::core::v1::Pod;
use operator_kit::run::{Identity, Operator, Queue};
use operator_watch::{Watch, WriteTarget};

use crate::{
    act::Executor, controller::ReplicaSets, memory::Memory, observe::Observer, revisions::Revisions,
};

const IDENTITY: Identity = Identity {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    about: "Keeps the pods of `BasicReplicaSets` running, and replaces them within a budget when their template changes",
    prefix: "catena",
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let operator = Operator::<Settings>::start(IDENTITY, IDENTITY.parse()).await?;
    let queue = Queue::default();
    let requests = queue.clone();
    let watch = Watch::all(&operator.client, &()).labelled(keys::REPLICA_SET_UID);
    let shared = Interner::default();
    let prune = move |pod| PodRow::of(pod, &shared);
    let pods = operator.watches.cache(watch, prune, move |pod: &PodRow| {
        if let Some(owner) = &pod.owner {
            requests.notify(&pod.namespace, &owner.name);
        }
    });
    let memory = Memory::default();
    let revisions = Revisions::new(operator.settings.clone());
    let executor = Executor {
        writer: operator.writer.clone(),
        memory: memory.clone(),
        revisions: revisions.clone(),
        pods: WriteTarget::of::<Pod>(pods.watch().seen_version()),
    };
    let observer = Observer { client: operator.client.clone(), pods, memory, revisions };
    operator.run(ReplicaSets { observer, executor }, queue).await
}

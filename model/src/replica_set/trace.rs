//! A history as lines for people.

use super::{
    content::{Status, Stored, phase},
    event::Event,
    process::Write,
    world::World,
};
use crate::server::operation::Operation;

/// An event, with the pods that exist before it.
pub fn line(world: &World, event: &Event) -> String {
    format!("{:<70} {}", told(world, event), pods(world))
}

fn told(world: &World, event: &Event) -> String {
    match event {
        Event::Write(at, fate) => {
            let write = world.processes[*at].plan.front().map(request).unwrap_or_default();
            format!("process {at} sends: {write} ({fate:?})")
        }
        Event::Pass { process, sets, pods } => {
            format!("process {process} sees {sets} events of sets and {pods} of pods, and decides")
        }
        Event::Report(key, phase) => format!("{} is {phase:?}", key.name),
        Event::Gone(key) => format!("{} is gone", key.name),
        event => format!("{event:?}"),
    }
}

fn request(write: &Write) -> String {
    let name = &write.operation.key().name;
    match &write.operation {
        Operation::Create(_) => format!("create {name}"),
        Operation::Get(_) => format!("get {name}"),
        Operation::Patch { .. } => format!("{} {name}", write.step),
        Operation::PatchStatus { status: Status::Set(told), .. } => {
            let reason = told.0.conditions.first().map_or("", |condition| &condition.reason);
            format!("status {reason}, {} active of {}", told.0.active, told.0.replicas)
        }
        Operation::PatchStatus { .. } => format!("status of {name}"),
        Operation::Delete { .. } => format!("delete {name}"),
    }
}

fn pods(world: &World) -> String {
    let pod = |pod: &Stored| {
        let phase = phase(pod).map_or_else(|| "Starting".into(), |phase| format!("{phase:?}"));
        let going = if pod.meta.is_deleting { ", going" } else { "" };
        format!("[{} {phase}{going}]", pod.meta.key.name)
    };
    world.pods().map(pod).collect()
}

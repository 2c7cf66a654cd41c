//! A history of the chain as lines for people.

use super::{
    content::{Operation, Stored},
    event::Event,
    world::World,
    write::Write,
};

/// An event, with the objects that exist before it.
pub fn line(world: &World, event: &Event) -> String {
    let objects: String = world.server.objects().map(object).collect();
    format!("{:<72} {objects}", told(world, event))
}

fn told(world: &World, event: &Event) -> String {
    let who = |at: usize| format!("{:?}", world.processes[at].controller);
    match event {
        Event::Pass(at, key, counts) => {
            format!("{} sees {counts:?}, and decides about {}", who(*at), key.name)
        }
        Event::Write(at, fate) => {
            let write = world.processes[*at].plan.front().map(request).unwrap_or_default();
            format!("{} sends: {write} ({fate:?})", who(*at))
        }
        Event::Retry(at, uid) => format!("{} retries {uid}", who(*at)),
        Event::Crash(at) => format!("{} crashes", who(*at)),
        Event::LeaveBehind(at) => {
            let write = world.processes[*at].plan.front().map(request).unwrap_or_default();
            format!("{} crashes, and leaves behind: {write}", who(*at))
        }
        Event::Collect(operation) => format!("collector: {} {}", verb(operation), operation.key().name),
        event => format!("{event:?}"),
    }
}

fn request(write: &Write) -> String {
    let key = write.operation.key();
    let purpose = format!("{:?}", write.purpose);
    let purpose = purpose.split('(').next().unwrap_or_default();
    format!("{} {:?} {} ({purpose})", verb(&write.operation), key.kind, key.name)
}

fn verb(operation: &Operation) -> &'static str {
    match operation {
        Operation::Create(_) => "create",
        Operation::Get(_) => "get",
        Operation::Patch { .. } => "patch",
        Operation::PatchStatus { .. } => "status of",
        Operation::Delete { .. } => "delete",
    }
}

fn object(object: &Stored) -> String {
    let going = if object.meta.is_deleting { ", going" } else { "" };
    format!("[{:?} {} g{}{going}]", object.meta.key.kind, object.meta.key.name, object.meta.generation)
}

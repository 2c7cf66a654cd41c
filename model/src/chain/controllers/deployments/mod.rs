//! The glue of basic-deployment-controller.

mod act;
mod observe;

pub use observe::rendered;

use basic_deployment_controller::{
    child::{Child, projection},
    decide::{Action, decide},
};

use super::super::{
    content::{Answer, Operation, Server, Stored, pruned, settings_of},
    process::{Memory, Process},
    scope::Scope,
    write::{Purpose, Write},
};

/// A pass over a `BasicDeployment`.
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, deployment: &Stored) -> Vec<Write> {
    let Some(observed) = observe::observe(process, server, scope, deployment) else {
        process.fails(deployment, "", None);
        return Vec::new();
    };
    let action = decide(&observed);
    if matches!(action, Action::Refuse(_) | Action::RefuseFormer(_)) {
        process.fails(deployment, action.step(), None);
    }
    act::writes(scope, deployment, &observed, action)
}

/// Records an answer. Returns whether the write failed.
pub fn hears(memory: &mut Memory, write: &Write, answer: &Answer, clock: u8) -> bool {
    match (&write.purpose, answer) {
        // The watch will show it.
        (Purpose::Record, Answer::AlreadyExists) => {}
        (Purpose::Apply(hash, wanted), Answer::Done(child)) => {
            let live = Child::of(pruned(child), settings_of(child.meta.key.kind));
            let seen = projection(wanted.value(), &live.object);
            memory.applied = Some((hash.clone(), seen.into()));
            let replicas = live.object["spec"]["replicas"].as_i64().and_then(|given| given.try_into().ok());
            memory.replicas.insert(child.meta.uid.clone(), replicas.unwrap_or_default());
        }
        (Purpose::Scale(replicas), Answer::Done(child)) => {
            memory.replicas.insert(child.meta.uid.clone(), *replicas);
        }
        (Purpose::Status, Answer::Done(_)) => memory.written = Some(clock),
        // An object that is gone need not be deleted.
        (Purpose::Other, Answer::NotFound | Answer::Conflict) if is_delete(write) => {}
        (_, answer) => return !matches!(answer, Answer::Done(_)),
    }
    false
}

fn is_delete(write: &Write) -> bool {
    matches!(write.operation, Operation::Delete { .. })
}

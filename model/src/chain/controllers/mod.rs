//! Each controller with its glue around its own `decide`.

mod backups;
mod binder;
mod deployments;
mod reaper;

use super::{
    content::{Answer, Server, Stored},
    controller::Controller,
    process::Process,
    scope::Scope,
    write::Write,
};

/// A pass over an object: the writes of the decided step.
#[must_use]
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, object: &Stored) -> Vec<Write> {
    match process.controller {
        Controller::Deployments => deployments::pass(process, server, scope, object),
        Controller::Binder => binder::pass(process, server, scope, object),
        Controller::Reaper => reaper::pass(process, server, scope, object),
        Controller::Backups => backups::pass(process, server, scope, object),
    }
}

/// Records the answer to a write. Returns whether the write failed.
#[must_use]
pub fn hears(process: &mut Process, write: &Write, answer: &Answer, clock: u8) -> bool {
    match process.controller {
        Controller::Deployments => deployments::hears(&mut process.memory.deployments, write, answer, clock),
        Controller::Binder => !matches!(answer, Answer::Done(_)),
        Controller::Reaper => reaper::hears(&mut process.memory.reaper, write, answer),
        Controller::Backups => backups::hears(&mut process.memory.backups, write, answer),
    }
}

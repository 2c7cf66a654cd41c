//! The glue of command-runner.

use std::sync::Arc;

use catena_api::command::RecentCommands;
use command_runner::{
    command::{Command, CommandRow, REPORTED, order},
    decide::{
        Action, RUN, decide,
        judge::{State, judge},
    },
    observed::{Look, Observed, Target},
};
use operator_kit::run::Attempt;
use operator_watch::{Source, Watched, WatchedResource};
use serde_json::json;

use super::super::{
    content::{Answer, Object, Server, Stored, metadata, texts, trimmed, whole},
    process::Process,
    sabotage::Sabotage,
    scope::Scope,
    settings::CARRIED_OUT,
    world::deployment_key,
    write::{Purpose, Write},
};
use crate::{
    clock,
    server::operation::{Change, Preconditions},
};

/// A pass over a command.
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, command: &Stored) -> Vec<Write> {
    let own = Arc::new(row_of(command));
    let is_of_target = |other: &Command| {
        let target = own.row.target_id();
        target.is_some() && other.row.target_id() == target
    };
    let all = process.cache(command.meta.key.kind).rows().map(|row| Arc::new(row_of(row)));
    let mut line: Vec<_> = all.filter(|other| is_of_target(other)).collect();
    line.sort_by(|one, other| order(one, other));
    if scope.has(Sabotage::TakesNoTurns) {
        line = vec![own.clone()];
    }
    let mut observed = Observed {
        command: own.clone(),
        attempt: process.attempt(command),
        now: clock::time(server.clock),
        line,
        unknown: None,
        target: Look::None,
        is_confirmed: false,
        takes_status: Some(true),
        since_told: None,
    };
    let may_act = !own.row.has_ended() && !command.meta.is_deleting;
    if may_act && observed.needs_target() && !matches!(observed.attempt, Attempt::Deferred(_)) {
        observed.target = look(server, scope, &own);
        observed.is_confirmed =
            matches!(judge(&observed), State::Due(_)) && still_waits(server, scope, command);
    }
    let (key, uid) = (command.meta.key.clone(), command.meta.uid.clone());
    match decide(&observed) {
        Action::Run(patch) => server
            .get(&deployment_key())
            .map(|target| run(server, scope, command, target, patch))
            .into_iter()
            .collect(),
        Action::Report(status) => {
            let preconditions = Preconditions::uid(&uid);
            vec![Write::status(command, Purpose::Tell, key, preconditions, json!(status), &REPORTED)]
        }
        Action::Wait(_) | Action::Settle => Vec::new(),
    }
}

/// The patch of the target.
fn run(
    server: &Server,
    scope: &Scope,
    command: &Stored,
    target: &Stored,
    mut patch: serde_json::Value,
) -> Write {
    let is_blind = scope.has(Sabotage::RestartsByTheClock);
    if is_blind {
        patch["spec"]["restartedAt"] = clock::time(server.clock).to_string().into();
    }
    let annotations = texts(&patch, "annotations").into_iter();
    let mut changes: Vec<_> = annotations.map(|(key, value)| Change::Annotation(key, Some(value))).collect();
    changes.push(Change::Spec(json!({"spec": patch["spec"]}).into()));
    let version = Some(target.meta.version).filter(|_| !is_blind);
    let preconditions = Preconditions { uid: Some(target.meta.uid.clone()), version };
    let purpose = Purpose::Restart(command.meta.uid.clone());
    Write::patch(command, purpose, target.meta.key.clone(), preconditions, changes).of_step(RUN, None)
}

fn row_of(command: &Object) -> Command {
    let (kind, run) = &*CARRIED_OUT;
    let watched = WatchedResource::unwatched(kind.resource.clone());
    let row = CommandRow::of(kind, run, trimmed(command));
    Watched { metadata: metadata(command), source: Arc::new(Source { id: kind.id.clone(), watched }), row }
}

/// The target that a command names.
fn look(server: &Server, scope: &Scope, command: &Command) -> Look {
    let is_it = |uid: &str| command.row.target_id().is_some_and(|target| *target.uid == *uid);
    let found = server.get(&deployment_key());
    let Some(found) = found.filter(|found| is_it(&found.meta.uid)) else {
        return Look::Gone;
    };
    let mut object = whole(found);
    if scope.has(Sabotage::BelievesOldStatuses) {
        object["status"]["observedGeneration"] = object["metadata"]["generation"].clone();
    }
    let resource = command.row.kind.targets()[0].resource.clone();
    let ran = RecentCommands::on(&metadata(found));
    Look::Found(Box::new(Target { resource, object, ran, is_terminating: found.meta.is_deleting }))
}

/// Whether the server still shows a command that waits.
fn still_waits(server: &Server, scope: &Scope, command: &Stored) -> bool {
    let live = server.get(&command.meta.key);
    let waits = |now: &Stored| {
        let row = row_of(now).row;
        now.meta.uid == command.meta.uid
            && now.meta.owners == command.meta.owners
            && !now.meta.is_deleting
            && !row.has_ended()
            && !row.has_started()
    };
    scope.has(Sabotage::TrustsItsCacheOfCommands) || live.is_some_and(waits)
}

/// Whether the write failed. Where the target or the command changed meanwhile, both are looked at again.
pub fn hears(write: &Write, answer: &Answer) -> bool {
    let is_expected = matches!(write.purpose, Purpose::Restart(_) | Purpose::Tell)
        && matches!(answer, Answer::NotFound | Answer::Conflict);
    !is_expected && !matches!(answer, Answer::Done(_))
}

//! The glue of command-runner.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
};

use catena_api::{command::RecentCommands, keys};
use command_runner::{
    command::{Command, CommandRow, REPORTED, order, recent},
    decide::{Action, RUN, decide},
    line::is_same,
    observed::{Look, Observed, Target},
};
use operator_watch::{DynamicRow, WriteTarget};
use parking_lot::Mutex;
use serde_json::json;

use super::super::{
    content::{Answer, COMMANDS, Server, Stored, metadata, pruned, texts, whole},
    process::Process,
    sabotage::Sabotage,
    scope::Scope,
    settings::{Described, commands},
    world::deployment_key,
    write::{Purpose, Write},
};
use crate::{
    clock,
    harness::digest,
    server::{
        object::Kind,
        operation::{Change, Preconditions},
    },
};

/// A pass over a command.
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, command: &Stored) -> Vec<Write> {
    let own = row_of(scope, command);
    let is_of_target = |other: &Command| {
        let target = own.row.target_id();
        target.is_some() && other.row.target_id() == target
    };
    let all = || COMMANDS.into_iter().flat_map(|kind| process.cache(kind).rows());
    let mut line: Vec<_> = all().map(|row| row_of(scope, row)).filter(|other| is_of_target(other)).collect();
    let refused = all()
        .filter(|row| process.backoffs(row).is_backing_off(RUN))
        .map(|row| (*row.meta.uid).into())
        .collect();
    line.sort_by(|one, other| order(one, other));
    if scope.has(Sabotage::TakesTheNewestFirst) {
        line.reverse();
    }
    if scope.has(Sabotage::TakesNoTurns) {
        line = vec![own.clone()];
    }
    let mut observed = Observed {
        command: own.clone(),
        backoffs: process.backoffs(command),
        now: clock::time(server.clock),
        line,
        unknown: None,
        target: Look::None,
        refused,
        with_status: COMMANDS.into_iter().map(|kind| commands(kind).kind.id.clone()).collect(),
        was_proven: process.memory.ran.contains(&command.meta.uid),
        takes_status: Some(true),
        since_told: None,
    };
    let may_act = !own.row.has_ended() && !command.meta.is_deleting;
    if may_act && observed.needs_target() && observed.backoffs.everything().is_none() {
        observed.target = look(server, scope, &own);
        if !scope.has(Sabotage::OverlooksUnreported) {
            // Of the rest, their statuses tell it: to remember these as well would only make more states.
            let is_unreported = |other: &Command| !other.row.has_started() && !is_same(other, &own);
            let unreported = observed.running().filter(|other| is_unreported(other));
            process.memory.ran.extend(unreported.map(|other| recent(other).uid.into()));
        }
    }
    let (mut command, mut action) = (command, decide(&observed));
    if matches!(action, Action::Run(_)) && !scope.has(Sabotage::TrustsItsCacheOfCommands) {
        let shown = server.get(&command.meta.key).filter(|shown| shown.meta.uid == command.meta.uid);
        let Some(shown) = shown else { return Vec::new() };
        observed.is_shown_as(row_of(scope, shown));
        (command, action) = (shown, decide(&observed));
    }
    let (key, uid) = (command.meta.key.clone(), command.meta.uid.clone());
    match action {
        Action::Run(patch) => {
            let target = server.get(&deployment_key());
            target.map(|target| run(server, scope, command, target, patch)).into_iter().collect()
        }
        Action::Report(status) => {
            let version = Some(command.meta.version).filter(|_| !scope.has(Sabotage::ReportsBlindly));
            let preconditions = Preconditions { uid: Some(uid), version };
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
    let mut annotations = texts(&patch, "annotations");
    if scope.has(Sabotage::ProvesNothing) {
        annotations.remove(keys::COMMANDS);
    }
    let annotations = annotations.into_iter();
    let mut changes: Vec<_> = annotations.map(|(key, value)| Change::Annotation(key, Some(value))).collect();
    if let Some(spec) = patch.get("spec") {
        changes.push(Change::Spec(json!({"spec": spec}).into()));
    }
    let version = Some(target.meta.version).filter(|_| !is_blind);
    let preconditions = Preconditions { uid: Some(target.meta.uid.clone()), version };
    let purpose = Purpose::Run(command.meta.uid.clone());
    Write::patch(command, purpose, target.meta.key.clone(), preconditions, changes).of_step(RUN, None)
}

/// A command in the cache of command-runner. It is the same in many states, and reading it is the slowest part of a pass.
fn row_of(scope: &Scope, command: &Stored) -> Arc<Command> {
    static KNOWN: LazyLock<Mutex<HashMap<u64, Arc<Command>>>> = LazyLock::new(Mutex::default);
    let input = digest(&(command, scope.sabotage));
    let known = KNOWN.lock().get(&input).cloned();
    known.unwrap_or_else(|| {
        let Described { kind, run, .. } = commands(command.meta.key.kind);
        let write_target = Arc::new(WriteTarget::unwatched(kind.resource.clone()));
        let row = sabotaged(CommandRow::of(kind, run, pruned(command)), scope, command.meta.key.kind);
        let kind_id = kind.id.clone();
        let row = Arc::new(DynamicRow { metadata: metadata(command), kind_id, write_target, row });
        KNOWN.lock().insert(input, row.clone());
        row
    })
}

fn sabotaged(mut row: CommandRow, scope: &Scope, kind: Kind) -> CommandRow {
    match scope.sabotage {
        Some(Sabotage::RepeatsWhatHasStarted) => row.status.start_time = None,
        Some(Sabotage::RollsBackFromTheNewest) if kind == Kind::Rollback => {
            // The first one compares the times of revisions.
            Arc::make_mut(&mut row.run).refuse.remove(0);
        }
        Some(Sabotage::RollsBackByOldStatuses) if kind == Kind::Rollback => {
            // The last one compares generations.
            Arc::make_mut(&mut row.run).wait.pop();
        }
        _ => {}
    }
    row
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
    Look::Found(Box::new(Target { resource, object, ran }))
}

/// Whether the write failed. Where the target or the command changed meanwhile, both are looked at again.
pub fn hears(write: &Write, answer: &Answer) -> bool {
    let is_expected = matches!(write.purpose, Purpose::Run(_) | Purpose::Tell)
        && matches!(answer, Answer::NotFound | Answer::Conflict);
    !is_expected && !matches!(answer, Answer::Done(_))
}

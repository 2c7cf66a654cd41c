//! The glue of backup-controller.

use std::sync::Arc;

use backup_controller::{
    annotation::BackupStatus,
    backup::{Failures, Search, Situation},
    decide::{Action, decide},
    finalizer,
    force_release::ForceRelease,
    metadata as of_object,
    observed::{Held, Observed, Row},
    settings::ProtectedKind,
};
use catena_api::keys::{BACKUP_FINALIZER, BACKUP_STATUS};
use jiff::Timestamp;
use operator_watch::{DynamicRow, SeenVersion, WriteTarget};
use serde_json::{Value, json};

use super::super::{
    content::{
        Answer, BACKUP_MANAGER, Json, Object, Server, Stored, ended, metadata, object, pruned, texts, whole,
    },
    process::{Memory, Process},
    sabotage::Sabotage,
    scope::Scope,
    settings::{ENTRY, HOLDING, RELEASING},
    write::{Purpose, Write},
};
use crate::{
    clock,
    server::{
        object::{Key, Kind},
        operation::{Change, Preconditions},
    },
};

/// A pass over a protected object.
pub fn pass(process: &mut Process, server: &Server, scope: &Scope, target: &Stored) -> Vec<Write> {
    let observed = observe(process, server, scope, target);
    let action = decide(&observed);
    let (key, uid) = (target.meta.key.clone(), &target.meta.uid);
    let amend =
        |purpose, changes| vec![Write::patch(target, purpose, key.clone(), Preconditions::uid(uid), changes)];
    match action {
        Action::Protect if scope.has(Sabotage::ProtectsNothing) => Vec::new(),
        Action::Protect => amend(Purpose::Other, vec![Change::AddFinalizer(BACKUP_FINALIZER.into())]),
        Action::TakeBack => amend(Purpose::Other, vec![Change::RemoveFinalizer(BACKUP_FINALIZER.into())]),
        Action::Create(backup) => vec![Write::create(target, Purpose::BackUp, created(&backup))],
        Action::Begin(status) | Action::Hold { status, tell: true, .. } => {
            let text = Some((&*status.text()).into());
            amend(Purpose::Other, vec![Change::Annotation(BACKUP_STATUS.into(), text)])
        }
        Action::Release { status, .. } => amend(Purpose::Release, released(&observed, &status)),
        Action::Refuse(_) => {
            process.fails(target, "", None);
            Vec::new()
        }
        Action::Hold { .. } | Action::Warn(_) | Action::Settle => Vec::new(),
    }
}

fn observe(process: &Process, server: &Server, scope: &Scope, target: &Stored) -> Observed {
    let settings = if scope.own.releases { &*RELEASING } else { &*HOLDING };
    let entry = &settings.kinds[ENTRY];
    let entries = &settings.by_resource[&entry.resource_id()];
    let row = Row::of(pruned(target), &entries.selectors(), entries.fingerprint());
    let write_target = Arc::new(WriteTarget::unwatched(entry.resource.clone()));
    let kind_id = entry.resource_id().into();
    let is_held = target.meta.is_deleting && finalizer::is_there(&row.finalizers);
    let held = is_held.then(|| held(process, server, scope, settings, entry, target)).flatten();
    Observed {
        target: Arc::new(DynamicRow { metadata: metadata(target), kind_id, write_target, row }),
        backoffs: process.backoffs(target),
        kind: Some(held.as_ref().map_or_else(|| entry.clone(), |(kind, _)| kind.clone())),
        is_selected: true,
        excess: None,
        backups: SeenVersion::unwatched(),
        held: held.map(|(_, held)| held),
    }
}

/// The live state of a held object, and the entry that it belongs to.
fn held(
    process: &Process,
    server: &Server,
    scope: &Scope,
    settings: &backup_controller::Settings,
    entry: &Arc<ProtectedKind>,
    target: &Stored,
) -> Option<(Arc<ProtectedKind>, Held)> {
    let live = server.get(&target.meta.key)?;
    let object = whole(live);
    let finalizers = of_object::finalizers(&object);
    let since = of_object::time(&object, "deletionTimestamp")?;
    if live.meta.uid != target.meta.uid || !finalizer::is_there(&finalizers) {
        return None;
    }
    let now = clock::time(server.clock);
    let status = BackupStatus::of(&object);
    let kind = settings.by_resource[&entry.resource_id()].recorded(status.as_ref(), entry.clone());
    let force_release = ForceRelease::of(&object);
    let situation = if matches!(force_release, ForceRelease::Granted(_)) {
        None
    } else {
        Some(survey(server, scope, settings, &kind, &object, status.as_ref(), now))
    };
    let refusals = process.memory.refusals.get(&target.meta.uid).copied().unwrap_or_default();
    let is_annotated = !live.meta.annotations.is_empty();
    let held = Held {
        finalizers,
        is_annotated,
        since,
        now,
        status,
        tell_again: None,
        force_release,
        refusals,
        situation,
    };
    Some((kind, held))
}

/// The state of the backups of an object with this status.
fn survey(
    server: &Server,
    scope: &Scope,
    settings: &backup_controller::Settings,
    kind: &ProtectedKind,
    target: &Value,
    status: Option<&BackupStatus>,
    now: Timestamp,
) -> Situation {
    let mut failures = Failures::none_by(&kind.policy);
    // Its backups do not delete themselves.
    let mut search = Search::begin(kind, target, now, status, 0, &mut failures);
    loop {
        let backup = match search.render(&settings.templates) {
            Ok(backup) => backup,
            Err(problem) => return Situation::Unusable(problem),
        };
        let key = Key { kind: Kind::Backup, name: of_object::text(&backup, "name").into() };
        let Some(found) = server.get(&key).map(|found| seen(found, scope)) else {
            if let Some(situation) = search.misses(backup) {
                return situation;
            }
            continue;
        };
        if let Some(situation) = search.finds(&found) {
            return situation;
        }
    }
}

/// A backup as the controller sees it.
fn seen(backup: &Stored, scope: &Scope) -> Value {
    let mut backup = Object::clone(backup);
    if scope.has(Sabotage::BelievesAnyBackup) {
        let mut spec = backup.spec.value().clone();
        spec["createdBy"] = BACKUP_MANAGER.into();
        backup.spec = spec.into();
    }
    if scope.has(Sabotage::TakesAnEndForSuccess) && backup.status == ended(false) {
        backup.status = ended(true);
    }
    whole(&backup)
}

fn created(backup: &Value) -> Object {
    let spec = json!({"spec": backup["spec"], "createdBy": BACKUP_MANAGER});
    let mut new = object(Kind::Backup, of_object::text(backup, "name"), spec);
    (new.meta.labels, new.meta.annotations) = (texts(backup, "labels"), texts(backup, "annotations"));
    new
}

fn released(observed: &Observed, status: &BackupStatus) -> Vec<Change<Json>> {
    let mut changes = vec![Change::RemoveFinalizer(BACKUP_FINALIZER.into())];
    let held = observed.held.as_ref();
    let is_told =
        held.is_some_and(|held| held.is_annotated && (held.finalizers.len() > 1 || held.status.is_some()));
    if is_told {
        let text = Some((&*status.text()).into());
        changes.push(Change::Annotation(BACKUP_STATUS.into(), text));
    }
    changes
}

/// Records an answer. Returns whether the write failed.
pub fn hears(memory: &mut Memory, write: &Write, answer: &Answer) -> bool {
    let uid = &write.whose.meta.uid;
    match (&write.purpose, answer) {
        // An existing one comes from a try whose answer was lost.
        (Purpose::BackUp, Answer::Done(_) | Answer::AlreadyExists) => {
            memory.refusals.remove(uid);
        }
        (Purpose::BackUp, Answer::Invalid) => {
            let refusals = memory.refusals.entry(uid.clone()).or_default();
            *refusals = refusals.saturating_add(1);
            return true;
        }
        (_, answer) => return !matches!(answer, Answer::Done(_)),
    }
    false
}

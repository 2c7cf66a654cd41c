//! Action → one write. The only writer.

use std::time::Duration;

use backup_controller::{
    annotation::{BackupStatus, State},
    backup::not_served,
    decide::Action,
    finalizer, metadata,
    observed::{Held, Observed, Row},
    refusal::is_refusal,
    settings::ProtectedKind,
    status::Outcome,
};
use catena_api::{keys::BACKUP_STATUS, reason};
use json_patch::PatchOperation;
use operator_kit::{
    report::{Event, Events},
    run::Requeue,
    write::Writer,
};
use operator_watch::{ApiError, Cause, DynamicRow, Failure, ObjectId, WriteTarget};
use serde_json::{Value, json};

use crate::{memory::Memory, metrics::HeldMetrics};

/// Delay before a new backup is checked, if no event comes before.
const FIRST_LOOK_DELAY: Duration = Duration::from_secs(1);

/// Takes steps.
pub struct Executor {
    writer: Writer,
    events: Events,
    memory: Memory,
    metrics: HeldMetrics,
}

impl Executor {
    pub fn new(writer: Writer, events: Events, memory: Memory, metrics: HeldMetrics) -> Self {
        Self { writer, events, memory, metrics }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.metrics.forget(uid);
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Requeue, Failure> {
        let (Some(kind), target) = (&observed.kind, &*observed.target) else { return Ok(Requeue::OnChange) };
        let id = ObjectId::of(target);
        match action {
            Action::Protect => {
                let next = self.json_patch(target, &finalizer::add(id.uid, &target.row.finalizers)).await?;
                self.memory.protected(id.uid);
                Ok(next)
            }
            Action::Warn(problem) => {
                tracing::warn!(object = %id, entry = kind.id, problem = problem.message, "it cannot be backed up");
                self.events.publish(&target.reference(), Events::warning(problem.reason, &problem.message));
                Ok(Requeue::Now)
            }
            Action::TakeBack => {
                let version = target.metadata.resource_version.as_deref().unwrap_or_default();
                let patch = finalizer::take_back(id.uid, version, &target.row.finalizers);
                Ok(self.json_patch(target, &patch.unwrap_or_default()).await?)
            }
            Action::Begin(status) => {
                self.memory.begins(id.uid);
                let is_written = self.tell(target, observed.held.as_ref(), &status).await?;
                Ok(if is_written { Requeue::Written } else { Requeue::Now })
            }
            Action::Create(backup) => self.create(kind, observed, backup).await,
            Action::Refuse(problem) => Err(problem),
            Action::Hold { status, tell, again } => {
                if let Some(held) = &observed.held {
                    self.metrics.note(id.uid, &kind.id, &status.reason, held.age());
                }
                let is_written = tell && self.tell(target, observed.held.as_ref(), &status).await?;
                Ok(if is_written { Requeue::Written } else { Requeue::After(again) })
            }
            Action::Release { outcome, status } => Ok(self.release(kind, observed, outcome, &status).await?),
            Action::Settle => {
                let is_ours = finalizer::is_there(&target.row.finalizers);
                if target.metadata.deletion_timestamp.is_some() && !is_ours {
                    // Others keep it. For us, its release is over.
                    self.metrics.forget(id.uid);
                }
                Ok(Requeue::OnChange)
            }
        }
    }

    async fn json_patch(
        &self,
        target: &DynamicRow<Row>,
        patch: &[PatchOperation],
    ) -> Result<Requeue, ApiError> {
        let id = ObjectId::of(target);
        self.writer.for_object(id).json_patch(&target.write_target, id, patch).await?;
        Ok(Requeue::Written)
    }

    async fn create(
        &self,
        kind: &ProtectedKind,
        observed: &Observed,
        backup: Value,
    ) -> Result<Requeue, Failure> {
        let target = ObjectId::of(&*observed.target);
        let backups = WriteTarget::new(kind.backup.resource.clone(), &observed.backups);
        let Err(error) = self.writer.for_object(target).create(&backups, &backup).await else {
            return Ok(self.created(target));
        };
        if is_refusal(&error) {
            self.memory.refused(target.uid, kind);
        }
        if error.may_have_taken_effect() {
            self.memory.may_have_created(target.uid);
        }
        let (name, namespace) = (&kind.backup.name, metadata::text(&backup, "namespace"));
        Err(match error.cause {
            // It comes from a try whose answer was lost, and is judged in the next look-up.
            Cause::AlreadyExists => return Ok(self.created(target)),
            Cause::KindNotServed => not_served(&kind.backup),
            Cause::NamespaceMissing => {
                self.memory.refused(target.uid, kind);
                let message = format!(
                    "no {} can be created in the namespace {namespace:?}, which was not found; create the namespace, or set backups.{name}.namespace in the controller's values to another one",
                    error.object.kind
                );
                Failure::stalled(reason::NAMESPACE_MISSING, message)
            }
            Cause::NamespaceTerminating => {
                let message = format!(
                    "the namespace {namespace:?} is being deleted and accepts no new {}; set backups.{name}.namespace in the controller's values to another one, or release the object without a backup with the \
                     annotation catena.dev/force-release: <uid> <reason>",
                    error.object.kind
                );
                Failure::stalled(reason::NAMESPACE_TERMINATING, message)
            }
            _ => error.with_template(&format!("backups.{name}.template")).into(),
        })
    }

    fn created(&self, target: ObjectId<'_>) -> Requeue {
        self.memory.created(target.uid);
        Requeue::After(FIRST_LOOK_DELAY)
    }

    /// Records on the object the reason for its waiting. Returns whether the server takes it: a refusal, for example by a
    /// policy on annotations, keeps nobody from going on.
    async fn tell(
        &self,
        target: &DynamicRow<Row>,
        held: Option<&Held>,
        status: &BackupStatus,
    ) -> Result<bool, ApiError> {
        let (id, resource) = (ObjectId::of(target), target.resource());
        let mut patch = json!({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": id});
        patch["metadata"]["annotations"] = json!({BACKUP_STATUS: status.text()});
        let told = self.writer.for_object(id).merge_patch(&target.write_target, &patch).await;
        let is_written = match told {
            Err(error) if is_refusal(&error) => {
                tracing::warn!(object = %id, %error, "its status cannot be written, and is kept in memory");
                false
            }
            told => told.map(|()| true)?,
        };
        self.memory.note_told(id.uid, status.clone());
        // The kit reports the failures from which it backs off.
        let is_unclear = |status: &BackupStatus| status.reason == reason::BACKUP_UNCLEAR;
        let news = |status: &BackupStatus| (status.state, status.attempt, is_unclear(status));
        let before = held.and_then(|held| held.status.as_ref()).map(news);
        if before != Some(news(status)) && status.state != State::Blocked {
            let backup = status.backup.as_deref().unwrap_or("the backup");
            let note = format!("{backup}: {}", status.message);
            let event = match status.state {
                State::Failed if status.reason == reason::BACKUP_VANISHED => {
                    Events::warning(reason::BACKUP_VANISHED, &note)
                }
                State::Failed if status.reason != reason::BACKUP_OVERDUE => {
                    Events::warning(reason::BACKUP_FAILED, &note)
                }
                State::Failed | State::Overdue => Events::warning(reason::BACKUP_OVERDUE, &note),
                _ if is_unclear(status) => Events::warning(reason::BACKUP_UNCLEAR, &note),
                _ => Events::normal(reason::BACKUP_RUNNING, &note),
            };
            let secondary = held.and_then(Held::last_backup);
            self.events.publish(&target.reference(), Event { action: "BackUp".into(), secondary, ..event });
        }
        Ok(is_written)
    }

    async fn release(
        &self,
        kind: &ProtectedKind,
        observed: &Observed,
        outcome: Outcome,
        status: &BackupStatus,
    ) -> Result<Requeue, ApiError> {
        let target = &*observed.target;
        let id = ObjectId::of(target);
        let Some(held) = &observed.held else { return Ok(Requeue::OnChange) };
        let Some(removal) = finalizer::remove(id.uid, &held.finalizers) else { return Ok(Requeue::OnChange) };
        let stays = held.finalizers.len() > 1;
        let is_told = held.is_annotated && (stays || held.status.is_some());
        if outcome != Outcome::BackedUp {
            // Before the write, because the object and its annotations may be gone with it, and the answer may be lost.
            let why = &status.message;
            tracing::warn!(object = %id, entry = kind.id, why, "releasing it without a proven backup");
        }
        let released = self.let_go(target, &removal, is_told.then_some(status)).await;
        match &released {
            Ok(_) => {
                self.metrics.released(id.uid, &kind.id, outcome);
                self.tell_of_release(target, held, outcome, &status.message);
            }
            // It is gone or was changed, as the next pass sees.
            Err(error) if error.is_stale() => {}
            Err(error) => self.metrics.note(id.uid, &kind.id, error.reason(), held.age()),
        }
        released
    }

    /// Publishes the Event of a release. Nobody was told of a backup that took no time.
    fn tell_of_release(&self, target: &DynamicRow<Row>, held: &Held, outcome: Outcome, message: &str) {
        let event = match outcome {
            Outcome::BackedUp if held.status.is_none() => return,
            Outcome::BackedUp => Events::normal("BackedUp", message),
            Outcome::GivenUp => {
                let note = format!("released without a backup, as the settings allow: {message}");
                Events::warning("ReleasedWithoutBackup", &note)
            }
            Outcome::Forced => {
                let note = format!("released without a proven backup, by annotation: {message}");
                Events::warning("ForceReleased", &note)
            }
        };
        let event = Event { action: "Release".into(), secondary: held.last_backup(), ..event };
        self.events.publish(&target.reference(), event);
    }

    /// Removes the finalizer, with a last status if that is to be told and the server takes it.
    async fn let_go(
        &self,
        target: &DynamicRow<Row>,
        removal: &[PatchOperation],
        status: Option<&BackupStatus>,
    ) -> Result<Requeue, ApiError> {
        if let Some(status) = status {
            let annotation = finalizer::annotate(BACKUP_STATUS, &status.text());
            match self.json_patch(target, &[removal, &[annotation]].concat()).await {
                Err(error) if is_refusal(&error) => {
                    tracing::warn!(object = %ObjectId::of(target), %error, "it is released without a last status");
                }
                amended => return amended,
            }
        }
        self.json_patch(target, removal).await
    }
}

#[cfg(test)]
mod tests;

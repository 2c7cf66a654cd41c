//! Action → one write. The only writer.

use std::time::Duration;

use catena_api::keys::BACKUP_STATUS;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Client, Resource, discovery::ApiResource};
use operator_kit::{
    report::Events,
    run::Next,
    watch::{ServedKinds, Watched},
    write::{WriteError, Writer},
};
use serde_json::{Value, json};

use crate::{
    backup::{instead, written_as},
    backup_watches::BackupWatches,
    decide::{Action, Outcome, Release},
    error::Error,
    finalizer,
    held::HeldObjects,
    memory::Refusals,
    metadata,
    observe::{Held, Observed, Row},
    settings::{Backup, ProtectedKind},
    status::{BackupStatus, State},
};

/// When a backup that was created is looked at, if nobody tells of it before.
const AFTER_CREATE: Duration = Duration::from_secs(1);

/// Takes steps.
pub struct Actor {
    client: Client,
    writer: Writer,
    served_kinds: ServedKinds,
    events: Events,
    watches: BackupWatches,
    refusals: Refusals,
    held: HeldObjects,
}

impl Actor {
    pub fn new(
        client: Client,
        writer: Writer,
        served_kinds: ServedKinds,
        events: Events,
        watches: BackupWatches,
        refusals: Refusals,
        held: HeldObjects,
    ) -> Self {
        Self { client, writer, served_kinds, events, watches, refusals, held }
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.held.forget(uid);
    }

    /// Takes a step.
    pub async fn act(&self, observed: &Observed, action: Action) -> Result<Next, Error> {
        let (Some(kind), target) = (&observed.kind, &*observed.target) else { return Ok(Next::Settled) };
        match action {
            Action::Protect => self.amend(target, &finalizer::add(uid(target), &target.row.finalizers)).await,
            Action::TakeBack => {
                let version = target.metadata.resource_version.as_deref().unwrap_or_default();
                let patch = finalizer::take_back(uid(target), version, &target.row.finalizers);
                self.amend(target, &patch.unwrap_or_default()).await
            }
            Action::Create(backup) => self.create(kind, target, &backup).await,
            Action::Refuse(problem) => Err(problem.into()),
            Action::Hold { status, tell, again } => {
                self.note(kind, observed, &status);
                if tell {
                    self.tell(target, observed.held.as_ref(), &status).await?;
                    return Ok(Next::Written);
                }
                Ok(Next::Wait(again))
            }
            Action::Release(release) => self.release(kind, observed, &release).await,
            Action::Settle => Ok(Next::Settled),
        }
    }

    async fn amend(
        &self,
        target: &Watched<Row>,
        patch: &[json_patch::PatchOperation],
    ) -> Result<Next, Error> {
        let (uid, place) = (uid(target), place(target));
        let source = &target.source;
        self.writer.amend(uid, &source.seen, &source.resource, place, patch).await?;
        Ok(Next::Written)
    }

    async fn create(
        &self,
        kind: &ProtectedKind,
        target: &Watched<Row>,
        backup: &Value,
    ) -> Result<Next, Error> {
        let resource = written_as(&kind.backup, backup);
        if resource.version != kind.backup.resource.version {
            tracing::warn!(
                "backups.{}.apiVersion: {} is not served (any more), so that {} is used; name a version that is served",
                kind.backup.name,
                kind.backup.resource.api_version,
                resource.api_version
            );
        }
        let seen = self.watches.seen(&kind.backup);
        let created = self.writer.create(uid(target), &seen, &resource, backup).await;
        if let Err(WriteError::Gone { .. }) = &created {
            self.check_version(&kind.backup, &resource, backup).await?;
        }
        if created.as_ref().is_err_and(is_refusal) {
            self.refusals.note(uid(target));
        }
        match created {
            // From a try of which the answer was lost; it is judged where it is looked up.
            Ok(()) | Err(WriteError::AlreadyExists { .. }) => {
                self.refusals.forget(uid(target));
                Ok(Next::Wait(AFTER_CREATE))
            }
            Err(WriteError::NamespaceTerminating { kind: created }) => Err(Error::NamespaceTerminating {
                backup: kind.backup.name.clone(),
                kind: created,
                namespace: metadata::text(backup, "namespace").to_owned(),
            }),
            Err(WriteError::Gone { kind, name }) => Err(Error::NotServed {
                kind,
                name,
                namespace: metadata::text(backup, "namespace").to_owned(),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// An error where it is, or may be, only the version of a backup that the cluster does not serve.
    async fn check_version(&self, kind: &Backup, tried: &ApiResource, backup: &Value) -> Result<(), Error> {
        match instead(&self.client, &self.served_kinds, kind, tried, backup).await? {
            None => Ok(()),
            Some(served) => Err(Error::OtherVersion {
                backup: kind.name.clone(),
                kind: tried.kind.clone(),
                name: metadata::text(backup, "name").to_owned(),
                tried: tried.api_version.clone(),
                served: served.api_version,
            }),
        }
    }

    /// Says on the object why it waits.
    async fn tell(
        &self,
        target: &Watched<Row>,
        held: Option<&Held>,
        status: &BackupStatus,
    ) -> Result<(), Error> {
        let source = &target.source;
        let (namespace, name) = place(target);
        let mut patch = json!({
            "apiVersion": source.resource.api_version,
            "kind": source.resource.kind,
            "metadata": {"name": name, "uid": uid(target), "annotations": {BACKUP_STATUS: status.text()}},
        });
        if !namespace.is_empty() {
            patch["metadata"]["namespace"] = namespace.into();
        }
        self.writer.merge(uid(target), &source.seen, &source.resource, &patch).await?;
        let before = held.and_then(|held| held.status.as_ref()).map(|status| (status.state, status.attempt));
        // The kit tells of what it backs off from.
        if before != Some((status.state, status.attempt)) && status.state != State::Blocked {
            let backup = status.backup.as_deref().unwrap_or("the backup");
            let note = format!("{backup}: {}", status.message);
            match status.state {
                State::Failed => self.events.warn(&reference(target), "BackupFailed", &note),
                State::Overdue => self.events.warn(&reference(target), "BackupOverdue", &note),
                _ => self.events.tell(&reference(target), "BackupRunning", &note),
            }
        }
        Ok(())
    }

    async fn release(
        &self,
        kind: &ProtectedKind,
        observed: &Observed,
        release: &Release,
    ) -> Result<Next, Error> {
        let target = &*observed.target;
        let Some(held) = &observed.held else { return Ok(Next::Settled) };
        let Some(mut patch) = finalizer::remove(uid(target), &held.finalizers) else {
            return Ok(Next::Settled);
        };
        let stays = held.finalizers.len() > 1;
        if held.is_annotated && (stays || held.status.is_some()) {
            patch.push(finalizer::annotate(BACKUP_STATUS, &release.status.text()));
        }
        let message = &release.status.message;
        // Before the write, so that a crash after it leaves an audit all the same.
        match release.outcome {
            Outcome::BackedUp if held.status.is_none() => {}
            Outcome::BackedUp => self.events.tell(&reference(target), "BackedUp", message),
            Outcome::GivenUp => self.events.warn(
                &reference(target),
                "ReleasedWithoutBackup",
                &format!("released without a backup, as onFailure says: {message}"),
            ),
            Outcome::Forced => {
                tracing::warn!(object = ?place(target), kind = kind.id, reason = message, "force-released");
                self.events.warn(
                    &reference(target),
                    "ForceReleased",
                    &format!("released without a proven backup, by annotation: {message}"),
                );
            }
        }
        let next = self.amend(target, &patch).await?;
        self.held.released(uid(target), &kind.id, release.outcome, held.since, held.now);
        Ok(next)
    }

    fn note(&self, kind: &ProtectedKind, observed: &Observed, status: &BackupStatus) {
        if let Some(held) = &observed.held {
            let age = Duration::try_from(held.now.duration_since(held.since)).unwrap_or_default();
            self.held.note(uid(&observed.target), &kind.id, &status.reason, age);
        }
    }
}

/// Whether the server refused a backup for a reason of its own, and not because it was busy or is not heard.
fn is_refusal(error: &WriteError) -> bool {
    match error {
        WriteError::Forbidden { .. }
        | WriteError::QuotaExceeded { .. }
        | WriteError::QuotaRefused { .. }
        | WriteError::DefinitionTerminating { .. }
        | WriteError::NamespaceTerminating { .. }
        | WriteError::Invalid { .. }
        // Of a create: there is no such kind, or no such namespace.
        | WriteError::Gone { .. } => true,
        WriteError::Unknown { code, .. } => (400..500).contains(code),
        _ => false,
    }
}

fn uid(target: &Watched<Row>) -> &str {
    target.metadata.uid.as_deref().unwrap_or_default()
}

fn place(target: &Watched<Row>) -> (&str, &str) {
    let metadata = &target.metadata;
    (metadata.namespace.as_deref().unwrap_or_default(), metadata.name.as_deref().unwrap_or_default())
}

fn reference(target: &Watched<Row>) -> ObjectReference {
    target.object_ref(&target.source.resource)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_refuses_for_a_reason_of_its_own_is_a_try() {
        let (kind, name, message) = ("Job".to_owned(), "dump".to_owned(), String::new());
        let unknown = |code| WriteError::Unknown {
            kind: kind.clone(),
            name: name.clone(),
            code,
            message: message.clone(),
        };
        let refused = [
            WriteError::Forbidden { kind: kind.clone(), name: name.clone(), message: message.clone() },
            WriteError::QuotaExceeded { kind: kind.clone(), name: name.clone(), message: message.clone() },
            WriteError::Invalid {
                kind: kind.clone(),
                name: name.clone(),
                message: message.clone(),
                fields: Vec::new(),
            },
            WriteError::QuotaRefused { kind: kind.clone(), name: name.clone(), message: message.clone() },
            WriteError::NamespaceTerminating { kind: kind.clone() },
            WriteError::DefinitionTerminating { kind: kind.clone() },
            WriteError::gone(&kind, &name),
            unknown(413),
        ];
        for error in refused {
            assert!(is_refusal(&error), "{error}");
        }
        let others = [
            WriteError::Busy { message: message.clone(), retry_after: Duration::ZERO },
            WriteError::Changed { kind: kind.clone(), name: name.clone(), message: message.clone() },
            WriteError::AlreadyExists { kind: kind.clone(), name: name.clone() },
            unknown(0),
            unknown(503),
        ];
        for error in others {
            assert!(!is_refusal(&error), "{error}");
        }
    }
}

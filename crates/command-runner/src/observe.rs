//! Caches and live reads → Observed. The only reader.

use std::{collections::HashSet, sync::Arc, time::Duration};

use catena_api::command::RecentCommands;
use command_kinds::{Reference, schemas::Schemas};
use command_runner::{
    command::{Command, CommandRow},
    line::is_open,
    observed::{Look, Observed, Target},
};
use jiff::Timestamp;
use kube::{Client, discovery::Scope};
use operator_kit::run::Backoffs;
use operator_watch::{ApiError, Cause, Discovery, Live, ObjectId};

use crate::memory::Memory;

/// Shortest time between two looks at the target of a command that waits for a change of it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// The same while the command can do nothing, whatever its target is.
const IDLE_LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// Reads the state of a command and its target.
pub struct Observer {
    client: Client,
    discovery: Discovery,
    schemas: Schemas,
    memory: Memory,
}

impl Observer {
    pub fn new(client: Client, discovery: Discovery, memory: Memory) -> Self {
        Self { schemas: Schemas::new(client.clone()), client, discovery, memory }
    }

    /// Reads the state of a command: that of its target live, because on that one it is carried out.
    pub async fn observe(&self, command: Arc<Command>, backoffs: Backoffs) -> Result<Observed, ApiError> {
        let (row, uid) = (&command.row, ObjectId::of(&*command).uid);
        for target in self.memory.left(uid) {
            self.memory.wake(&target, None);
        }
        let may_act = is_open(&command);
        let line =
            || row.target_id().filter(|_| may_act).map(|target| self.memory.line(target)).unwrap_or_default();
        let seen = line();
        let with_status = self.with_status(&seen).await;
        let reference = row.target.as_ref().and_then(|target| target.as_ref().ok());
        let schema = if row.has_ended() { None } else { self.schemas.of(&command, |_| {}).await };
        let takes_status = schema.and_then(|schema| row.takes_status(schema));
        let unknown = reference.filter(|_| may_act).and_then(|to| self.memory.unknown(&to.kind));
        let mut observed = Observed {
            now: Timestamp::now(),
            refused: self.memory.refused(&seen),
            was_proven: self.memory.has_run(uid),
            line: seen,
            unknown: unknown.or_else(|| with_status.as_ref().err().cloned()),
            with_status: with_status.unwrap_or_default(),
            target: Look::None,
            takes_status,
            since_told: self.memory.since_told(uid),
            backoffs,
            command: command.clone(),
        };
        let is_read = may_act && takes_status.is_some() && observed.backoffs.everything().is_none();
        let Some(to) = reference.filter(|_| is_read && observed.needs_target()) else { return Ok(observed) };
        let is_idle = observed.unknown.is_some() && !observed.has_run() && !row.is_expired(observed.now);
        let interval = if is_idle { IDLE_LOOK_INTERVAL } else { LOOK_INTERVAL };
        let left = self.memory.look_in(uid, interval);
        if !left.is_zero() {
            observed.target = Look::Later(left);
            return Ok(observed);
        }
        observed.target = self.look(&command, to).await?;
        // Meanwhile, others may have come, and run.
        observed.unknown = observed.unknown.or_else(|| self.memory.unknown(&to.kind));
        observed.line = line();
        observed.refused = self.memory.refused(&observed.line);
        for command in observed.running() {
            self.memory.ran(command);
        }
        Ok(observed)
    }

    /// The kinds with a status for a run, among those of the commands that ran, ended and supersede others.
    ///
    /// # Errors
    /// Why that is not known.
    async fn with_status(&self, line: &[Arc<Command>]) -> Result<HashSet<Arc<str>>, String> {
        let mut kinds = HashSet::new();
        for other in line.iter().filter(|other| other.row.run.supersedes && other.row.ran_to_its_end()) {
            let resource = other.resource();
            let unread = || format!("the definition of {} cannot be read at the moment", resource.plural);
            let schema = self.schemas.of(other, |_| {}).await.ok_or_else(unread)?;
            kinds.extend(schema.takes_run.then(|| other.kind_id.clone()));
        }
        Ok(kinds)
    }

    async fn look(&self, command: &Command, to: &Reference) -> Result<Look, ApiError> {
        let Some(target) = command.row.target_id() else { return Ok(Look::None) };
        let is_here = |(_, scope): &(_, Scope)| (*scope == Scope::Namespaced) != target.namespace.is_empty();
        let mut served = self.discovery.find(&to.kind.resource).await?;
        if served.as_ref().is_some_and(|served| !is_here(served)) {
            // The definition may be another one since that was asked.
            served = self.discovery.find_again(&to.kind.resource).await?;
        }
        let resource = match served {
            None => return Ok(Look::NotServed),
            Some(served) if !is_here(&served) => return Ok(Look::OtherScope),
            Some((resource, _)) => resource,
        };
        let found = match Live::object(&self.client, &resource, &target.namespace, &to.name).await {
            Err(error) if error.cause == Cause::KindNotServed => {
                self.discovery.find_again(&to.kind.resource).await?;
                return Ok(Look::NotServed);
            }
            found => found?,
        };
        let found = found.filter(|found| found.metadata.uid.as_deref() == Some(&*target.uid));
        Ok(found.map_or(Look::Gone, |found| {
            let ran = RecentCommands::on(&found.metadata);
            Look::Found(Box::new(Target { resource, object: found.into_json(), ran }))
        }))
    }

    /// A command as the API server shows it; `None` if it is gone. With a stale cache, it could run although it was cancelled, or a
    /// second time; and after an upgrade of its definition, the cache may show it by the former one.
    pub async fn live(&self, command: &Command) -> Result<Option<Command>, ApiError> {
        let ObjectId { namespace, name, uid } = ObjectId::of(command);
        let found = Live::object(&self.client, command.resource(), namespace, name).await?;
        let found = found.filter(|found| found.metadata.uid.as_deref() == Some(uid));
        Ok(found.map(|found| Command {
            metadata: found.metadata.clone(),
            kind_id: command.kind_id.clone(),
            write_target: command.write_target.clone(),
            row: CommandRow::of(&command.row.kind, &command.row.run, found),
        }))
    }
}

#[cfg(test)]
mod tests;

//! Reads the backups of an object live.

use backup_controller::{
    annotation::BackupStatus,
    backup::{Failures, Search, Situation, Try, former, render},
    error::{Error, Unusable},
    settings::ProtectedKind,
};
use jiff::Timestamp;
use kube::Client;
use operator_kit::{
    render::Templates,
    watch::{ReadCause, ReadError, ServedKinds},
};
use serde_json::Value;

use super::versions;

/// An object whose backups are looked up.
pub struct Survey<'s> {
    pub client: &'s Client,
    pub served_kinds: &'s ServedKinds,
    pub templates: &'s Templates,
    pub kind: &'s ProtectedKind,
    /// The object, from a live read.
    pub target: &'s Value,
    /// The time of the read, by the server's clock.
    pub now: Timestamp,
}

impl Survey<'_> {
    /// The state of its backups, if it had this status. The failures are those that this process has seen.
    pub async fn situation(
        &self,
        status: Option<&BackupStatus>,
        failures: &mut Failures,
        former_attempt: Option<u32>,
    ) -> Result<Situation, Error> {
        let mut search = Search::begin(self.kind, self.target, self.now, status, failures);
        loop {
            let mut backup = match render(self.templates, self.kind, self.target, search.attempt()) {
                Ok(backup) => backup,
                Err(problem) => return Ok(Situation::Unusable(problem)),
            };
            let found = match self.look_up(&mut backup).await {
                Err(problem @ ReadError { cause: ReadCause::Forbidden { .. }, .. }) => {
                    return Ok(Situation::Unusable(Unusable::OutOfReach(problem)));
                }
                found => found?,
            };
            let Some(found) = found else {
                let Some(situation) = search.misses(backup) else { continue };
                if !matches!(situation, Situation::Absent { .. }) {
                    return Ok(situation);
                }
                let former = self.former(former_attempt).await?;
                return Ok(former.map_or(situation, |last| Situation::Former { last }));
            };
            if let Some(situation) = search.finds(&found) {
                return Ok(situation);
            }
        }
    }

    /// The object that has the name of a backup. The backup gets the version of the look-up.
    async fn look_up(&self, backup: &mut Value) -> Result<Option<Value>, ReadError> {
        versions::look_up(self.client, self.served_kinds, &self.kind.backup, backup).await
    }

    /// A backup of this attempt from before policies were distinguished, if it is running and has not exceeded its
    /// deadline.
    async fn former(&self, attempt: Option<u32>) -> Result<Option<Try>, ReadError> {
        let Some(attempt) = attempt else { return Ok(None) };
        let Ok(mut backup) = former::render(self.templates, self.kind, self.target, attempt) else {
            return Ok(None);
        };
        let found = self.look_up(&mut backup).await?;
        let judged = |found| former::judge_as_former(self.kind, self.target, attempt, &found, self.now);
        Ok(found.and_then(judged))
    }
}

#[cfg(test)]
mod tests;

//! Reads the backups of an object live.

use backup_controller::{
    annotation::BackupStatus,
    backup::{Failures, Search, Situation, not_served, render},
    error::{Error, Unusable},
    metadata,
    settings::ProtectedKind,
};
use jiff::Timestamp;
use kube::Client;
use operator_kit::{render::Templates, watch::Cause};
use serde_json::Value;

use super::live;

/// An object whose backups are looked up.
pub struct Survey<'s> {
    pub client: &'s Client,
    pub templates: &'s Templates,
    pub kind: &'s ProtectedKind,
    /// The object, from a live read.
    pub target: &'s Value,
    /// The time of the read, by the server's clock.
    pub now: Timestamp,
    /// The last attempt that was recorded before its creation, and may have been created.
    pub begun: u32,
}

impl Survey<'_> {
    /// The state of its backups, if it had this status. The failures are those that this process has seen.
    pub async fn situation(
        &self,
        status: Option<&BackupStatus>,
        failures: &mut Failures,
    ) -> Result<Situation, Error> {
        let mut search = Search::begin(self.kind, self.target, self.now, status, self.begun, failures);
        loop {
            let backup = match render(self.templates, self.kind, self.target, search.attempt()) {
                Ok(backup) => backup,
                Err(problem) => return Ok(Situation::Unusable(problem)),
            };
            let [namespace, name] = ["namespace", "name"].map(|field| metadata::text(&backup, field));
            let answer = match live::read(self.client, &self.kind.backup.resource, namespace, name).await {
                Err(problem) if problem.cause == Cause::Forbidden => {
                    return Ok(Situation::Unusable(Unusable::OutOfReach(problem.into())));
                }
                answer => answer?,
            };
            if !answer.is_served {
                return Ok(Situation::Unusable(not_served(&self.kind.backup)));
            }
            let situation = match answer.whole() {
                Ok(Some(found)) => search.finds(&found),
                Ok(None) => search.misses(backup),
                // Its metadata alone would look like that of another object.
                Err(problem) => Some(Situation::Unusable(Unusable::OutOfReach(problem.into()))),
            };
            if let Some(situation) = situation {
                return Ok(situation);
            }
        }
    }
}

#[cfg(test)]
mod tests;

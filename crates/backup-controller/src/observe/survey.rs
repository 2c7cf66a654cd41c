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
use operator_kit::{
    render::Templates,
    watch::{ReadCause, ReadError},
};
use serde_json::Value;

use super::live;

/// The state of the backups of an object, from a live read at this time by the server's clock, if it had this status. The
/// failures are those that this process has seen.
pub async fn look_up(
    client: &Client,
    templates: &Templates,
    kind: &ProtectedKind,
    target: &Value,
    now: Timestamp,
    status: Option<&BackupStatus>,
    failures: &mut Failures,
) -> Result<Situation, Error> {
    let mut search = Search::begin(kind, target, now, status, failures);
    loop {
        let backup = match render(templates, kind, target, search.attempt()) {
            Ok(backup) => backup,
            Err(problem) => return Ok(Situation::Unusable(problem)),
        };
        let [namespace, name] = ["namespace", "name"].map(|field| metadata::text(&backup, field));
        let answer = match live::read(client, &kind.backup.resource, namespace, name).await {
            Err(problem @ ReadError { cause: ReadCause::Forbidden { .. }, .. }) => {
                return Ok(Situation::Unusable(Unusable::OutOfReach(problem)));
            }
            answer => answer?,
        };
        if !answer.is_served {
            return Ok(Situation::Unusable(not_served(&kind.backup)));
        }
        let situation = match answer.whole() {
            Ok(Some(found)) => search.finds(&found),
            Ok(None) => search.misses(backup),
            // Its metadata alone would look like that of another object.
            Err(problem) => Some(Situation::Unusable(Unusable::OutOfReach(problem))),
        };
        if let Some(situation) = situation {
            return Ok(situation);
        }
    }
}

#[cfg(test)]
mod tests;

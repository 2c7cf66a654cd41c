//! Reads the backups of an object live.

use backup_controller::{
    backup::{Search, Situation, not_served},
    metadata,
};
use kube::Client;
use operator_templates::Templates;
use operator_watch::{ApiError, Cause};

use super::live;

/// The state of an object's backups, as a search finds it.
pub async fn situation(
    client: &Client,
    templates: &Templates,
    mut search: Search<'_>,
) -> Result<Situation, ApiError> {
    loop {
        let backup = match search.render(templates) {
            Ok(backup) => backup,
            Err(problem) => return Ok(Situation::Unusable(problem)),
        };
        let [namespace, name] = ["namespace", "name"].map(|field| metadata::text(&backup, field));
        let kind = &search.kind().backup;
        let answer = match live::read(client, &kind.resource, namespace, name).await {
            Err(problem) if problem.cause == Cause::Forbidden => {
                return Ok(Situation::Unusable(problem.into()));
            }
            answer => answer?,
        };
        if !answer.is_served {
            return Ok(Situation::Unusable(not_served(kind)));
        }
        let situation = match answer.whole() {
            Ok(Some(found)) => search.finds(&found),
            Ok(None) => search.misses(backup),
            // Its metadata alone would look like that of another object.
            Err(problem) => Some(Situation::Unusable(problem.into())),
        };
        if let Some(situation) = situation {
            return Ok(situation);
        }
    }
}

#[cfg(test)]
mod tests;

//! Reads the backups of an object live.

use backup_controller::{
    backup::{MAX_LOOK_UPS, Situation, Target, Try, Verdict, doubt, former, judge, render, title},
    error::{Error, Unusable},
    metadata,
    settings::{LAST_ATTEMPT, ProtectedKind},
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
    /// The state of its backups, beginning with the attempt `first`.
    pub async fn situation(&self, first: u32, former_attempt: Option<u32>) -> Result<Situation, Error> {
        let first = first.clamp(1, LAST_ATTEMPT);
        let (mut failed, mut attempt) = (None, first);
        loop {
            let mut backup = match render(self.templates, self.kind, self.target, attempt) {
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
                if let Some(last) = failed {
                    return Ok(Situation::Failed { last, next: backup });
                }
                let former = self.former(former_attempt).await?;
                return Ok(former.map_or(Situation::Absent { backup }, |last| Situation::Former { last }));
            };
            let title = title(&self.kind.backup, &backup);
            if let Some(doubt) = doubt(&found, &Target::of(self.kind, self.target, attempt), self.target) {
                return Ok(Situation::Unusable(doubt.about(title)));
            }
            let created = metadata::time(&found, "creationTimestamp").unwrap_or(self.now);
            let verdict = judge(&self.kind.backup, &found, self.target);
            let is_given_up = verdict.is_given_up(self.kind, created, self.now);
            let last = Try { attempt, title, created, is_given_up };
            if verdict != Verdict::Failed && !is_given_up {
                return Ok(Situation::There { last, verdict });
            }
            if attempt == LAST_ATTEMPT {
                return Ok(Situation::Unusable(Unusable::Exhausted { tries: attempt }));
            }
            if attempt - first + 1 == MAX_LOOK_UPS {
                return Ok(Situation::Unfinished { last });
            }
            failed = Some(last);
            attempt += 1;
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

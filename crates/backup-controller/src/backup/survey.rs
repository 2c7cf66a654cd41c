//! Reading live how the backups of an object stand.

use jiff::Timestamp;
use kube::Client;
use operator_kit::{
    render::Templates,
    watch::{ReadError, ServedKinds},
};
use serde_json::Value;

use super::{
    Situation, Target, Try, Verdict,
    judge::{doubt, judge},
    render::render,
};
use crate::{
    error::{Error, Unusable},
    metadata,
    settings::{Backup, LAST_ATTEMPT, ProtectedKind},
};

/// Tries that are looked up in one pass.
pub(super) const LOOKUPS: u32 = 32;

/// An object whose backups are looked for.
pub struct Survey<'s> {
    pub client: &'s Client,
    pub served_kinds: &'s ServedKinds,
    pub templates: &'s Templates,
    pub kind: &'s ProtectedKind,
    /// The object, as it was read live.
    pub target: &'s Value,
    /// When it was read, by the server's clock.
    pub now: Timestamp,
}

impl Survey<'_> {
    /// How they stand, beginning with try number `first`.
    pub async fn situation(&self, first: u32, former_attempt: Option<u32>) -> Result<Situation, Error> {
        let first = first.clamp(1, LAST_ATTEMPT);
        let (mut failed, mut attempt) = (None, first);
        loop {
            let mut backup = match render(self.templates, self.kind, self.target, attempt) {
                Ok(backup) => backup,
                Err(problem) => return Ok(Situation::Unusable(problem)),
            };
            let found = match self.look_up(&mut backup).await {
                Err(problem @ ReadError::Forbidden { .. }) => {
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
            let last = Try { attempt, title, created };
            match judge(&self.kind.backup, &found, self.target) {
                Verdict::Failed if attempt == LAST_ATTEMPT => {
                    return Ok(Situation::Unusable(Unusable::Exhausted { tries: attempt }));
                }
                Verdict::Failed if attempt - first + 1 == LOOKUPS => {
                    return Ok(Situation::Unfinished { last });
                }
                Verdict::Failed => {
                    failed = Some(last);
                    attempt += 1;
                }
                verdict => return Ok(Situation::There { last, verdict }),
            }
        }
    }
}

pub(super) fn title(backup: &Backup, object: &Value) -> String {
    let (kind, namespace, name) =
        (&backup.resource.kind, metadata::text(object, "namespace"), metadata::text(object, "name"));
    if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") }
}

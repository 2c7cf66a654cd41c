//! The search for the present state of an object's backups, one attempt after another. Pure.

use jiff::Timestamp;
use serde_json::Value;

use super::{Situation, Target, Try, Verdict, doubt, judge};
use crate::{
    annotation::BackupStatus,
    error::Unusable,
    metadata,
    settings::{LAST_ATTEMPT, ProtectedKind},
};

/// Maximum number of attempts that are looked up in one pass.
pub const MAX_LOOK_UPS: u32 = 32;

/// A search. Its owner looks for the backup of [`Search::attempt`], and reports the outcome until there is a situation.
pub struct Search<'s> {
    kind: &'s ProtectedKind,
    /// The object, from a live read.
    target: &'s Value,
    /// The time of the read, by the server's clock.
    now: Timestamp,
    first: u32,
    attempt: u32,
    failed: Option<Try>,
}

impl<'s> Search<'s> {
    /// A search that begins with the attempt `first`.
    #[must_use]
    pub fn begin(kind: &'s ProtectedKind, target: &'s Value, now: Timestamp, first: u32) -> Self {
        let first = first.clamp(1, LAST_ATTEMPT);
        Self { kind, target, now, first, attempt: first, failed: None }
    }

    /// The attempt whose backup is to be looked up.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The situation if nothing has the name of this attempt's backup.
    #[must_use]
    pub fn ends_without(self, backup: Value) -> Situation {
        match self.failed {
            Some(last) => Situation::Failed { last, next: backup },
            None => Situation::Absent { backup },
        }
    }

    /// The situation if this object has the name of this attempt's backup; `None` if the next attempt is to be looked up.
    pub fn finds(&mut self, found: &Value) -> Option<Situation> {
        let (kind, target, attempt) = (self.kind, self.target, self.attempt);
        let created = metadata::time(found, "creationTimestamp").unwrap_or(self.now);
        let last = Try::new(&kind.backup, attempt, found, created);
        if let Some(doubt) = doubt(found, &Target::of(kind, target, attempt), target) {
            return Some(Situation::Unusable(doubt.about(last.title())));
        }
        let verdict = judge(&kind.backup, found, target);
        let is_given_up = verdict.is_given_up(kind, created, self.now);
        let last = Try { is_given_up, ..last };
        if verdict != Verdict::Failed && !is_given_up {
            return Some(Situation::There { last, verdict });
        }
        if attempt == LAST_ATTEMPT {
            return Some(Situation::Unusable(Unusable::Exhausted { tries: attempt }));
        }
        if attempt - self.first + 1 == MAX_LOOK_UPS {
            return Some(Situation::Unfinished { last });
        }
        self.failed = Some(last);
        self.attempt += 1;
        None
    }
}

/// The attempt with which the search for an object's backups begins: the last reported one, or the first if the object
/// may be released without a backup, because an attempt that was given up may have succeeded since. What is too many for one
/// search goes on where it was, so that it comes to an end.
#[must_use]
pub fn first_look_up(kind: &ProtectedKind, status: Option<&BackupStatus>) -> u32 {
    let may_release = !kind.always_holds() && kind.tries <= MAX_LOOK_UPS;
    let is_all_looked_at = |status: &&BackupStatus| may_release && status.attempt < MAX_LOOK_UPS;
    status.filter(|status| !is_all_looked_at(status)).map_or(1, |status| status.attempt)
}

//! The search for the present state of an object's backups, one attempt after another. Pure.

use std::collections::BTreeSet;

use catena_api::reason;
use jiff::Timestamp;
use operator_templates::Templates;
use operator_watch::Failure;
use serde_json::Value;

use super::{Situation, Target, Try, Verdict, doubt, judge, render};
use crate::{
    annotation::{BackupStatus, State},
    metadata,
    settings::{LAST_ATTEMPT, ProtectedKind},
};

/// Maximum number of attempts that are looked up in one pass.
pub const MAX_LOOK_UPS: u32 = 32;

/// A search. Its owner looks for the backup of [`Search::render`], and reports the outcome until there is a situation.
pub struct Search<'s> {
    kind: &'s ProtectedKind,
    /// The object, from a live read.
    target: &'s Value,
    /// The time of the read, by the server's clock.
    now: Timestamp,
    first: u32,
    attempt: u32,
    /// The last attempt that is known to have failed, whether its object is there or gone.
    known: u32,
    /// The last attempt that was recorded before its creation, and may have been created.
    begun: u32,
    status: Option<&'s BackupStatus>,
    failures: &'s mut Failures,
    failed: Option<Try>,
}

impl<'s> Search<'s> {
    /// A search for the backups of an object with this former status. It adds the failures that it finds to those that
    /// this process has seen before. `begun` is the last attempt that was recorded before its creation, and may have been
    /// created.
    #[must_use]
    pub fn begin(
        kind: &'s ProtectedKind,
        target: &'s Value,
        now: Timestamp,
        status: Option<&'s BackupStatus>,
        begun: u32,
        failures: &'s mut Failures,
    ) -> Self {
        let first = first_look_up(kind, status).clamp(1, LAST_ATTEMPT);
        let reported = status.map_or(0, |status| status.failed_by(&kind.policy));
        let known = reported.max(failures.last());
        Self { kind, target, now, first, attempt: first, known, begun, status, failures, failed: None }
    }

    /// The entry of the settings that the object belongs to.
    #[must_use]
    pub fn kind(&self) -> &'s ProtectedKind {
        self.kind
    }

    /// The backup that is to be looked up.
    ///
    /// # Errors
    ///
    /// Returns why there can be none.
    pub fn render(&self, templates: &Templates) -> Result<Value, Failure> {
        render(templates, self.kind, self.target, self.attempt)
    }

    /// The situation if nothing has the name of this attempt's backup; `None` if the next attempt is to be looked up,
    /// because this one failed and is gone, or is gone before its outcome was seen, as Jobs with a time to live.
    pub fn misses(&mut self, backup: Value) -> Option<Situation> {
        if self.attempt <= self.known.max(self.begun) {
            let is_given_up = self.was_reported(reason::BACKUP_OVERDUE);
            let has_vanished = self.attempt > self.known || self.was_reported(reason::BACKUP_VANISHED);
            let gone = Try::new(&self.kind.backup, self.attempt, &backup, self.now);
            return self.goes_on_after(Try { is_given_up, has_vanished, ..gone });
        }
        Some(match self.failed.take() {
            Some(last) => Situation::Failed { last, next: backup, seen: self.failures.number() },
            None => Situation::Absent { attempt: self.attempt, backup },
        })
    }

    /// Whether this attempt was reported to have failed for this reason.
    fn was_reported(&self, reason: &str) -> bool {
        self.status.is_some_and(|status| {
            status.state == State::Failed && status.attempt == self.attempt && status.reason == reason
        })
    }

    /// The situation if this object has the name of this attempt's backup; `None` if the next attempt is to be looked up.
    pub fn finds(&mut self, found: &Value) -> Option<Situation> {
        let (kind, target, attempt) = (self.kind, self.target, self.attempt);
        let created = metadata::time(found, "creationTimestamp").unwrap_or(self.now);
        let last = Try::new(&kind.backup, attempt, found, created);
        if let Some(doubt) = doubt(found, &Target::of(kind, target, attempt), target) {
            return Some(Situation::Unusable(doubt.about(&last.title())));
        }
        let verdict = judge(&kind.backup, found, target);
        let is_given_up = verdict.is_given_up(kind, created, self.now);
        let last = Try { is_given_up, ..last };
        // One that failed before, and is being deleted, is as good as gone.
        let has_failed = verdict == Verdict::Failed || verdict == Verdict::Going && attempt <= self.known;
        if !has_failed && !is_given_up {
            return Some(Situation::There { last, verdict });
        }
        if verdict != Verdict::Going {
            self.failures.add(attempt);
        }
        self.goes_on_after(last)
    }

    fn goes_on_after(&mut self, last: Try) -> Option<Situation> {
        if self.attempt == LAST_ATTEMPT {
            let message = format!(
                "{LAST_ATTEMPT} backups failed, and no further attempt is made; release the object without a backup with the annotation \
                 catena.dev/force-release: <uid> <reason>"
            );
            return Some(Situation::Unusable(Failure::stalled(reason::BACKUPS_EXHAUSTED, message)));
        }
        if self.attempt - self.first + 1 == MAX_LOOK_UPS {
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
fn first_look_up(kind: &ProtectedKind, status: Option<&BackupStatus>) -> u32 {
    let may_release = !kind.always_holds() && kind.tries <= MAX_LOOK_UPS;
    let is_all_looked_at = |status: &&BackupStatus| may_release && status.attempt < MAX_LOOK_UPS;
    status.filter(|status| !is_all_looked_at(status)).map_or(1, |status| match &status.failed {
        Some(failed) if failed.policy != kind.policy => 1,
        _ => status.attempt,
    })
}

/// The attempts by one policy that this process has seen to have failed or to have taken too long. A report on an object could be
/// forged, so that it releases nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    policy: String,
    attempts: BTreeSet<u32>,
}

impl Failures {
    /// None yet by a policy, given as [`ProtectedKind::policy`].
    #[must_use]
    pub fn none_by(policy: &str) -> Self {
        Self { policy: policy.to_owned(), attempts: BTreeSet::new() }
    }

    /// Whether they are by this policy.
    #[must_use]
    pub fn are_by(&self, policy: &str) -> bool {
        self.policy == policy
    }

    /// Adds an attempt.
    pub fn add(&mut self, attempt: u32) {
        self.attempts.insert(attempt);
    }

    /// Their number.
    #[must_use]
    pub fn number(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX)
    }

    /// The last of them; 0 for none.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.attempts.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{annotation::LastAttempt, fixtures::failed, settings::Settings};

    const SETTINGS: &str = r"
kinds:
  held: {apiVersion: v1, kind: ConfigMap, resource: configmaps, backup: b}
  released: {apiVersion: v1, kind: ConfigMap, resource: configmaps, backup: b, onFailure: Release, tries: 2}
backups:
  b: {apiVersion: v1, kind: Secret, resource: secrets, template: x, succeeded: 'true'}
";

    /// An attempt that was given up may have succeeded since.
    #[test]
    fn the_look_up_begins_with_the_first_attempt_where_release_is_allowed() {
        let settings: Settings = serde_saphyr::from_str(SETTINGS).unwrap();
        let first =
            |id: &str, status: Option<BackupStatus>| first_look_up(&settings.kinds[id], status.as_ref());
        assert_eq!((first("held", Some(failed(3))), first("held", None)), (3, 1));
        assert_eq!((first("released", Some(failed(3))), first("released", None)), (1, 1));
        // A search of 32 that begins at 1 again and again would never end.
        for attempt in [32, 33] {
            assert_eq!(first("released", Some(failed(attempt))), attempt);
        }
    }

    #[test]
    fn another_policy_begins_with_its_own_first_attempt() {
        let settings: Settings = serde_saphyr::from_str(SETTINGS).unwrap();
        let kind = &settings.kinds["held"];
        let first = |policy: &str| {
            let by = LastAttempt { policy: policy.to_owned(), last: 3 };
            first_look_up(kind, Some(&BackupStatus { failed: Some(by), ..failed(3) }))
        };
        assert_eq!((first(&kind.policy), first("another")), (3, 1));
    }
}

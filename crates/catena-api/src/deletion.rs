//! The report on an object that is being deleted.

use std::time::Duration;

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};

use crate::BlockedBy;

/// Reason of the condition `Ready`, and of `blockedBy`, while an object is being deleted.
pub const TERMINATING: &str = "Terminating";

/// Message of `blockedBy` about a dependent that a deletion in the foreground waits for. The finalizers are those of its
/// owner, and not its own.
const DELETED_BEFORE_OWNER: &str =
    "has to be gone before its owner, which is being deleted in the foreground";

/// Age from which a deletion is reported: most objects are gone before.
const REPORT_DELAY: Duration = Duration::from_secs(2);

/// Finalizer of the API server for a deletion in the foreground.
const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer of the API server for a deletion that releases the dependents.
const ORPHAN: &str = "orphan";

/// The deletion of an object that still exists.
#[derive(Clone, Copy, Debug)]
pub struct Deletion<'m> {
    since: &'m Time,
    finalizers: &'m [String],
}

impl<'m> Deletion<'m> {
    /// The deletion of the object with this metadata, if it has begun.
    #[must_use]
    pub fn of(metadata: &'m ObjectMeta) -> Option<Self> {
        let since = metadata.deletion_timestamp.as_ref()?;
        Some(Self::new(since, metadata.finalizers.as_deref().unwrap_or_default()))
    }

    /// A deletion that began then and waits for these finalizers.
    #[must_use]
    pub fn new(since: &'m Time, finalizers: &'m [String]) -> Self {
        Self { since, finalizers }
    }

    /// The delay until it is reported; `None` means now.
    #[must_use]
    pub fn due_in(&self, now: Timestamp) -> Option<Duration> {
        let age = Duration::try_from(now.duration_since(self.since.0)).unwrap_or_default();
        REPORT_DELAY.checked_sub(age).filter(|left| !left.is_zero())
    }

    /// What it waits for: a dependent that has to be gone before, if there is one, or the object itself while it has finalizers.
    #[must_use]
    pub fn blocked_by(&self, itself: [&str; 3], dependent: Option<[&str; 3]>) -> BlockedBy {
        let is_foreground = self.finalizers.iter().any(|finalizer| finalizer == FOREGROUND);
        let dependent = dependent.filter(|_| is_foreground);
        let message = dependent.map_or_else(|| self.message(), |_| DELETED_BEFORE_OWNER.to_owned());
        BlockedBy::new(dependent.unwrap_or(itself), TERMINATING, &message, Some(self.since.clone()))
    }

    /// The message of the report, with everything that the deletion waits for.
    #[must_use]
    pub fn message(&self) -> String {
        let waits_for: Vec<_> = self.finalizers.iter().map(|finalizer| obstacle(finalizer)).collect();
        if waits_for.is_empty() {
            return "is being deleted".to_owned();
        }
        format!("is being deleted, and waits for {}", waits_for.join(", and for "))
    }
}

/// The meaning of a finalizer.
fn obstacle(finalizer: &str) -> String {
    match finalizer {
        FOREGROUND => "the deletion of its dependents".to_owned(),
        ORPHAN => "the garbage collector to release its dependents".to_owned(),
        other => format!("the controller of the finalizer {other:?} to remove it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(finalizers: &[&str]) -> ObjectMeta {
        ObjectMeta {
            deletion_timestamp: Some(Time(Timestamp::from_second(100).unwrap())),
            finalizers: Some(finalizers.iter().map(ToString::to_string).collect()),
            ..ObjectMeta::default()
        }
    }

    #[test]
    fn each_finalizer_is_named_with_its_meaning() {
        assert!(Deletion::of(&ObjectMeta::default()).is_none());
        let metadata = metadata(&["foregroundDeletion", "example.com/hold"]);
        let deletion = Deletion::of(&metadata).unwrap();
        let [own, dependent] = ["web", "web-0"].map(|name| ["v1", "Pod", name]);
        let name = |dependent| deletion.blocked_by(own, dependent).name;
        assert_eq!([name(None), name(Some(dependent))], ["web", "web-0"]);
        assert_eq!(
            deletion.message(),
            "is being deleted, and waits for the deletion of its dependents, and for the controller of the finalizer \"example.com/hold\" to remove it"
        );
    }

    #[test]
    fn a_deletion_that_may_end_by_itself_in_a_moment_is_not_reported_yet() {
        let metadata = metadata(&[]);
        let deletion = Deletion::of(&metadata).unwrap();
        let at = |second| deletion.due_in(Timestamp::from_second(second).unwrap());
        assert_eq!(at(101), Some(Duration::from_secs(1)));
        assert_eq!(at(102), None);
        assert_eq!(at(90), Some(REPORT_DELAY), "the clocks differ");
        assert_eq!(deletion.message(), "is being deleted");
    }
}

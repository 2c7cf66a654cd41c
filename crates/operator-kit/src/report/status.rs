//! Conditions in the form that kstatus and `kubectl wait` read, and when a status is written.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use operator_watch::Failure;

/// Maximum length of a message in the API's schema.
const LONGEST_MESSAGE: usize = 32_768;

/// The conditions of one status, all of one generation.
#[derive(Clone, Debug)]
pub struct Conditions {
    generation: i64,
    now: Timestamp,
    list: Vec<Condition>,
}

impl Conditions {
    /// The object matches its spec.
    pub const READY: &str = "Ready";
    /// A rollout is in progress or complete.
    pub const PROGRESSING: &str = "Progressing";
    /// Present only while true: work is under way (kstatus: `InProgress`).
    pub const RECONCILING: &str = "Reconciling";
    /// Present only while true: work cannot continue without a change (kstatus: `Failed`).
    pub const STALLED: &str = "Stalled";
    /// Present only while true: the author sets parameters that the template does not read.
    pub const UNREAD_PARAMETERS: &str = "UnreadParameters";

    /// Conditions about `generation`, as of `now`.
    #[must_use]
    pub fn new(generation: i64, now: Timestamp) -> Self {
        Self { generation, now, list: Vec::new() }
    }

    /// Adds a condition.
    #[must_use]
    pub fn with(self, type_: &str, status: bool, reason: &str, message: impl Into<String>) -> Self {
        self.push(type_, if status { "True" } else { "False" }, reason, &message.into())
    }

    /// Adds a condition with the status `Unknown`.
    #[must_use]
    pub fn unknown(self, type_: &str, reason: &str, message: impl Into<String>) -> Self {
        self.push(type_, "Unknown", reason, &message.into())
    }

    fn push(mut self, type_: &str, status: &str, reason: &str, message: &str) -> Self {
        self.list.push(Condition {
            type_: type_.into(),
            status: status.into(),
            reason: reason.into(),
            message: Failure::clip(message, LONGEST_MESSAGE),
            observed_generation: Some(self.generation),
            last_transition_time: Time(self.now),
        });
        self
    }

    /// Adds a condition that is present only while it is true.
    #[must_use]
    pub fn if_true(self, type_: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        if holds { self.with(type_, true, reason, message) } else { self }
    }

    /// Adds the condition [`UNREAD_PARAMETERS`] for the parameters that a template does not read.
    #[must_use]
    pub fn with_unread_parameters(self, template: &str, unread: &[String]) -> Self {
        let names = unread.join(", ");
        let message =
            format!("the template {template:?} does not read {names}; correct the name, or remove it");
        self.if_true(Self::UNREAD_PARAMETERS, !unread.is_empty(), "NotRead", message)
    }

    /// The list, in which a condition with an unchanged status keeps the time of its last transition.
    #[must_use]
    pub fn with_transition_times(mut self, before: &[Condition]) -> Vec<Condition> {
        for condition in &mut self.list {
            if let Some(old) =
                Self::find(before, &condition.type_).filter(|old| old.status == condition.status)
            {
                condition.last_transition_time = old.last_transition_time.clone();
            }
        }
        self.list
    }

    /// The conditions of these types, in their order; other controllers own all others.
    #[must_use]
    pub fn of_types(conditions: &[Condition], types: &[&str]) -> Vec<Condition> {
        types.iter().filter_map(|type_| Self::find(conditions, type_)).cloned().collect()
    }

    /// The condition of a type.
    #[must_use]
    pub fn find<'c>(conditions: &'c [Condition], type_: &str) -> Option<&'c Condition> {
        conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition of a type exists and is true.
    #[must_use]
    pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
        Self::find(conditions, type_).is_some_and(|condition| condition.status == "True")
    }

    /// Whether the condition of a type exists and is false.
    #[must_use]
    pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
        Self::find(conditions, type_).is_some_and(|condition| condition.status == "False")
    }
}

/// Maximum delay of the first status of an object: an object that is ready by then costs one write instead of two.
/// Until then, the default of its definition shows that no controller has reported yet.
const FIRST_STATUS_DELAY: Duration = Duration::from_secs(30);

/// The age of the status of an object, as far as this process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusAge {
    /// The time since this process wrote it.
    Written(Duration),
    /// This process has not written it yet; the time since it first saw the object.
    Unwritten(Duration),
}

impl StatusAge {
    /// The minimum age of a status when others wait for a change of it.
    pub const NOW: Duration = Duration::ZERO;
    /// The minimum age when only numbers changed, and they appear stable now: people, autoscalers and parents wait for them,
    /// and constantly fluctuating numbers still cost few writes.
    pub const STABLE: Duration = Duration::from_secs(5);
    /// The minimum age when only numbers changed, and they keep changing.
    pub const PROGRESSING: Duration = Duration::from_secs(20);

    /// The delay before a changed status is written, by the minimum age of the one before; `None` means now.
    ///
    /// Changes of numbers are batched, so that a rollout of many replicas costs few writes.
    #[must_use]
    pub fn due_in(self, minimum: Duration) -> Option<Duration> {
        let left = match self {
            _ if minimum.is_zero() => return None,
            Self::Written(age) => minimum.saturating_sub(age),
            Self::Unwritten(age) => FIRST_STATUS_DELAY.saturating_sub(age),
        };
        Some(left).filter(|left| !left.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_condition_that_did_not_flip_keeps_its_transition_time() {
        let before = Conditions::new(1, at(10))
            .with(Conditions::READY, false, "Waiting", "1 of 3")
            .with_transition_times(&[]);
        let same = Conditions::new(2, at(20))
            .with(Conditions::READY, false, "Waiting", "2 of 3")
            .with_transition_times(&before);
        assert_eq!(same[0].last_transition_time, Time(at(10)));
        assert_eq!((same[0].observed_generation, same[0].message.as_str()), (Some(2), "2 of 3"));
        let flipped = Conditions::new(2, at(20))
            .with(Conditions::READY, true, "Complete", "")
            .with_transition_times(&before);
        assert_eq!(flipped[0].last_transition_time, Time(at(20)));
    }

    #[test]
    fn a_condition_that_holds_no_more_is_left_out() {
        let list =
            Conditions::new(1, at(0)).if_true(Conditions::STALLED, false, "X", "").with_transition_times(&[]);
        assert!(list.is_empty());
    }

    #[test]
    fn conditions_of_others_are_told_apart_by_their_types() {
        let all =
            Conditions::new(1, at(0)).with("Theirs", true, "X", "").with(Conditions::STALLED, true, "X", "");
        let all = all.with(Conditions::READY, true, "X", "").with_transition_times(&[]);
        let own =
            Conditions::of_types(&all, &[Conditions::READY, Conditions::RECONCILING, Conditions::STALLED]);
        assert_eq!(
            own.iter().map(|own| own.type_.as_str()).collect::<Vec<_>>(),
            [Conditions::READY, Conditions::STALLED]
        );
    }

    #[test]
    fn a_message_is_cut_to_what_the_api_takes() {
        let list = Conditions::new(1, at(0))
            .with(Conditions::READY, true, "X", "ä".repeat(40_000))
            .with_transition_times(&[]);
        assert!(list[0].message.len() <= LONGEST_MESSAGE);
    }

    #[test]
    fn numbers_are_gathered_and_what_others_wait_for_is_not() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Written(second).due_in(StatusAge::NOW), None);
        assert_eq!(StatusAge::Written(second).due_in(StatusAge::PROGRESSING), Some(19 * second));
        assert_eq!(StatusAge::Written(StatusAge::PROGRESSING).due_in(StatusAge::PROGRESSING), None);
    }

    #[test]
    fn numbers_that_came_to_rest_are_written_soon_but_not_again_at_once() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Written(second).due_in(StatusAge::STABLE), Some(4 * second));
        assert_eq!(StatusAge::Written(StatusAge::STABLE).due_in(StatusAge::STABLE), None);
    }

    #[test]
    fn a_first_status_waits_shortly_for_readiness() {
        let second = Duration::from_secs(1);
        assert_eq!(StatusAge::Unwritten(second).due_in(StatusAge::NOW), None);
        assert_eq!(StatusAge::Unwritten(second).due_in(StatusAge::PROGRESSING), Some(29 * second));
        assert_eq!(StatusAge::Unwritten(FIRST_STATUS_DELAY).due_in(StatusAge::PROGRESSING), None);
    }
}

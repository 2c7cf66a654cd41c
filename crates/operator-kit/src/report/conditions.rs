//! Conditions in the form that kstatus and `kubectl wait` read.

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
    pub fn while_true(self, type_: &str, holds: bool, reason: &str, message: impl Into<String>) -> Self {
        if holds { self.with(type_, true, reason, message) } else { self }
    }

    /// Adds the condition [`UNREAD_PARAMETERS`] for the parameters that a template does not read.
    #[must_use]
    pub fn with_unread_parameters(self, template: &str, unread: &[String]) -> Self {
        let names = unread.join(", ");
        let message =
            format!("the template {template:?} does not read {names}; correct the name, or remove it");
        self.while_true(Self::UNREAD_PARAMETERS, !unread.is_empty(), "NotRead", message)
    }

    /// The list, in which a condition with an unchanged status keeps the time of its last transition.
    #[must_use]
    pub fn since(mut self, before: &[Condition]) -> Vec<Condition> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_condition_that_did_not_flip_keeps_its_transition_time() {
        let before =
            Conditions::new(1, at(10)).with(Conditions::READY, false, "Waiting", "1 of 3").since(&[]);
        let same =
            Conditions::new(2, at(20)).with(Conditions::READY, false, "Waiting", "2 of 3").since(&before);
        assert_eq!(same[0].last_transition_time, Time(at(10)));
        assert_eq!((same[0].observed_generation, same[0].message.as_str()), (Some(2), "2 of 3"));
        let flipped = Conditions::new(2, at(20)).with(Conditions::READY, true, "Complete", "").since(&before);
        assert_eq!(flipped[0].last_transition_time, Time(at(20)));
    }

    #[test]
    fn a_condition_that_holds_no_more_is_left_out() {
        let list = Conditions::new(1, at(0)).while_true(Conditions::STALLED, false, "X", "").since(&[]);
        assert!(list.is_empty());
    }

    #[test]
    fn conditions_of_others_are_told_apart_by_their_types() {
        let all =
            Conditions::new(1, at(0)).with("Theirs", true, "X", "").with(Conditions::STALLED, true, "X", "");
        let all = all.with(Conditions::READY, true, "X", "").since(&[]);
        let own =
            Conditions::of_types(&all, &[Conditions::READY, Conditions::RECONCILING, Conditions::STALLED]);
        assert_eq!(
            own.iter().map(|own| own.type_.as_str()).collect::<Vec<_>>(),
            [Conditions::READY, Conditions::STALLED]
        );
    }

    #[test]
    fn a_message_is_cut_to_what_the_api_takes() {
        let list =
            Conditions::new(1, at(0)).with(Conditions::READY, true, "X", "ä".repeat(40_000)).since(&[]);
        assert!(list[0].message.len() <= LONGEST_MESSAGE);
    }
}

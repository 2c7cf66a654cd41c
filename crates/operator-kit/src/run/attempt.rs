use std::collections::BTreeMap;

use operator_watch::Failure;

/// The steps that a pass over an object may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Anything.
    Allowed,
    /// Only reporting the failure from which the object is backing off.
    Deferred(Failure),
    /// Anything except the steps and items that are backing off. It also includes items that may be retried.
    Without(HeldUp),
}

impl Attempt {
    /// The failure that holds up everything, or else a step; failures that pass by themselves are not reported.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Allowed => None,
            Self::Deferred(failure) => Some(failure),
            Self::Without(held_up) => {
                let mut failures = held_up.0.values().filter_map(|parts| Some(&parts.get(&None)?.failure));
                failures.find(|failure| !failure.is_expected)
            }
        }
    }

    /// The failure that holds up one step as a whole.
    #[must_use]
    pub fn step_failure(&self, step: &str) -> Option<&Failure> {
        match self {
            Self::Allowed => None,
            Self::Deferred(failure) => Some(failure),
            Self::Without(_) => Some(&self.parts(step)?.get(&None)?.failure),
        }
    }

    /// The failure of an item of a step that still matters; failures that pass by themselves are not reported.
    #[must_use]
    pub fn item_failure(&self, step: &str, matters: impl Fn(&str) -> bool) -> Option<&Failure> {
        let of_items = self.parts(step)?.iter().filter(|(item, _)| item.as_deref().is_some_and(&matters));
        of_items.map(|(_, held)| &held.failure).find(|failure| !failure.is_expected)
    }

    /// Whether a step is held up.
    #[must_use]
    pub fn holds(&self, step: &str) -> bool {
        self.step_failure(step).is_some()
    }

    /// Whether a step is held up for one item.
    #[must_use]
    pub fn holds_item(&self, step: &str, item: &str) -> bool {
        let held = self.parts(step).and_then(|parts| parts.get(&Some(item.to_owned())));
        self.holds(step) || held.is_some_and(|held| !held.is_due)
    }

    /// The failure of the last try of a step for an item; it may be due for a retry.
    #[must_use]
    pub fn last_failure(&self, step: &str, item: &str) -> Option<&Failure> {
        Some(&self.parts(step)?.get(&Some(item.to_owned()))?.failure)
    }

    /// How many items of a step are held up, each by itself.
    #[must_use]
    pub fn held_items(&self, step: &str) -> usize {
        let is_held = |(item, held): &(&Option<String>, &Held)| item.is_some() && !held.is_due;
        self.parts(step).map_or(0, |parts| parts.iter().filter(is_held).count())
    }

    fn parts(&self, step: &str) -> Option<&BTreeMap<Option<String>, Held>> {
        if let Self::Without(held_up) = self { held_up.0.get(step) } else { None }
    }
}

/// The failures from which an object is backing off, by step and item, or without an item for the step as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldUp(BTreeMap<&'static str, BTreeMap<Option<String>, Held>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    failure: Failure,
    /// Whether it may be retried.
    is_due: bool,
}

impl HeldUp {
    /// The same, without this step too.
    #[must_use]
    pub fn and_step(self, step: &'static str, failure: Failure) -> Self {
        self.and(step, None, failure, false)
    }

    /// The same, without this item of a step too.
    #[must_use]
    pub fn and_item(self, step: &'static str, item: &str, failure: Failure) -> Self {
        self.and(step, Some(item), failure, false)
    }

    /// The same, with a failed item of a step that may be retried.
    #[must_use]
    pub fn and_due(self, step: &'static str, item: &str, failure: Failure) -> Self {
        self.and(step, Some(item), failure, true)
    }

    pub(crate) fn and(mut self, step: &'static str, item: Option<&str>, failure: Failure, due: bool) -> Self {
        let item = item.map(str::to_owned);
        self.0.entry(step).or_default().insert(item, Held { failure, is_due: due });
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

use std::collections::BTreeMap;

use crate::report::Failure;

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
                let mut failures = held_up.0.values().filter_map(|held| held.whole.as_ref());
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
            Self::Without(held_up) => held_up.0.get(step).and_then(|held| held.whole.as_ref()),
        }
    }

    /// The failure of an item of a step that still matters; failures that pass by themselves are not reported.
    #[must_use]
    pub fn item_failure(&self, step: &str, matters: impl Fn(&str) -> bool) -> Option<&Failure> {
        let of_items = self.items(step)?.iter().filter(|(item, _)| matters(item));
        of_items.map(|(_, item)| &item.failure).find(|failure| !failure.is_expected)
    }

    /// Whether a step is held up.
    #[must_use]
    pub fn holds(&self, step: &str) -> bool {
        match self {
            Self::Allowed => false,
            Self::Deferred(_) => true,
            Self::Without(held_up) => held_up.0.get(step).is_some_and(|held| held.whole.is_some()),
        }
    }

    /// Whether a step is held up for one item.
    #[must_use]
    pub fn holds_item(&self, step: &str, item: &str) -> bool {
        let held = self.items(step).and_then(|items| items.get(item));
        self.holds(step) || held.is_some_and(|item| !item.is_due)
    }

    /// The failure of the last try of a step for an item; it may be due for a retry.
    #[must_use]
    pub fn last_failure(&self, step: &str, item: &str) -> Option<&Failure> {
        self.items(step)?.get(item).map(|held| &held.failure)
    }

    /// How many items of a step are held up, each by itself.
    #[must_use]
    pub fn held_items(&self, step: &str) -> usize {
        self.items(step).map_or(0, |items| items.values().filter(|item| !item.is_due).count())
    }

    fn items(&self, step: &str) -> Option<&BTreeMap<String, HeldItem>> {
        match self {
            Self::Allowed | Self::Deferred(_) => None,
            Self::Without(held_up) => held_up.0.get(step).map(|held| &held.items),
        }
    }
}

/// The failures from which an object is backing off, by step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeldUp(BTreeMap<&'static str, HeldStep>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct HeldStep {
    /// The failure of the step as a whole.
    whole: Option<Failure>,
    /// Single items that failed.
    items: BTreeMap<String, HeldItem>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct HeldItem {
    failure: Failure,
    /// Whether it may be retried.
    is_due: bool,
}

impl HeldUp {
    /// The same, without this step too.
    #[must_use]
    pub fn and_step(mut self, step: &'static str, failure: Failure) -> Self {
        self.0.entry(step).or_default().whole = Some(failure);
        self
    }

    /// The same, without this item of a step too.
    #[must_use]
    pub fn and_item(self, step: &'static str, item: &str, failure: Failure) -> Self {
        self.and(step, item, HeldItem { failure, is_due: false })
    }

    /// The same, with a failed item of a step that may be retried.
    #[must_use]
    pub fn and_due(self, step: &'static str, item: &str, failure: Failure) -> Self {
        self.and(step, item, HeldItem { failure, is_due: true })
    }

    fn and(mut self, step: &'static str, item: &str, held: HeldItem) -> Self {
        self.0.entry(step).or_default().items.insert(item.to_owned(), held);
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

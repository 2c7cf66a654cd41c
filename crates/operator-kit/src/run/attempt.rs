use std::collections::BTreeMap;

use crate::report::Failure;

/// What a pass over an object may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// Anything.
    Allowed,
    /// Nothing but reporting the failure: the object is backing off from it.
    Deferred(Failure),
    /// Anything but the steps and items that are backing off. It also tells of items that may be tried again.
    Without(HeldUp),
}

impl Attempt {
    /// The failure that holds up everything, or else a step; one that passes by itself is not worth a word.
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

    /// The failure of one of the items of a step that still matter; one that passes by itself is not worth a word.
    #[must_use]
    pub fn item_failure(&self, step: &str, matters: impl Fn(&str) -> bool) -> Option<&Failure> {
        let of_items = self.items(step)?.iter().filter(|(item, _)| matters(item));
        of_items.map(|(_, item)| &item.failure).find(|failure| !failure.is_expected)
    }

    /// Whether a step is not to be taken.
    #[must_use]
    pub fn holds(&self, step: &str) -> bool {
        match self {
            Self::Allowed => false,
            Self::Deferred(_) => true,
            Self::Without(held_up) => held_up.0.get(step).is_some_and(|held| held.whole.is_some()),
        }
    }

    /// Whether a step is not to be taken for one item.
    #[must_use]
    pub fn holds_item(&self, step: &str, item: &str) -> bool {
        let held = self.items(step).and_then(|items| items.get(item));
        self.holds(step) || held.is_some_and(|item| !item.is_due)
    }

    /// Whether a step failed for an item when it was last tried; it may be due for another try.
    #[must_use]
    pub fn failed_item(&self, step: &str, item: &str) -> bool {
        self.items(step).is_some_and(|items| items.contains_key(item))
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

/// What an object is backing off from, step by step.
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
    /// Whether it may be tried again.
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

    /// The same, with an item of a step that failed and may be tried again.
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

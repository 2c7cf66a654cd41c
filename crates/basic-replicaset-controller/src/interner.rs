//! Texts that many pods share.

use std::{collections::HashSet, sync::Arc};

use parking_lot::Mutex;

/// Number of texts from which on unused ones are looked for.
const MIN_CLEANED: usize = 1024;

/// Texts that many rows share, such as the uid of their owner: each of them is in memory once.
#[derive(Default)]
pub struct Interner(Mutex<Texts>);

#[derive(Default)]
struct Texts {
    all: HashSet<Arc<str>>,
    /// The number of texts that were in use at the last cleaning.
    in_use: usize,
}

impl Interner {
    /// The one copy of a text.
    pub fn intern(&self, text: &str) -> Arc<str> {
        let mut texts = self.0.lock();
        if let Some(known) = texts.all.get(text) {
            return known.clone();
        }
        // At double the number, so that cleaning costs each new text a constant time.
        if texts.all.len() >= MIN_CLEANED.max(2 * texts.in_use) {
            texts.all.retain(|text| Arc::strong_count(text) > 1);
            texts.all.shrink_to_fit();
            texts.in_use = texts.all.len();
        }
        let new: Arc<str> = text.into();
        texts.all.insert(new.clone());
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_in_memory_once() {
        let interner = Interner::default();
        let [one, two, other] = ["shop", "shop", "lab"].map(|text| interner.intern(text));
        assert!(Arc::ptr_eq(&one, &two) && !Arc::ptr_eq(&one, &other));
    }

    #[test]
    fn texts_that_no_row_uses_any_more_are_dropped() {
        let interner = Interner::default();
        let kept: Vec<_> = (0..100).map(|number| interner.intern(&format!("kept-{number}"))).collect();
        for number in 0..10 * MIN_CLEANED {
            interner.intern(&number.to_string());
        }
        let known = interner.0.lock().all.len();
        assert!(known <= MIN_CLEANED + kept.len(), "{known}");
        assert!(Arc::ptr_eq(&kept[7], &interner.intern("kept-7")));
    }
}

//! The outlines that were parsed, so that each is parsed once.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;

use super::outline::Outline;

/// Maximum total length of the outlines that are kept, in bytes. A parsed one takes about ten times its length, and one of
/// many small maps 70 times.
const MAX_KEPT: usize = 128 * 1024;

/// The outlines of the templates of one set.
#[derive(Default)]
pub(super) struct Outlines {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    outlines: HashMap<String, Parsed>,
    /// The total length of their texts.
    length: usize,
}

/// What is known of an outline.
enum Parsed {
    /// It may never come again, and was not parsed.
    NotYet,
    Yes(Arc<Value>),
    /// Its strings are not all values as a whole.
    Unusable,
}

impl Outlines {
    /// The object of an outline that was parsed.
    pub fn object(&self, outline: &Outline) -> Option<Value> {
        let parsed = match self.known.lock().outlines.get(&outline.text) {
            Some(Parsed::Yes(parsed)) => parsed.clone(),
            _ => return None,
        };
        Some(outline.filled(&parsed))
    }

    /// Remembers the outline of an object, and parses it if it comes again, or else `now`. Returns whether it is then known that
    /// its strings are no structure.
    pub fn learn(&self, outline: &Outline, object: &Value, now: bool) -> bool {
        let mut known = self.known.lock();
        let comes_again = known.outlines.contains_key(&outline.text);
        if !comes_again {
            known.add(&outline.text);
        }
        let Some(parsed) = known.outlines.get_mut(&outline.text) else { return false };
        if matches!(parsed, Parsed::NotYet) && (now || comes_again) {
            *parsed = outline.parsed_for(object).map_or(Parsed::Unusable, |it| Parsed::Yes(Arc::new(it)));
        }
        matches!(parsed, Parsed::Yes(_))
    }
}

impl Known {
    fn add(&mut self, text: &str) {
        if text.len() > MAX_KEPT {
            return;
        }
        if self.length + text.len() > MAX_KEPT {
            *self = Self::default();
        }
        self.length += text.len();
        self.outlines.insert(text.to_owned(), Parsed::NotYet);
    }
}

#[cfg(test)]
impl Outlines {
    /// The total length of the outlines that are kept, in bytes.
    pub fn length(&self) -> usize {
        self.known.lock().outlines.keys().map(String::len).sum()
    }
}

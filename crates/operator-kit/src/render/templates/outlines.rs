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
        let parsed = match self.known.lock().outlines.get(outline.text()) {
            Some(Parsed::Yes(parsed)) => parsed.clone(),
            _ => return None,
        };
        Some(outline.filled(&parsed))
    }

    /// Whether the strings of this outline of an object are no structure in it.
    pub fn proves(&self, outline: &Outline, object: &Value) -> bool {
        // Nothing is parsed when it comes for the first time.
        self.learn(outline, object);
        self.learn(outline, object);
        self.object(outline).is_some()
    }

    /// Remembers the outline of an object, and parses one that comes again.
    pub fn learn(&self, outline: &Outline, object: &Value) {
        let mut known = self.known.lock();
        match known.outlines.get_mut(outline.text()) {
            Some(parsed @ Parsed::NotYet) => {
                *parsed = outline.parsed_for(object).map_or(Parsed::Unusable, |it| Parsed::Yes(Arc::new(it)));
            }
            Some(Parsed::Yes(_) | Parsed::Unusable) => {}
            None => known.add(outline.text()),
        }
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

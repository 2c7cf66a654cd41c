//! Hashes of states.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The hash of a value.
pub fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

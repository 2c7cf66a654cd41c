//! Marks, which stand for values while a text is parsed. Neither an author of a value nor one of a template can guess them.

use std::{
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

static START: LazyLock<String> = LazyLock::new(|| format!("x@{:016x}x", RandomState::new().hash_one("mark")));
const END: char = '@';

/// The mark for the value with a number, as JSON.
pub(super) fn mark(number: usize) -> String {
    format!("\"{}{number}{END}\"", *START)
}

/// Whether a mark is in a text.
pub(super) fn is_in(text: &str) -> bool {
    text.contains(&**START)
}

/// The number of the value that a text stands for as a whole.
pub(super) fn number(text: &str) -> Option<usize> {
    text.strip_prefix(&**START)?.strip_suffix(END)?.parse().ok()
}

/// The texts before and after the first mark in a text, and the number of its value.
pub(super) fn split(text: &str) -> Option<(&str, usize, &str)> {
    let (before, rest) = text.split_once(&**START)?;
    let (number, after) = rest.split_once(END)?;
    Some((before, number.parse().ok()?, after))
}

//! Texts of bounded length.

use crate::Failure;

impl Failure {
    /// The beginning of a text, to at most so many bytes.
    #[must_use]
    pub fn clip(text: &str, longest: usize) -> String {
        let end = (0..=longest.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
        text[..end].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(Failure::clip("äöü", 3), "ä");
        assert_eq!(Failure::clip("abc", 10), "abc");
    }
}

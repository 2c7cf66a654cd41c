//! The line of a program's output that says why it ended.

use crate::paint::cut;

/// One sentence has to hold it.
const MAX_LENGTH: usize = 300;

/// The last error in an output, or else its last line: below an error, its causes may be listed.
pub fn last_words(output: &str) -> Option<String> {
    let is_error = |line: &&str| {
        ["error: ", "fatal: ", "panicked at"].iter().any(|word| line.to_lowercase().contains(word))
    };
    let line = output.lines().rfind(is_error);
    line.or_else(|| output.lines().rfind(|line| !line.trim().is_empty())).map(shortened)
}

/// A line without its margins, and not too long.
pub fn shortened(line: &str) -> String {
    cut(line.trim(), MAX_LENGTH).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_error_comes_before_its_causes_and_before_other_lines() {
        let output = "starting\nError: --log \"x\" is not valid\n\nCaused by:\n    0: a level\n";
        assert_eq!(last_words(output).as_deref(), Some("Error: --log \"x\" is not valid"));
        assert_eq!(last_words("starting\nno database\n\n").as_deref(), Some("no database"));
        assert_eq!(last_words(" \n"), None);
        assert_eq!(shortened(&"ä".repeat(400)).chars().count(), 301);
    }
}

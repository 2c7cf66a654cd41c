//! The report about a kept command. Pure.

use jiff::SignedDuration;

use super::Action;

/// Time for which a deletion is remembered from when the command is gone, to recognise one that is created again: tools
/// reconcile at least once an hour.
pub const REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Number of remembered deletions.
pub const REMEMBERED: usize = 4000;

/// The end of the memory of deletions, in the words of the message and of the pages.
pub const MEMORY: &str = "command-reaper remembers its last 4,000 deletions for an hour each, and forgets them when its process ends";

/// A command is kept because this label or annotation marks it as declared elsewhere.
#[must_use]
pub fn kept(mark: &str) -> Action {
    let note = format!(
        "its TTL has expired, but it is kept: {mark} marks it as declared elsewhere, from where it would be created and run again; delete it there"
    );
    Action::Tell { is_warning: false, reason: "KeptAsDeclared", note }
}

/// A command runs once more, and is kept from now on.
#[must_use]
pub fn created_again() -> Action {
    let note = format!(
        "it is kept whatever its TTL: it was deleted after its TTL and created again with the same name and spec, so that it runs once more unless it came back with its outcome, and its annotation catena.dev/kept prevents a further repetition; remove its TTL where it is declared, or give it another name to run it on purpose ({MEMORY})"
    );
    Action::Tell { is_warning: true, reason: "CreatedAgain", note }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(action: Action) -> (bool, String) {
        match action {
            Action::Tell { is_warning, note, .. } => (is_warning, note),
            other => panic!("instead of telling something: {other:?}"),
        }
    }

    #[test]
    fn a_notice_says_what_is_so_why_and_what_to_do_and_warns_only_of_a_command_that_runs_once_more() {
        let (is_warning, note) = told(kept("helm.sh/chart"));
        assert!(!is_warning && note.contains("helm.sh/chart marks it as declared elsewhere"), "{note}");
        assert!(note.ends_with("delete it there"), "{note}");
        let (is_warning, note) = told(created_again());
        assert!(
            is_warning && note.contains("with the same name and spec, so that it runs once more"),
            "{note}"
        );
        assert!(note.contains("remove its TTL where it is declared"), "{note}");
    }

    #[test]
    fn the_end_of_the_memory_is_told_in_the_same_words_everywhere_and_as_it_is() {
        assert_eq!(
            (REMEMBERED, REMEMBERED_FOR),
            (4000, SignedDuration::from_secs(3600)),
            "the words would be wrong"
        );
        assert!(told(created_again()).1.contains(MEMORY));
        for page in [
            include_str!("../../../../charts/command-reaper/README.md"),
            include_str!("../../../../docs/when-something-is-stuck.md"),
            include_str!("../../../../docs/decisions/0004-a-declared-command-is-its-own-tombstone.md"),
        ] {
            let words: Vec<&str> = page.split_whitespace().collect();
            assert!(words.join(" ").contains(MEMORY), "{}", page.lines().next().unwrap());
        }
    }
}

//! The report about a kept command. Pure.

use jiff::SignedDuration;

/// Time for which a deletion is remembered from when the command is gone, to recognise one that is created again: tools
/// reconcile at least once an hour.
pub const REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Number of remembered deletions.
pub const REMEMBERED: usize = 4000;

/// The end of the memory of deletions, in the words of the message and of the pages.
pub const MEMORY: &str = "command-reaper remembers its last 4,000 deletions for an hour each, and forgets them when its process ends";

/// The reason why a command with this label or annotation is kept.
fn because_declared(mark: &str) -> String {
    format!(
        "{mark} marks it as declared elsewhere, from where it would be created and run again; delete it there"
    )
}

/// The reason why a command that was created again is kept.
fn because_created_again() -> String {
    format!(
        "it was deleted after its TTL and created again with the same name and spec, so that it runs once more, and its annotation catena.dev/kept prevents a further repetition; remove its TTL where it is declared, or give it another name to run it on purpose ({MEMORY})"
    )
}

/// The content of an Event about a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether somebody has to act.
    pub is_warning: bool,
    /// One `PascalCase` word.
    pub reason: &'static str,
    /// The state, its reason and the remedy.
    pub note: String,
}

impl Notice {
    /// A command is kept because this label or annotation marks it as declared elsewhere.
    #[must_use]
    pub fn kept(mark: &str) -> Self {
        Self {
            is_warning: false,
            reason: "KeptAsDeclared",
            note: format!("its TTL has expired, but it is kept: {}", because_declared(mark)),
        }
    }

    /// A command runs once more, and is kept from now on.
    #[must_use]
    pub fn created_again() -> Self {
        Self {
            is_warning: true,
            reason: "CreatedAgain",
            note: format!("it is kept whatever its TTL: {}", because_created_again()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_says_what_is_so_why_and_what_to_do() {
        let kept = Notice::kept("helm.sh/chart");
        assert!(kept.note.contains("helm.sh/chart marks it as declared elsewhere"), "{}", kept.note);
        assert!(kept.note.ends_with("delete it there"), "{}", kept.note);
        let again = Notice::created_again();
        assert!(
            again.note.contains("with the same name and spec, so that it runs once more"),
            "{}",
            again.note
        );
        assert!(again.note.contains("remove its TTL where it is declared"), "{}", again.note);
    }

    #[test]
    fn only_a_command_that_runs_once_more_asks_somebody_to_act() {
        assert!(!Notice::kept("mark").is_warning);
        assert!(Notice::created_again().is_warning);
    }

    #[test]
    fn the_end_of_the_memory_is_told_in_the_same_words_everywhere_and_as_it_is() {
        assert_eq!(
            (REMEMBERED, REMEMBERED_FOR),
            (4000, SignedDuration::from_secs(3600)),
            "the words would be wrong"
        );
        assert!(Notice::created_again().note.contains(MEMORY));
        for page in [
            include_str!("../../../charts/command-reaper/README.md"),
            include_str!("../../../docs/when-something-is-stuck.md"),
            include_str!("../../../docs/decisions/0004-a-declared-command-is-its-own-tombstone.md"),
        ] {
            let words: Vec<&str> = page.split_whitespace().collect();
            assert!(words.join(" ").contains(MEMORY), "{}", page.lines().next().unwrap());
        }
    }
}

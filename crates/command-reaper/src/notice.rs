//! The report about a kept command. Pure.

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
            note: format!(
                "its TTL has expired, but it is kept: {mark} marks it as declared elsewhere, from where it would be created and run again; delete it there"
            ),
        }
    }

    /// A command runs once more, and is kept from now on.
    #[must_use]
    pub fn created_again() -> Self {
        Self {
            is_warning: true,
            reason: "CreatedAgain",
            note:
                "it was deleted after its TTL and created again with the same name and spec, so that it runs once more; it is kept now, so that this does not repeat; remove its TTL where it is declared, or give it another name to run it on purpose"
                    .into(),
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
}

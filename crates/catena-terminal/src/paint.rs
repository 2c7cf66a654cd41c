//! Colours: only on a terminal, and never when `NO_COLOR` is set.

use std::{borrow::Cow, io::IsTerminal};

use clap::builder::styling::{AnsiColor, Style};

/// Whether output is coloured.
#[derive(Clone, Copy, Debug)]
pub struct Paint {
    is_on: bool,
}

/// The meaning of a colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Not coloured.
    #[default]
    Plain,
    /// As desired.
    Good,
    /// In progress.
    Moving,
    /// Stuck or failed.
    Bad,
    /// Less important.
    Quiet,
    /// The main point.
    Strong,
}

impl Paint {
    /// No colours.
    pub const OFF: Self = Self { is_on: false };

    /// For standard output.
    #[must_use]
    pub fn for_stdout() -> Self {
        Self { is_on: may_colour() && std::io::stdout().is_terminal() }
    }

    /// For standard error.
    #[must_use]
    pub fn for_stderr() -> Self {
        Self { is_on: may_colour() && std::io::stderr().is_terminal() }
    }

    /// A text in a tone.
    #[must_use]
    pub fn tone(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Tone::Moving => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Tone::Quiet => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
        };
        if self.is_on && !text.is_empty() { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

/// A text from an object without control characters: an author of a status must not control the terminal.
#[must_use]
pub fn sanitized(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect()
}

/// A text, cut behind this number of characters.
#[must_use]
pub fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

/// As <https://no-color.org> asks for; a dumb terminal shows the codes themselves.
fn may_colour() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_an_object_cannot_drive_the_terminal() {
        assert_eq!(sanitized("a\u{1b}[2Jb\nc\r\u{9b}d"), "a\u{fffd}[2Jb\nc\u{fffd}\u{fffd}d");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("short", 80), "short");
        assert_eq!(cut(&"ä".repeat(100), 80).chars().count(), 80 + 1);
    }

    #[test]
    fn a_text_is_coloured_only_when_colours_are_on() {
        assert_eq!(Paint::OFF.tone(Tone::Bad, "x"), "x");
        assert_eq!(Paint { is_on: true }.tone(Tone::Bad, "x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Paint { is_on: true }.tone(Tone::Bad, ""), "");
    }
}

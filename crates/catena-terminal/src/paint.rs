//! Texts for a person, and their colours, which `anstream` leaves out where nobody sees them: elsewhere than on a terminal, and
//! when `NO_COLOR` is set.

use std::{borrow::Cow, io::Write};

use clap::builder::styling::{AnsiColor, Style};

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

impl Tone {
    /// A text in this tone.
    #[must_use]
    pub fn paint(self, text: &str) -> String {
        let style = match self {
            Self::Plain => return text.to_owned(),
            Self::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Self::Moving => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Self::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Self::Quiet => Style::new().dimmed(),
            Self::Strong => Style::new().bold(),
        };
        if text.is_empty() { String::new() } else { format!("{style}{text}{style:#}") }
    }
}

/// A text from an object without control characters: an author of a status must not control the terminal.
#[must_use]
pub fn sanitized(text: &str) -> String {
    let shown = |c: char| match c {
        '\t' => ' ',
        c if c.is_control() && c != '\n' => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
}

/// The first of some names, and whether there are more.
#[must_use]
pub fn first_of(names: &[impl AsRef<str>], most: usize) -> String {
    let first: Vec<&str> = names.iter().take(most).map(AsRef::as_ref).collect();
    first.join(", ") + if names.len() > most { ", …" } else { "" }
}

/// Writes a line to standard error, beside what a command prints. That nobody reads it must not end work that has something to
/// clean up.
pub fn tell(text: &str) {
    writeln!(anstream::stderr(), "{text}").ok();
}

/// A text, cut behind this number of characters.
#[must_use]
pub fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    match text.char_indices().nth(longest) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_an_object_cannot_drive_the_terminal() {
        assert_eq!(sanitized("a\u{1b}[2Jb\nc\r\u{9b}d\te"), "a\u{fffd}[2Jb\nc\u{fffd}\u{fffd}d e");
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("short", 80), "short");
        assert_eq!(cut(&"ä".repeat(100), 80).chars().count(), 80 + 1);
    }

    #[test]
    fn a_text_has_the_colour_of_its_tone() {
        assert_eq!(Tone::Bad.paint("x"), "\u{1b}[31mx\u{1b}[0m");
        assert_eq!(Tone::Bad.paint(""), "");
        assert_eq!(Tone::Plain.paint("x"), "x");
    }
}

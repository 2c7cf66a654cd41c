//! Progress on standard error: a bar on a terminal, and lines elsewhere.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{sanitized, tell};

/// Time between lines with the number of processed objects where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// What a piece of work is at.
pub struct Progress {
    bar: ProgressBar,
    changed: Cell<Instant>,
}

fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ")
}

impl Progress {
    /// A display of nothing yet.
    #[must_use]
    pub fn new(what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let bar = bar.with_style(style("{spinner} {prefix} {msg} {elapsed}")).with_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar, changed: Cell::new(Instant::now()) }
    }

    fn of(&self, all: u64) {
        if self.bar.length() != Some(all) {
            self.bar.set_style(style("{spinner} {prefix} [{bar:30}] {pos}/{len} {msg} {elapsed}"));
            self.bar.set_length(all);
        }
    }

    /// Adds objects that are still to be processed.
    pub fn expect(&self, count: u64) {
        self.of(self.bar.position() + count);
    }

    /// One object is processed. Where there is no terminal, the number is a line from time to time.
    pub fn advance(&self) {
        self.bar.inc(1);
        if self.bar.is_hidden() && self.unchanged_for() > LINE_INTERVAL {
            self.changed.set(Instant::now());
            let all = self.bar.length().unwrap_or_default();
            tell(&format!("{} {} of {all}", self.bar.prefix(), self.bar.position()));
        }
    }

    /// Shows a word, and the numbers of what is done and of all. Where there is no terminal, each change is a line.
    pub fn show(&self, word: &str, progress: Option<(u64, u64)>) {
        let shown = || (self.bar.message(), self.bar.position(), self.bar.length());
        let before = shown();
        if let Some((done, all)) = progress {
            self.of(all);
            self.bar.set_position(done);
        }
        self.bar.set_message(sanitized(word));
        if shown() == before {
            return;
        }
        self.changed.set(Instant::now());
        // Without a terminal the bar draws nothing.
        if self.bar.is_hidden() {
            let counted = progress.map_or_else(String::new, |(done, all)| format!(" {done}/{all}"));
            tell(&format!("{} {}{counted}", self.bar.prefix(), self.bar.message()));
        }
    }

    /// The time since the last change.
    #[must_use]
    pub fn unchanged_for(&self) -> Duration {
        self.changed.get().elapsed()
    }

    /// Prints a line beside the display.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| tell(text));
    }

    /// Removes the display.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

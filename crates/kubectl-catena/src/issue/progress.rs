//! The progress of a command on standard error: a progress bar on a terminal, and lines elsewhere.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::outcome::Outcome;
use crate::paint::sanitized;

/// The display during a wait.
pub struct Progress {
    bar: ProgressBar,
    last: RefCell<String>,
    changed: Cell<Instant>,
}

impl Progress {
    /// A display without any progress yet.
    pub fn new(what: &str) -> Self {
        let style = ProgressStyle::with_template("{spinner} {prefix} {msg} {elapsed}");
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
            .with_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { bar, last: RefCell::default(), changed: Cell::new(Instant::now()) }
    }

    /// Shows the progress.
    pub fn show(&self, outcome: &Outcome) {
        let Outcome::Waiting { reason, progress } = outcome else { return };
        if let Some((done, all)) = *progress {
            if self.bar.length() != Some(all) {
                let template = "{spinner} {prefix} [{bar:30}] {pos}/{len} {msg} {elapsed}";
                if let Ok(style) = ProgressStyle::with_template(template) {
                    self.bar.set_style(style.progress_chars("=> "));
                }
                self.bar.set_length(all);
            }
            self.bar.set_position(done);
        }
        let reason = sanitized(reason);
        self.bar.set_message(reason.clone());
        let counted = progress.map_or_else(String::new, |(done, all)| format!(" {done}/{all}"));
        let line = format!("{} {reason}{counted}", self.bar.prefix());
        if self.last.replace(line.clone()) == line {
            return;
        }
        self.changed.set(Instant::now());
        // Without a terminal the bar draws nothing: each change is a line.
        if self.bar.is_hidden() {
            eprintln!("{line}");
        }
    }

    /// The time since the last change.
    pub fn unchanged_for(&self) -> Duration {
        self.changed.get().elapsed()
    }

    /// Prints a line beside the display.
    pub fn note(&self, text: &str) {
        self.bar.suspend(|| eprintln!("{text}"));
    }

    /// Removes the display.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

//! The number of processed objects on standard error: a bar on a terminal, and a line from time to time elsewhere.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time between lines where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// The display of one list of objects.
pub struct Progress {
    bar: ProgressBar,
    told: Cell<Instant>,
}

impl Progress {
    /// A display without any object yet.
    pub fn new(what: &str) -> Self {
        let style = ProgressStyle::with_template("{spinner} {prefix} [{bar:30}] {pos}/{len} {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr())
            .with_style(style)
            .with_prefix(what.to_owned());
        Self { bar, told: Cell::new(Instant::now()) }
    }

    /// Adds objects that are still to be processed.
    pub fn expect(&self, count: u64) {
        self.bar.set_length(self.bar.position() + count);
    }

    /// One object is processed.
    pub fn advance(&self) {
        self.bar.inc(1);
        if self.bar.is_hidden() && self.told.get().elapsed() > LINE_INTERVAL {
            self.told.set(Instant::now());
            let all = self.bar.length().unwrap_or_default();
            eprintln!("{} {} of {all}", self.bar.prefix(), self.bar.position());
        }
    }

    /// Removes the display.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

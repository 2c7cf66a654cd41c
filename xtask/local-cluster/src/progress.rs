//! The visible progress of long operations.

use std::{
    io::IsTerminal,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between lines that show progress without a terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// One visible step: a spinner on a terminal, plain lines elsewhere.
pub struct Step {
    label: String,
    started: Instant,
    bar: ProgressBar,
    /// Prints the lines until the sender is dropped.
    ticker: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Step {
    /// Starts the step and shows it.
    pub fn start(label: impl Into<String>) -> Self {
        let (label, started) = (label.into(), Instant::now());
        if !std::io::stderr().is_terminal() {
            let bar = ProgressBar::hidden().with_message(label.clone());
            return Self { label, started, ticker: Some(lines(bar.clone(), started)), bar };
        }
        let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner());
        let bar = ProgressBar::new_spinner().with_style(style).with_message(label.clone());
        bar.enable_steady_tick(Duration::from_millis(120));
        Self { label, started, bar, ticker: None }
    }

    /// Shows the current activity.
    pub fn note(&self, text: impl AsRef<str>) {
        self.bar.set_message(format!("{}: {}", self.label, text.as_ref()));
    }

    /// Ends the step successfully; `result` describes the outcome.
    pub fn done(mut self, result: impl AsRef<str>) {
        let text = match result.as_ref() {
            "" => String::new(),
            result => format!(": {result}"),
        };
        let line = format!("✓ {}{text} ({})", self.label, seconds(self.started.elapsed()));
        self.clear();
        eprintln!("{line}");
    }

    fn clear(&mut self) {
        self.bar.finish_and_clear();
        if let Some((stop, ticker)) = self.ticker.take() {
            drop(stop);
            // The ticker only prints, so a panic in it is no reason to fail.
            ticker.join().ok();
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.clear();
    }
}

fn lines(bar: ProgressBar, started: Instant) -> (Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = channel();
    let ticker = thread::spawn(move || {
        while stopped.recv_timeout(PLAIN_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            eprintln!("… {} ({} so far)", bar.message(), seconds(started.elapsed()));
        }
    });
    (stop, ticker)
}

/// A duration in readable units.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        whole if whole >= 100 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

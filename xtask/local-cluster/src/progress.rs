//! The visible progress of long operations.

use std::{
    io::IsTerminal,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};

/// Time between lines that show progress without a terminal.
const PLAIN_INTERVAL: Duration = Duration::from_secs(15);

/// One visible step: a spinner on a terminal, plain lines elsewhere.
pub struct Step {
    label: String,
    started: Instant,
    shown: Shown,
}

enum Shown {
    Spinner(ProgressBar),
    Lines { note: Arc<Mutex<String>>, stop: Option<Sender<()>>, ticker: Option<JoinHandle<()>> },
}

impl Step {
    /// Starts the step and shows it.
    pub fn start(label: impl Into<String>) -> Self {
        let label = label.into();
        let shown = if std::io::stderr().is_terminal() { spinner(&label) } else { lines(&label) };
        Self { label, started: Instant::now(), shown }
    }

    /// Shows the current activity.
    pub fn note(&self, text: impl Into<String>) {
        let text = text.into();
        match &self.shown {
            Shown::Spinner(bar) => bar.set_message(format!("{}: {text}", self.label)),
            Shown::Lines { note, .. } => {
                *note.lock().unwrap_or_else(PoisonError::into_inner) = text;
            }
        }
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
        match &mut self.shown {
            Shown::Spinner(bar) => bar.finish_and_clear(),
            Shown::Lines { stop, ticker, .. } => {
                stop.take();
                if let Some(ticker) = ticker.take() {
                    // The ticker only prints, so a panic in it is no reason to fail.
                    ticker.join().ok();
                }
            }
        }
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        self.clear();
    }
}

fn spinner(label: &str) -> Shown {
    let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = ProgressBar::new_spinner().with_style(style).with_message(label.to_owned());
    bar.enable_steady_tick(Duration::from_millis(120));
    Shown::Spinner(bar)
}

fn lines(label: &str) -> Shown {
    let note = Arc::new(Mutex::new(String::new()));
    let (stop, stopped) = channel::<()>();
    let (label, shared, started) = (label.to_owned(), Arc::clone(&note), Instant::now());
    let ticker = std::thread::spawn(move || {
        while stopped.recv_timeout(PLAIN_INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let note = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let note = if note.is_empty() { note } else { format!(": {note}") };
            eprintln!("… {label}{note} ({} so far)", seconds(started.elapsed()));
        }
    });
    Shown::Lines { note, stop: Some(stop), ticker: Some(ticker) }
}

/// A duration in readable units.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        whole if whole >= 100 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

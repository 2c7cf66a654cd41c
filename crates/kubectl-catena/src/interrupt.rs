//! Ends long work on Ctrl-C or SIGTERM, so that it can be cleaned up.

use std::process::ExitCode;

use anyhow::{Context, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// As a shell reports a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// A request to stop, noticed from the moment on when this is made: when the work begins that has to be cleaned up. Before, a
/// signal ends the program at once, also while it connects or reads standard input.
pub struct Interrupt {
    typed: Signal,
    ended: Signal,
}

impl Interrupt {
    /// Begins to notice requests.
    pub fn new() -> Result<Self> {
        let of = |kind| signal(kind).context("signals cannot be received");
        Ok(Self { typed: of(SignalKind::interrupt())?, ended: of(SignalKind::terminate())? })
    }

    /// The result of `work`; `None` if it was interrupted.
    pub async fn or<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            done = work => Some(done),
            _ = self.typed.recv() => None,
            _ = self.ended.recv() => None,
        }
    }
}

/// The exit code of interrupted work.
pub fn interrupted() -> ExitCode {
    eprintln!("interrupted");
    ExitCode::from(INTERRUPTED)
}

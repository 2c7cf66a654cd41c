//! How long each test waited, held its claim, and cleaned up: one line of JSON each, for `cargo xtask e2e`.

use std::{
    fs::OpenOptions,
    io::Write,
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{Controller, claims::Claim};

/// The times of a test that runs.
pub(crate) struct Times {
    asked: Instant,
    held: Instant,
    claim: Claim,
}

impl Times {
    /// Starts when the claim holds, which was asked for earlier.
    pub(crate) fn of(claim: &Claim, asked: Instant) -> Self {
        Self { asked, held: Instant::now(), claim: claim.clone() }
    }

    /// Appends the times of the test, whose claim ended at `released`, to the file of `CATENA_TIMES`.
    pub(crate) fn note(&self, released: Instant) {
        let Some(path) = std::env::var_os("CATENA_TIMES") else { return };
        let names = |controllers: &[Controller]| controllers.iter().map(|one| one.name()).collect::<Vec<_>>();
        let seconds = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        let line = json!({
            "test": thread::current().name().unwrap_or("a test"),
            "uses": names(&self.claim.uses),
            "changes": names(&self.claim.changes),
            "waited": seconds(self.held - self.asked),
            "held": seconds(released - self.held),
            "cleanedUp": seconds(released.elapsed()),
            "endedAt": jiff::Timestamp::now(),
        });
        // One write, because other tests append to the same file.
        let written = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        if let Err(error) = written {
            eprintln!("the times of a test could not be written to {}: {error}", path.display());
        }
    }
}

//! The supervisor's own log.

/// Writes one line with the time to standard error, which is the supervisor's log file.
pub fn note(text: &str) {
    let now = jiff::Timestamp::now().round(jiff::Unit::Millisecond).unwrap_or_default();
    eprintln!("{now} {text}");
}

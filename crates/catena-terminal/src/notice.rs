//! Lines on standard error, beside what a command prints.

use std::io::Write;

/// Writes a line to standard error. That nobody reads it must not end work that has something to clean up.
pub fn tell(text: &str) {
    writeln!(anstream::stderr(), "{text}").ok();
}

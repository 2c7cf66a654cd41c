//! Printing: text for people, or JSON and YAML for scripts.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use serde::Serialize;

/// The output format.
#[derive(Args, Clone, Copy, Debug)]
pub struct Output {
    /// Output format for scripts; docs/kubectl-catena.md describes the fields
    #[arg(short = 'o', long = "output", value_enum, value_name = "FORMAT")]
    format: Option<Format>,
}

/// A format for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
}

impl Output {
    /// Prints a value; `text` is for people.
    pub fn print(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        match self.format {
            None => write(&text()),
            Some(format) => write(&format.render(value)?),
        }
    }
}

impl Format {
    /// A value as a document with a line end.
    pub fn render(self, value: &impl Serialize) -> Result<String> {
        match self {
            Self::Json => {
                Ok(serde_json::to_string_pretty(value).context("cannot be written as JSON")? + "\n")
            }
            Self::Yaml => serde_saphyr::to_string(value).context("cannot be written as YAML"),
        }
    }
}

/// Writes to standard output. A closed pipe (`| head`) is not a failure.
pub fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("standard output cannot be written"),
    }
}

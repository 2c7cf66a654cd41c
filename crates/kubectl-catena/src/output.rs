//! Printing: text for people, or JSON and YAML for scripts.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use clap::{ArgMatches, Args, ValueEnum};
use operator_templates::to_yaml;
use serde::Serialize;

/// The output format.
#[derive(Args, Clone, Copy, Debug, Default)]
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
            Self::Yaml => to_yaml(value).context("cannot be written as YAML"),
        }
    }
}

/// The format that a command line asks for.
pub fn requested(matches: &ArgMatches) -> Option<Format> {
    let mut innermost = matches;
    while let Some((_, further)) = innermost.subcommand() {
        innermost = further;
    }
    // Commands that issue others have a format of their own, with the same names.
    let mut named = ["format", "output"].into_iter().filter_map(|id| innermost.try_get_raw(id).ok()?);
    Format::from_str(named.next()?.next()?.to_str()?, false).ok()
}

/// Prints an error as the document that a script waits for.
pub fn print_error(format: Format, error: &str) {
    let document = serde_json::json!({"error": error});
    if let Ok(text) = format.render(&document) {
        // The error itself is reported anyway.
        write(&text).ok();
    }
}

/// Writes to standard output. A closed pipe (`| head`) is not a failure.
pub fn write(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("standard output cannot be written"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn an_error_has_the_format_of_the_document_that_it_replaces() {
        let format = |line: &[&str]| requested(&Cli::command().try_get_matches_from(line).unwrap());
        assert_eq!(format(&["catena", "why", "web", "-o", "json"]), Some(Format::Json));
        assert_eq!(format(&["catena", "templates", "check", "-f", "-", "-o", "yaml"]), Some(Format::Yaml));
        assert_eq!(format(&["catena", "restart", "web", "-o", "json"]), Some(Format::Json));
        assert_eq!(format(&["catena", "restart", "web", "-o", "name"]), None);
        assert_eq!(format(&["catena", "why", "web"]), None);
        assert_eq!(format(&["catena", "release", "web", "--reason", "x"]), None);
        assert_eq!(
            Format::Json.render(&serde_json::json!({"error": "x"})).unwrap(),
            "{\n  \"error\": \"x\"\n}\n"
        );
    }
}

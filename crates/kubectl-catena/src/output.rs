//! Printing: text for people, or JSON and YAML for scripts.

use std::io::{ErrorKind, Write};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use operator_templates::Yaml;
use serde::Serialize;
use serde_json::json;

/// The output format.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Output {
    /// Output format for scripts; docs/kubectl-catena.md describes the fields
    #[arg(short = 'o', long = "output", global = true, value_enum, value_name = "FORMAT")]
    pub format: Option<Format>,
}

/// A format for scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON document
    Json,
    /// One YAML document
    Yaml,
    /// Only resource and name of an issued command: with restart, rollback and run
    Name,
}

impl Output {
    /// Prints a value; `text` is for people.
    pub fn print(self, value: &impl Serialize, text: impl FnOnce() -> String) -> Result<()> {
        match self.format {
            None => to(anstream::stdout(), &text()),
            Some(format) => write(&format.render(value)?),
        }
    }

    /// An error as the document that a script waits for.
    pub fn error(self, error: &str) -> Option<String> {
        let format = self.format.filter(|format| *format != Format::Name)?;
        format.render(&json!({"error": error})).ok()
    }
}

impl Format {
    /// A value as a document with a line end.
    pub fn render(self, value: &impl Serialize) -> Result<String> {
        if self == Self::Json {
            return Ok(serde_json::to_string_pretty(value).context("cannot be written as JSON")? + "\n");
        }
        Yaml::write(value).context("cannot be written as YAML")
    }
}

/// Writes to standard output. A closed pipe (`| head`) is not a failure.
pub fn write(text: &str) -> Result<()> {
    to(std::io::stdout(), text)
}

fn to(mut out: impl Write, text: &str) -> Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("standard output cannot be written"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn an_error_has_the_format_of_the_document_that_it_replaces() {
        let output = |line: &[&str]| Cli::try_parse_from(line).unwrap().output;
        assert_eq!(output(&["catena", "why", "web", "-o", "json"]).format, Some(Format::Json));
        assert_eq!(output(&["catena", "-o", "json", "why", "web"]).format, Some(Format::Json));
        let check = output(&["catena", "templates", "check", "-f", "-", "-o", "yaml"]);
        assert_eq!(check.error("x").as_deref(), Some("error: x\n"));
        let json = output(&["catena", "restart", "web", "-o", "json"]).error("x");
        assert_eq!(json.as_deref(), Some("{\n  \"error\": \"x\"\n}\n"));
        assert_eq!(output(&["catena", "restart", "web", "-o", "name"]).error("x"), None);
        assert_eq!(output(&["catena", "why", "web"]).error("x"), None);
    }

    #[tokio::test]
    async fn a_format_that_a_command_does_not_have_is_refused_before_anything_is_done() {
        for (line, remedy) in [
            (&["catena", "backup", "dir", "-o", "name"][..], "restart, rollback or run"),
            (&["catena", "release", "a/b", "--reason", "x", "-o", "json"], "leave out --output"),
        ] {
            let error = Cli::try_parse_from(line).unwrap().run().await.unwrap_err().to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }
}

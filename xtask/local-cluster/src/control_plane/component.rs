//! One program of the control plane, with its flags.

use std::path::PathBuf;

use anyhow::Result;

use crate::{home::Home, state::State, toolchain::Tool};

/// A program, its arguments and its environment.
#[derive(Clone, Debug)]
pub struct Component {
    pub name: &'static str,
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub environment: Vec<(&'static str, String)>,
}

impl Component {
    /// A component whose flags are given as pairs.
    pub fn new(
        name: &'static str,
        state: &State,
        tool: Tool,
        flags: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self> {
        let arguments = flags.into_iter().map(|(flag, value)| format!("--{flag}={value}")).collect();
        let program = state.toolchain.path(tool)?.clone();
        Ok(Self { name, program, arguments, environment: Vec::new() })
    }

    /// With an environment variable.
    pub fn with_variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.environment.push((name, value.into()));
        self
    }
}

/// The path of a file in the certificates directory, as a flag's value.
pub fn certificate(home: &Home, file: &str) -> String {
    home.certificates().join(file).display().to_string()
}

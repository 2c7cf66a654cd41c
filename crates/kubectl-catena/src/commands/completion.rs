//! `kubectl catena completion`

use anyhow::Result;
use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::{cli::Cli, output::write};

/// For which shell.
#[derive(Args)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script that completes `kubectl-catena` in a shell.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut Cli::command().bin_name("kubectl-catena"), "kubectl-catena", &mut script);
    write(&String::from_utf8_lossy(&script))
}

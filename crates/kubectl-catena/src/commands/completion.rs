//! `kubectl catena completion`

use anyhow::Result;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::output::write;

/// The target of the script.
#[derive(Args)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script that completes a command line in a shell.
pub fn run(arguments: &Arguments, command_line: Command) -> Result<()> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut command_line.bin_name("kubectl-catena"), "kubectl-catena", &mut script);
    write(&String::from_utf8_lossy(&script))
}

//! kubectl catena: commands without YAML, and the root cause when something is stuck.

mod cli;
mod commands;
mod completion;
mod issue;
mod output;
#[cfg(test)]
mod printed_advice_test;

use std::process::ExitCode;

use catena_cluster::in_one_line;
use catena_terminal::{Tone, sanitized, tell};
use clap::Parser;

use crate::cli::Cli;

fn main() -> ExitCode {
    if completion::is_requested() {
        completion::offer();
        return ExitCode::SUCCESS;
    }
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // 2 is reserved for a wait that timed out; a closed pipe is not a failure.
            let code = u8::from(error.use_stderr());
            error.print().ok();
            return ExitCode::from(code);
        }
    };
    let format = cli.output;
    match cli.run().await {
        Ok(code) => code,
        Err(error) => {
            if let Some(document) = format.error(&in_one_line(&error)) {
                // The error itself is reported anyway.
                output::write(&document).ok();
            }
            tell(&format!("{} {}", Tone::Bad.paint("error:"), sanitized(&in_one_line(&error))));
            ExitCode::FAILURE
        }
    }
}

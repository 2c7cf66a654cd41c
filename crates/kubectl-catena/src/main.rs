//! kubectl catena: commands without YAML, and the root cause when something is stuck.

mod access;
mod age;
mod archive;
mod chain;
mod cli;
mod commands;
mod completion;
mod connection;
mod contract;
mod errors;
mod issue;
mod kinds;
mod lenient;
mod object;
mod output;
mod pages;
mod paint;
#[cfg(test)]
mod printed_advice_test;
mod progress;
mod protection;
mod proxy;
mod table;
mod target;
mod upgrade;
mod waiting;
mod why;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::{cli::Cli, errors::in_one_line, paint::Paint};

fn main() -> ExitCode {
    if completion::is_requested() {
        completion::offer();
        return ExitCode::SUCCESS;
    }
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> ExitCode {
    let parsed = Cli::command().try_get_matches();
    let parsed =
        parsed.and_then(|matches| Ok((output::requested(&matches), Cli::from_arg_matches(&matches)?)));
    let (format, cli) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // 2 is reserved for a wait that timed out; a closed pipe is not a failure.
            let code = u8::from(error.use_stderr());
            error.print().ok();
            return ExitCode::from(code);
        }
    };
    match cli.run().await {
        Ok(code) => code,
        Err(error) => {
            if let Some(format) = format {
                output::print_error(format, &in_one_line(&error));
            }
            eprintln!("{} {}", Paint::for_stderr().bad("error:"), in_one_line(&error));
            ExitCode::FAILURE
        }
    }
}

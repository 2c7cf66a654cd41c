//! `kubectl catena upgrade`

mod check;
mod migrate;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::connection::Options;

/// The step of an upgrade.
#[derive(Subcommand)]
pub enum Command {
    /// Check new definitions against the installed ones, and every live object against the new schemas
    #[command(
        after_help = "Example: helm template --include-crds --is-upgrade charts/basic-deployment-controller | kubectl catena upgrade check -\n\nExit codes: 0 no rule is \
        broken, and no object is affected; 1 the check failed; 3 a rule is broken, but no object is affected; 4 an object \
        would be refused or lose a field, or the server would refuse a definition; 130 interrupted."
    )]
    Check(check::Arguments),
    /// Store all objects of a kind in its storage version, so that other versions can be removed from the definition
    #[command(
        after_help = "Example: kubectl catena upgrade migrate basicdeployments\n\nExit codes: 0 all objects are in the storage \
        version; 1 the migration failed; 4 objects are left, because they would lose a field or are refused; 130 \
        interrupted. Repeat it to continue."
    )]
    Migrate(migrate::Arguments),
}

/// Runs a step.
pub async fn run(options: &Options, command: &Command) -> Result<ExitCode> {
    match command {
        Command::Check(arguments) => Box::pin(check::run(options, arguments)).await,
        Command::Migrate(arguments) => Box::pin(migrate::run(options, arguments)).await,
    }
}

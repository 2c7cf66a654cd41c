//! `kubectl catena upgrade`

mod check;
mod migrate;

use std::process::ExitCode;

use anyhow::Result;
use catena_cluster::{Options, Tone, cut};
use clap::Subcommand;

use crate::{
    screen::{Cell, Output, Table},
    upgrade::{ObjectFields, Refused},
};

/// The longest value in a table; `-o json` shows it whole.
const MAX_VALUE: usize = 80;

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
pub async fn run(options: &Options, output: Output, command: &Command) -> Result<ExitCode> {
    match command {
        Command::Check(arguments) => Box::pin(check::run(options, output, arguments)).await,
        Command::Migrate(arguments) => Box::pin(migrate::run(options, output, arguments)).await,
    }
}

/// Adds what objects would lose to a table of objects, fields, values and reasons.
fn push_lost(table: &mut Table, objects: &[ObjectFields], reason: &str) {
    for ObjectFields { object, fields } in objects {
        for field in fields {
            let name = Cell::toned(Tone::Bad, object.to_string());
            let value = cut(&field.value.to_string(), MAX_VALUE).into_owned();
            table.push([name, field.path.as_str().into(), value.into(), reason.into()]);
        }
    }
}

/// Adds why objects would be refused to a table of objects, fields, values and reasons.
fn push_refused(table: &mut Table, objects: &[Refused]) {
    for Refused { object, causes } in objects {
        for cause in causes {
            let name = Cell::toned(Tone::Bad, object.to_string());
            table.push([name, cause.field.as_str().into(), "".into(), cause.message.as_str().into()]);
        }
    }
}

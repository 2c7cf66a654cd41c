//! `kubectl catena rollback`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::issue;
use crate::{connection::Options, issue::Issuing, target::ObjectArgument};

/// The object, and its revision.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    object: ObjectArgument,
    /// The revision to return to, from `kubectl catena history`; 0 is the previous one
    #[arg(long, default_value_t = 0, value_name = "NUMBER", allow_negative_numbers = true, value_parser = clap::value_parser!(i64).range(0..))]
    to_revision: i64,
    #[command(flatten)]
    issuing: Issuing,
}

/// Issues a `BasicDeploymentRollback`.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    let spec = json!({"toRevision": arguments.to_revision});
    issue(
        options,
        &arguments.object,
        "basicdeploymentrollbacks.catena.dev",
        "rollback",
        spec,
        &arguments.issuing,
    )
    .await
}

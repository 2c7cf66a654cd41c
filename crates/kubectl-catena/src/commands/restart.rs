//! `kubectl catena restart`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::issue;
use crate::{connection::Options, issue::Issuing, target::ObjectArgument};

/// The object to restart.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    object: ObjectArgument,
    #[command(flatten)]
    issuing: Issuing,
}

/// Issues a `BasicDeploymentRestart`.
pub async fn run(options: &Options, arguments: &Arguments) -> Result<ExitCode> {
    issue(
        options,
        &arguments.object,
        "basicdeploymentrestarts.catena.dev",
        "restart",
        json!({}),
        &arguments.issuing,
    )
    .await
}

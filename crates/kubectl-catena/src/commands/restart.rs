//! `kubectl catena restart`

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use super::basic_deployment;
use crate::{
    connection::Options,
    issue::{Issuing, Order},
    target::ObjectArgument,
};

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
    let target = basic_deployment(arguments.object.target()?)?;
    let order = Order {
        kind: "basicdeploymentrestarts.catena.dev",
        verb: "restart",
        target_kind: &target.kind,
        target: &target.name,
        spec: json!({"targetRef": {"name": target.name}}),
    };
    arguments.issuing.issue(options, &order).await
}

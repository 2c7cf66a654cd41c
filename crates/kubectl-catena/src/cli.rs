//! The command line.

use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use catena_cluster::{ObjectArgument, Options};
use clap::{Parser, Subcommand};

use crate::{
    commands::{archive, contract, held, history, inspect, issue, release, templates, upgrade},
    output::{Format, Output},
};

/// Inspect, restart and roll back BasicDeployments, and find out why something is stuck.
#[derive(Parser)]
#[command(
    name = "kubectl-catena",
    bin_name = "kubectl catena",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 110
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    cluster: Options,
}

#[derive(Subcommand)]
enum Command {
    /// Show the whole chain of an object, from its top to its pods
    #[command(after_help = "Example: kubectl catena tree basicdeployment/web")]
    Tree(inspect::Tree),
    /// Explain why an object is not ready, not finished or not gone, with the remedy
    #[command(
        after_help = "Example: kubectl catena why basicdeployment/web\n\nExit codes: 0 the object needs no attention; 5 it is \
        not ready, not finished or not gone; 1 that could not be found out, for example because the server does not answer, or \
        because you may not list the dependents of an object that does not report on itself."
    )]
    Why(ObjectArgument),
    /// Replace all pods of a BasicDeployment, within its rollout budget
    #[command(after_help = "Example: kubectl catena restart web --wait")]
    Restart(issue::Restart),
    /// Roll a BasicDeployment back to an earlier revision
    #[command(after_help = "Example: kubectl catena rollback web --to-revision 3 --wait")]
    Rollback(issue::Rollback),
    /// Show the revisions of a BasicDeployment, or the changes of one
    #[command(after_help = "Example: kubectl catena history web --revision 3")]
    History(history::Arguments),
    /// Issue a command of any kind
    #[command(after_help = "Example: kubectl catena run basicdeploymentrollback web --set toRevision=3")]
    Run(issue::Run),
    /// List held objects, whose deletion waits for a backup, with time and reason
    #[command(after_help = "Example: kubectl catena held -A")]
    Held(held::Arguments),
    /// Release a held object without its backup
    #[command(
        after_help = "Example: kubectl catena release cluster/db --reason \"restored elsewhere, ticket 4711\""
    )]
    Release(release::Arguments),
    /// Check the contract of a kind
    #[command(subcommand)]
    Contract(contract::Command),
    /// Write objects with their owners and dependents to a folder, one file each
    #[command(
        after_help = "Example: kubectl catena backup shop-backup -n shop --kind catena --kind deployments --kind secrets\n\nExit \
        codes: 0 everything is in the folder; 1 something could not be read or kept, or there was nothing to save; 130 \
        interrupted."
    )]
    Backup(archive::Backup),
    /// Create the objects of a backup again, with their owners; with --namespace only those of a namespace
    #[command(
        after_help = "Example: kubectl catena restore shop-backup\n\nExit codes: 0 everything is there; 1 some objects could \
        not be brought back, or are there and differ from the backup; 130 interrupted. Repeat it to continue."
    )]
    Restore(archive::Restore),
    /// Check new definitions against the live objects, and migrate stored objects
    #[command(subcommand)]
    Upgrade(upgrade::Command),
    /// Check the templates in the values of a chart
    #[command(subcommand)]
    Templates(templates::Command),
}

impl Cli {
    /// Runs the chosen command.
    pub async fn run(self) -> Result<ExitCode> {
        let Self { command, output, cluster } = &self;
        let issues = matches!(command, Command::Restart(_) | Command::Rollback(_) | Command::Run(_));
        ensure!(
            issues || output.format != Some(Format::Name),
            "-o name prints the name of an issued command: use it with restart, rollback or run, or choose json or yaml"
        );
        let (output, done) = (*output, |()| ExitCode::SUCCESS);
        match command {
            Command::Tree(of) => inspect::tree(cluster, output, of).await.map(done),
            Command::Why(of) => inspect::why(cluster, output, of).await,
            Command::Restart(of) => issue::restart(cluster, output, of).await,
            Command::Rollback(of) => issue::rollback(cluster, output, of).await,
            Command::History(of) => history::run(cluster, output, of).await.map(done),
            Command::Run(of) => issue::run(cluster, output, of).await,
            Command::Held(of) => held::run(cluster, output, of).await,
            Command::Release(_) if output.format.is_some() => {
                bail!("release prints no document: leave out --output")
            }
            Command::Release(of) => release::run(cluster, of).await.map(done),
            Command::Contract(of) => contract::run(cluster, output, of).await,
            Command::Backup(of) => archive::backup(cluster, output, of).await,
            Command::Restore(of) => archive::restore(cluster, output, of).await,
            Command::Upgrade(of) => upgrade::run(cluster, output, of).await,
            Command::Templates(of) => templates::run(cluster, output, of).await,
        }
    }
}

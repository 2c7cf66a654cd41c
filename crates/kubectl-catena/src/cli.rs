//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{commands, connection::Options};

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
    cluster: Options,
}

#[derive(Subcommand)]
enum Command {
    /// Show the whole chain of an object, from its top to its pods
    #[command(after_help = "Example: kubectl catena tree basicdeployment/web")]
    Tree(commands::inspect::Tree),
    /// Explain why an object is not ready, not finished or not gone, with the remedy
    #[command(
        after_help = "Example: kubectl catena why basicdeployment/web\n\nExit codes: 0 the object needs no attention; 5 it is \
        not ready, not finished or not gone; 1 that could not be found out, for example because the server does not answer, or \
        because you may not list the dependents of an object that does not report on itself."
    )]
    Why(commands::inspect::Why),
    /// Replace all pods of a BasicDeployment, within its rollout budget
    #[command(after_help = "Example: kubectl catena restart web --wait")]
    Restart(commands::issue::Restart),
    /// Roll a BasicDeployment back to an earlier revision
    #[command(after_help = "Example: kubectl catena rollback web --to-revision 3 --wait")]
    Rollback(commands::issue::Rollback),
    /// Show the revisions of a BasicDeployment, or the changes of one
    #[command(after_help = "Example: kubectl catena history web --revision 3")]
    History(commands::history::Arguments),
    /// Issue a command of any kind
    #[command(after_help = "Example: kubectl catena run basicdeploymentrollback web --set toRevision=3")]
    Run(commands::issue::Run),
    /// List held objects, whose deletion waits for a backup, with time and reason
    #[command(after_help = "Example: kubectl catena held -A")]
    Held(commands::held::Arguments),
    /// Release a held object without its backup
    #[command(
        after_help = "Example: kubectl catena release cluster/db --reason \"restored elsewhere, ticket 4711\""
    )]
    Release(commands::release::Arguments),
    /// Check the contract of a kind
    #[command(subcommand)]
    Contract(commands::contract::Command),
    /// Write objects with their owners and dependents to a folder, one file each
    #[command(
        after_help = "Example: kubectl catena backup shop-backup -n shop --kind catena --kind deployments --kind secrets\n\nExit \
        codes: 0 everything is in the folder; 1 something could not be read or kept, or there was nothing to save; 130 \
        interrupted."
    )]
    Backup(commands::backup::Arguments),
    /// Create the objects of a backup again, with their owners; with --namespace only those of a namespace
    #[command(
        after_help = "Example: kubectl catena restore shop-backup\n\nExit codes: 0 everything is there; 1 some objects could \
        not be brought back, or are there and differ from the backup; 130 interrupted. Repeat it to continue."
    )]
    Restore(commands::restore::Arguments),
    /// Check new definitions against the live objects, and migrate stored objects
    #[command(subcommand)]
    Upgrade(commands::upgrade::Command),
    /// Check the templates in the values of a chart
    #[command(subcommand)]
    Templates(commands::templates::Command),
}

impl Cli {
    /// Runs the chosen command.
    pub async fn run(self) -> Result<ExitCode> {
        match self.command {
            Command::Tree(arguments) => commands::inspect::tree(&self.cluster, &arguments).await?,
            Command::History(arguments) => commands::history::run(&self.cluster, &arguments).await?,
            Command::Held(arguments) => commands::held::run(&self.cluster, &arguments).await?,
            Command::Release(arguments) => commands::release::run(&self.cluster, &arguments).await?,
            Command::Why(arguments) => return commands::inspect::why(&self.cluster, &arguments).await,
            Command::Backup(arguments) => return commands::backup::run(&self.cluster, &arguments).await,
            Command::Restore(arguments) => return commands::restore::run(&self.cluster, &arguments).await,
            Command::Upgrade(command) => return commands::upgrade::run(&self.cluster, &command).await,
            Command::Contract(command) => return commands::contract::run(&self.cluster, &command).await,
            Command::Templates(command) => return commands::templates::run(&self.cluster, &command).await,
            Command::Restart(arguments) => return commands::issue::restart(&self.cluster, &arguments).await,
            Command::Rollback(arguments) => {
                return commands::issue::rollback(&self.cluster, &arguments).await;
            }
            Command::Run(arguments) => return commands::issue::run(&self.cluster, &arguments).await,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Of two arguments with the same name, only one would exist.
    #[test]
    fn each_argument_has_a_name_of_its_own() {
        Cli::command().debug_assert();
        let line = ["catena", "held", "--as", "jane", "--as-group", "team", "--user", "admin"];
        let cli = Cli::try_parse_from(line).unwrap();
        assert_eq!(cli.cluster.acts_as.as_deref(), Some("jane"));
        assert_eq!(cli.cluster.user.as_deref(), Some("admin"));
    }
}

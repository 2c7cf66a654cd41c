//! The developer's commands of Catena: `cargo xtask <command>`.

mod admission_knows;
mod audit;
mod cargo;
mod charts;
mod cluster;
mod commands;
mod generated;
mod images;
mod post_mortem;
mod published;
mod rights;
mod sbom;
mod workspace;

use std::{ffi::OsString, process::ExitCode};

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand};
use local_cluster::{explain, play_role};

/// Build, run and test Catena on this machine.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a local cluster, unless it is up already
    #[command(after_help = "Example: cargo xtask up --nodes 10")]
    Up {
        #[command(flatten)]
        cluster: ClusterName,
        #[command(flatten)]
        options: commands::up::Options,
    },
    /// Stop a local cluster, or the demo's on kind, and remove its data
    #[command(after_help = "Example: cargo xtask down --all")]
    Down {
        #[command(flatten)]
        cluster: ClusterName,
        /// Take down every local cluster of this user, and every one on kind that was created here
        #[arg(long)]
        all: bool,
    },
    /// Show the local clusters, their processes and the paths of their logs
    Status,
    /// Print the path of the kubeconfig
    #[command(after_help = "Example: export KUBECONFIG=$(cargo xtask kubeconfig)")]
    Kubeconfig {
        #[command(flatten)]
        cluster: ClusterName,
    },
    /// Run the cluster's own kubectl against it
    #[command(after_help = "Example: cargo xtask kubectl get pods -A")]
    Kubectl(PassOn),
    /// Run the cluster's own helm against it; charts of the checkout get the values for this cluster
    #[command(after_help = "Example: cargo xtask helm list -A")]
    Helm(PassOn),
    /// Show the log of a controller, or of a component such as api-server
    #[command(after_help = "Example: cargo xtask logs basic-deployment-controller --follow")]
    Logs {
        #[command(flatten)]
        cluster: ClusterName,
        /// A part of the pod's name, its label app.kubernetes.io/name, or a component
        controller: String,
        /// Follow the log
        #[arg(long, short)]
        follow: bool,
    },
    /// Show Catena at work: run, restart, roll back, back up, restore
    #[command(after_help = "Example: cargo xtask demo --on kind")]
    Demo {
        #[command(flatten)]
        cluster: ClusterName,
        #[command(flatten)]
        options: commands::demo::Options,
    },
    /// Run all checks: format, lints, tests, CRDs, charts, end-to-end, demo
    #[command(after_help = "Example: cargo xtask test --only e2e -- heals")]
    Test(commands::test::Options),
    /// Run the controllers' decisions against a model of the API server, in all orders of events
    #[command(after_help = "Example: cargo xtask model --full")]
    Model(commands::model::Options),
    /// Run the end-to-end suite: on kind if Docker and kind are available, otherwise on a local cluster, or on the
    /// current one
    #[command(
        after_help = "Example: cargo xtask e2e --on kind --node-image kindest/node:v1.36.0 --only rolls_out"
    )]
    E2e(commands::e2e::Options),
    /// Tell stories in which processes, the network and the API server fail, and see that nothing is lost or made twice
    #[command(after_help = "Example: cargo xtask chaos --seed 7 --minutes 30")]
    Chaos(commands::chaos::Options),
    /// Measure Catena beside kube-controller-manager: time, CPU, memory, requests
    #[command(
        after_help = "Example: cargo xtask bench --scenario create,scale,roll --objects 300,1000 --runs 3"
    )]
    Bench(commands::bench::Options),
    /// Write crds/*.yaml and the charts' copies from the types, or compare the types with earlier revisions
    #[command(after_help = "Example: cargo xtask crds --compat v0.1.0")]
    Crds {
        /// Change nothing; fail if a file does not match the types
        #[arg(long)]
        check: bool,
        /// Write nothing; fail if a change since this revision breaks docs/schema-policy.md; can be given several times
        #[arg(long, value_name = "REVISION", conflicts_with = "check")]
        compat: Vec<String>,
    },
    /// Write the common parts of all charts into each, from charts/_shared
    Charts {
        /// Change nothing; fail if a file is out of date
        #[arg(long)]
        check: bool,
    },
    /// Build a container image of each controller and load it into Docker
    #[command(after_help = "Example: cargo xtask images --only backup-controller")]
    Images(commands::images::Options),
    /// Write a software bill of materials of each program that ships: its crates and their licenses, as CycloneDX
    #[command(after_help = "Example: cargo xtask sbom --only backup-controller")]
    Sbom(commands::sbom::Options),
    /// Download or build the local cluster's programs now instead of at the first `up`, and show where each comes from
    #[command(after_help = "Example: CATENA_FROM_SOURCE=1 cargo xtask toolchain")]
    Toolchain,
}

/// The selected cluster.
#[derive(Args)]
struct ClusterName {
    /// The cluster's name; several can run concurrently
    #[arg(long, env = "CATENA_CLUSTER", default_value = "default")]
    name: String,
}

/// A program's own arguments, passed on unchanged.
#[derive(Args)]
struct PassOn {
    #[command(flatten)]
    cluster: ClusterName,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

fn main() -> ExitCode {
    if let Some(code) = play_role() {
        return code;
    }
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", explain(&error));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the async runtime")?;
    match command {
        Command::Up { cluster, options } => runtime.block_on(commands::up::run(&cluster.name, options))?,
        Command::Down { cluster, all } => commands::down::run(&cluster.name, all)?,
        Command::Status => runtime.block_on(commands::status::run())?,
        Command::Kubeconfig { cluster } => commands::kubeconfig::run(&cluster.name)?,
        Command::Kubectl(PassOn { cluster, arguments }) => {
            commands::pass_on::kubectl(&cluster.name, &arguments)?;
        }
        Command::Helm(PassOn { cluster, arguments }) => {
            commands::pass_on::helm(&cluster.name, &arguments)?;
        }
        Command::Logs { cluster, controller, follow } => {
            runtime.block_on(commands::logs::run(&cluster.name, &controller, follow))?;
        }
        Command::Demo { cluster, options } => {
            runtime.block_on(commands::demo::run(&cluster.name, &options))?;
        }
        Command::E2e(options) => runtime.block_on(commands::e2e::run(&options))?,
        Command::Model(options) => runtime.block_on(commands::model::run(&options))?,
        Command::Images(options) => runtime.block_on(commands::images::run(&options))?,
        Command::Chaos(options) => runtime.block_on(commands::chaos::run(&options))?,
        Command::Bench(options) => runtime.block_on(commands::bench::run(&options))?,
        Command::Test(options) => runtime.block_on(commands::test::run(options))?,
        Command::Charts { check } => commands::charts::run(check)?,
        Command::Crds { check, compat } if compat.is_empty() => commands::crds::run(check)?,
        Command::Crds { compat, .. } => commands::crds::compat::since(&compat)?,
        Command::Sbom(options) => commands::sbom::run(&options)?,
        Command::Toolchain => runtime.block_on(commands::toolchain::run())?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Cli;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

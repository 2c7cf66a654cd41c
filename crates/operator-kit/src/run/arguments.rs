use std::{net::SocketAddr, path::PathBuf};

use axum::http::Uri;
use clap::{Args, Command, FromArgMatches};
use kube::Client;

use crate::report::LogFormat;

/// The command line and environment of every controller.
#[derive(Clone, Debug, Args)]
pub struct Arguments {
    /// File with the settings (YAML); it is read again when it changes.
    #[arg(long, env = "CATENA_SETTINGS", value_name = "FILE", default_value = "/etc/catena/settings.yaml")]
    pub settings: PathBuf,

    /// `ConfigMap` that the settings come from, in the namespace of the Lease: Events about the settings are published
    /// about it.
    #[arg(long, env = "CATENA_SETTINGS_CONFIG_MAP", value_name = "NAME")]
    pub settings_config_map: Option<String>,

    /// Start no controller, but query these pages of a running one, each until it reports success: /readyz for at most
    /// 30 s, /settings for at most 2 minutes.
    #[arg(long, value_name = "URL")]
    pub probe: Vec<Uri>,

    /// Address that serves /readyz, /healthz, /settings, /selftest and /metrics.
    #[arg(long, env = "CATENA_LISTEN", value_name = "IP:PORT", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// Filter of the logs: a level, or directives such as `info,operator_kit=debug`, which adds each decision and write.
    #[arg(long, env = "CATENA_LOG", value_name = "DIRECTIVES", default_value = "info")]
    pub log: String,

    /// Format of the logs.
    #[arg(long, env = "CATENA_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,

    /// Act only while holding a Lease; needed when more than one replica runs.
    #[arg(long, env = "CATENA_LEADER_ELECTION", value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub leader_election: bool,

    /// Namespace of the Lease; the pod's own by default.
    #[arg(long, env = "CATENA_LEASE_NAMESPACE", value_name = "NAME")]
    pub lease_namespace: Option<String>,

    /// Name of the Lease; the controller's own by default.
    #[arg(long, env = "CATENA_LEASE_NAME", value_name = "NAME")]
    pub lease_name: Option<String>,

    /// Identity of this process among its replicas; in a cluster, the name of its pod.
    #[arg(long, env = "POD_NAME", value_name = "NAME", default_value = "local")]
    pub identity: String,

    /// Maximum number of objects that are reconciled concurrently.
    #[arg(long, env = "CATENA_CONCURRENCY", value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrency: u16,
}

impl Arguments {
    /// Reads the command line and the environment of a controller that has no commands of its own. `about` says in a
    /// sentence what it does. The process ends here after `--help` and `--version`, and after a mistake.
    #[must_use]
    pub fn parse(name: &'static str, version: &'static str, about: &'static str) -> Self {
        let matches = Self::command(name, version, about).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    fn command(name: &'static str, version: &'static str, about: &'static str) -> Command {
        let example = format!("Example: {name} --settings settings.yaml --log-format text");
        Self::augment_args(Command::new(name)).version(version).about(about).after_help(example)
    }

    /// The namespace of the Lease.
    pub(crate) fn lease_namespace<'a>(&'a self, client: &'a Client) -> &'a str {
        self.lease_namespace.as_deref().unwrap_or_else(|| client.default_namespace())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_says_what_the_program_does_and_gives_an_example() {
        let mut command = Arguments::command("reaper", "1.2.3", "Deletes what has ended");
        assert_eq!(command.render_version(), "reaper 1.2.3\n");
        let help = command.render_help().to_string();
        assert!(help.starts_with("Deletes what has ended\n"), "{help}");
        assert!(help.contains("Example: reaper --settings settings.yaml --log-format text"), "{help}");
    }
}

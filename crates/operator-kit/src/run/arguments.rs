use std::{net::SocketAddr, path::PathBuf};

use anyhow::{Context, ensure};
use axum::http::Uri;
use clap::{Command, CommandFactory, FromArgMatches, Parser, ValueEnum};
use kube::Client;
use tracing_subscriber::{
    EnvFilter, Layer, filter::LevelFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

/// What people know a controller by.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// Its name, which is also that of its Lease, its field manager and the reporter of its Events.
    pub name: &'static str,
    /// Its version, such as `1.2.0`.
    pub version: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// What the names begin with that people configure: with `acme`, the variable of `--log` is `ACME_LOG`, a metric
    /// `acme_writes_total`, and the default of `--settings` `/etc/acme/settings.yaml`.
    pub prefix: &'static str,
}

impl Identity {
    /// Reads the command line and the environment, as [`Arguments`] or a parser that they are a part of. The process ends
    /// here after `--help` and `--version`, and after a mistake.
    #[must_use]
    pub fn parse<P: CommandFactory + FromArgMatches>(self) -> P {
        P::from_arg_matches(&self.command::<P>().get_matches()).unwrap_or_else(|error| error.exit())
    }

    fn command<P: CommandFactory>(self) -> Command {
        let Self { name, version, about, prefix } = self;
        let example = format!("Example: {name} --settings settings.yaml --log-format text");
        let command = P::command().name(name).version(version).about(about).after_help(example);
        let own = Arguments::command();
        command.mut_args(|argument| {
            let id = argument.get_id().to_string();
            let is_own = own.get_arguments().any(|own| own.get_id() == argument.get_id());
            if !is_own || id == "probe" || argument.get_env().is_some() {
                return argument;
            }
            let argument = argument.env(format!("{prefix}_{id}").to_uppercase());
            if id != "settings" {
                return argument;
            }
            argument.default_value(format!("/etc/{prefix}/settings.yaml"))
        })
    }
}

/// The command line and environment of every controller.
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// File with the settings (YAML); it is read again when it changes.
    #[arg(long, value_name = "FILE", default_value = "settings.yaml")]
    pub settings: PathBuf,

    /// `ConfigMap` that the settings come from, in the namespace of the Lease: Events about the settings are published
    /// about it.
    #[arg(long, value_name = "NAME")]
    pub settings_config_map: Option<String>,

    /// Start no controller, but query these pages of a running one, each until it reports success: /readyz for at most
    /// 30 s, /settings for at most 2 minutes.
    #[arg(long, value_name = "URL")]
    pub probe: Vec<Uri>,

    /// Address that serves /readyz, /healthz, /settings, /selftest and /metrics.
    #[arg(long, value_name = "IP:PORT", default_value = "0.0.0.0:8080")]
    pub listen: SocketAddr,

    /// Filter of the logs: a level, or directives such as `info,operator_kit=debug`, which adds each decision and write.
    #[arg(long, value_name = "DIRECTIVES", default_value = "info")]
    pub log: String,

    /// Format of the logs.
    #[arg(long, value_enum, default_value_t = LogFormat::Json)]
    pub(crate) log_format: LogFormat,

    /// Act only while holding a Lease; needed when more than one replica runs.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    pub leader_election: bool,

    /// Namespace of the Lease; the pod's own by default.
    #[arg(long, value_name = "NAME")]
    pub lease_namespace: Option<String>,

    /// Name of the Lease; the controller's own by default.
    #[arg(long, value_name = "NAME")]
    pub lease_name: Option<String>,

    /// Identity of this process among its replicas; in a cluster, the name of its pod.
    #[arg(long, env = "POD_NAME", value_name = "NAME", default_value = "local")]
    pub identity: String,

    /// Maximum number of objects that are reconciled concurrently.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub concurrency: u16,
}

impl Arguments {
    /// The namespace of the Lease.
    pub(crate) fn lease_namespace<'a>(&'a self, client: &'a Client) -> &'a str {
        self.lease_namespace.as_deref().unwrap_or_else(|| client.default_namespace())
    }
}

/// The format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

/// Starts logging to standard output.
pub(crate) fn start_logging(directives: &str, format: LogFormat) -> anyhow::Result<()> {
    let filter = filter(directives)?;
    let logs = match format {
        LogFormat::Json => {
            fmt::layer().json().flatten_event(true).with_current_span(true).with_span_list(false).boxed()
        }
        LogFormat::Text => fmt::layer().boxed(),
    };
    tracing_subscriber::registry().with(filter).with(logs).try_init().context("cannot start logging")
}

fn filter(directives: &str) -> anyhow::Result<EnvFilter> {
    let problem = || {
        format!(
            "--log {directives:?} is not valid: use off, error, warn, info, debug or trace, or directives such as \
             info,operator_kit=debug"
        )
    };
    // A single word that is not a level would be read as the name of a module, and all other modules would be silent.
    let is_level = |word: &str| !word.is_empty() && word.parse::<LevelFilter>().is_ok();
    let is_known =
        directives.split(',').all(|directive| directive.contains(['=', '[']) || is_level(directive));
    ensure!(is_known, problem());
    EnvFilter::try_new(directives).with_context(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REAPER: Identity =
        Identity { name: "reaper", version: "1.2.3", about: "Deletes what has ended", prefix: "acme" };

    #[test]
    fn the_help_says_what_the_program_does_and_gives_an_example() {
        let mut command = REAPER.command::<Arguments>();
        assert_eq!(command.render_version(), "reaper 1.2.3\n");
        let help = command.render_help().to_string();
        assert!(help.starts_with("Deletes what has ended\n"), "{help}");
        assert!(help.contains("Example: reaper --settings settings.yaml --log-format text"), "{help}");
    }

    #[test]
    fn each_argument_has_a_variable_with_the_prefix_of_the_controller() {
        let command = REAPER.command::<Arguments>();
        command.clone().debug_assert();
        let variables: Vec<_> =
            command.get_arguments().filter_map(|argument| argument.get_env()?.to_str()).collect();
        let expected = [
            "ACME_SETTINGS",
            "ACME_SETTINGS_CONFIG_MAP",
            "ACME_LISTEN",
            "ACME_LOG",
            "ACME_LOG_FORMAT",
            "ACME_LEADER_ELECTION",
            "ACME_LEASE_NAMESPACE",
            "ACME_LEASE_NAME",
            "POD_NAME",
            "ACME_CONCURRENCY",
        ];
        assert_eq!(variables, expected);
        let arguments = Arguments::from_arg_matches(&command.get_matches_from(["reaper"])).unwrap();
        assert_eq!(arguments.settings.to_str(), Some("/etc/acme/settings.yaml"));
    }

    #[test]
    fn a_word_that_is_no_level_is_refused_and_silences_nothing() {
        for good in ["info", "off", "DEBUG", "info,operator_kit=debug", "operator_kit[pass]=trace"] {
            assert!(filter(good).is_ok(), "{good}");
        }
        for bad in ["verbose", "warning", "", "info,", "info,operator_kit=loud"] {
            let problem = filter(bad).unwrap_err().to_string();
            assert!(
                problem.starts_with("--log ") && problem.contains("info,operator_kit=debug"),
                "{problem}"
            );
        }
    }
}

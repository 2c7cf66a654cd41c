use anyhow::{Context, ensure};
use clap::ValueEnum;
use tracing_subscriber::{
    EnvFilter, Layer, filter::LevelFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

/// The format of logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object per line.
    Json,
    /// For people.
    Text,
}

/// Starts logging to standard output.
pub(crate) fn start(directives: &str, format: LogFormat) -> anyhow::Result<()> {
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

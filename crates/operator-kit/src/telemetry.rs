use anyhow::Context;
use tracing_subscriber::{EnvFilter, fmt};

use crate::{Arguments, LogFormat};

/// Starts logging to standard output.
pub(crate) fn start(arguments: &Arguments) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&arguments.log).with_context(|| {
        format!("--log {:?} is not understood: give a level such as info or debug", arguments.log)
    })?;
    let logs = fmt().with_env_filter(filter);
    let started = match arguments.log_format {
        LogFormat::Json => {
            logs.json().flatten_event(true).with_current_span(true).with_span_list(false).try_init()
        }
        LogFormat::Text => logs.try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

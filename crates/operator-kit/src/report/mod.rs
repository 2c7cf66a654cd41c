//! Reports: failures, conditions, Events, health, metrics and logs.

mod clip;
pub mod conditions;
mod deletion;
mod events;
mod failure;
pub(crate) mod health;
pub(crate) mod logging;
pub(crate) mod metrics;
mod next_retry;
mod recorder;
pub(crate) mod server;
pub(crate) mod settings_status;
mod status_pace;
mod told;

pub use {
    deletion::{Deletion, HAS_TO_GO_FIRST, TERMINATING},
    events::{EVENTS_BUSY, Events},
    failure::{Failure, Failures},
    logging::LogFormat,
    next_retry::NextRetry,
    settings_status::SettingsEvents,
    status_pace::{Pace, StatusAge},
    told::{Told, tell_again_after},
};

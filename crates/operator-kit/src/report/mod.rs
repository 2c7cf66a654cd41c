//! Reports: failures, conditions, Events, health, metrics and logs.

mod clip;
pub mod conditions;
mod events;
mod failure;
pub(crate) mod health;
pub(crate) mod logging;
pub(crate) mod metrics;
mod next_retry;
pub mod reason;
pub(crate) mod server;
pub(crate) mod settings_status;
mod status_pace;

pub use {
    events::{Events, Repeat, normal, warning},
    failure::{Failure, Failures},
    kube::runtime::events::{Event, EventType},
    logging::LogFormat,
    next_retry::NextRetry,
    settings_status::SettingsEvents,
    status_pace::{Pace, StatusAge},
};

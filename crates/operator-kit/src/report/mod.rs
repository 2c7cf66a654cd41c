//! Reports: failures, conditions, Events, health, metrics and logs.

pub mod conditions;
mod events;
mod failures;
pub(crate) mod logging;
pub(crate) mod metrics;
pub mod reason;
pub(crate) mod settings_status;
mod status_pace;
mod watch_reports;

pub(crate) use watch_reports::WatchReports;
pub use {
    events::{Events, Repeat, normal, warning},
    failures::Failures,
    kube::runtime::events::{Event, EventType},
    logging::LogFormat,
    settings_status::SettingsEvents,
    status_pace::{Pace, StatusAge},
};

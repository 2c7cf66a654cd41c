//! Reports: failures, conditions, Events, health, metrics and logs.

mod conditions;
mod events;
mod failures;
pub(crate) mod logging;
pub(crate) mod metrics;
pub(crate) mod reason;
pub(crate) mod settings_status;
mod status_pace;
mod watch_reports;

pub(crate) use watch_reports::WatchReports;
pub use {
    conditions::Conditions,
    events::{Events, Repeat},
    failures::Failures,
    kube::runtime::events::{Event, EventType},
    status_pace::{Pace, StatusAge},
};

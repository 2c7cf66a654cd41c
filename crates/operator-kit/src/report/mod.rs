//! Reports: failures, conditions, Events, health, metrics and logs.

mod events;
pub(crate) mod failures;
pub(crate) mod health;
pub(crate) mod metrics;
pub(crate) mod settings_status;
mod status;

pub use {
    events::Events,
    failures::{Failures, StepError},
    kube::runtime::events::{Event, EventType},
    status::{Conditions, StatusAge},
};

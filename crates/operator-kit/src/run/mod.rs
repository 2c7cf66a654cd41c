//! The process: it starts, leads, and makes passes over objects with one backoff each.

mod arguments;
mod backoff;
mod controller;
mod leader;
mod operator;
mod probe;
mod queue;
mod renderings;
mod server;
mod settings;

#[cfg(feature = "testing")]
pub(crate) use settings::{Current, parse as parse_settings};
pub use {
    arguments::{Arguments, Identity},
    backoff::Backoffs,
    controller::{Controller, Requeue},
    operator::Operator,
    queue::{Queue, Triggers},
    renderings::RenderCache,
    settings::{SettingsHandle, TemplateSample, Validate},
};

//! The process: it starts, leads, and makes passes over objects with one backoff each.

mod arguments;
mod attempt;
mod backoff;
mod controller;
mod leader;
mod operator;
mod probe;
mod queue;
mod reconciler;
mod renderings;
mod selftest;
mod server;
mod settings;
mod triggers;

#[cfg(feature = "testing")]
pub(crate) use settings::parse as parse_settings;
pub use {
    arguments::{Arguments, Identity},
    attempt::{Attempt, HeldUp},
    controller::{Controller, Next},
    operator::Operator,
    queue::Queue,
    renderings::Renderings,
    settings::{LiveSettings, Sample, Validate},
    triggers::Triggers,
};

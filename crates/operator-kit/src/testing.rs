//! A mocked API server for tests of controllers, and what the kit makes of any text.

use std::path::Path;

use operator_templates::escape_json;
pub use operator_watch::testing::{
    Answer, Lenient, Log, Sent, answering, answering_at, in_turn, is_watch_line, page, refused,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::run::{Next, Validate, parse_settings};

/// A step, and its effects.
pub struct Taken<O, M, E> {
    /// The requests.
    pub sent: Vec<Sent>,
    /// The result of the step.
    pub result: Result<Next, E>,
    /// The memory after the step.
    pub memory: M,
    /// The observation on which it was decided.
    pub observed: O,
}

/// Settings, as they are read from their file.
///
/// # Errors
/// When they cannot be parsed, or contradict themselves.
pub fn settings<S: DeserializeOwned + Validate>(text: &str) -> anyhow::Result<S> {
    parse_settings(Path::new("settings.yaml"), text)
}

/// The body of an apply, which the API server reads as YAML.
#[must_use]
pub fn applied(object: &Value) -> String {
    escape_json(&object.to_string())
}

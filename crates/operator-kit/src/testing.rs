//! A mocked API server for tests of controllers, and what the kit makes of any text.

use std::{path::Path, sync::Arc};

use kube::Client;
use operator_watch::Failure;
pub use operator_watch::testing::{
    Answer, Log, Sent, answering, answering_at, in_turn, is_watch_line, page, refused,
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    report::{
        Events, Failures,
        failures::{REPEATED_WRITES, SETTINGS_REFUSED, SETTINGS_WAIT_FOR_RIGHTS, TIMED_OUT},
        metrics::Metrics,
    },
    run::{Backoffs, Current, Requeue, SettingsHandle, Validate, parse_settings},
    write::{Writer, escape_json},
};

/// A step, and its effects.
pub struct Taken<O, M, E> {
    /// The requests.
    pub sent: Vec<Sent>,
    /// The result of the step.
    pub result: Result<Requeue, E>,
    /// The memory after the step.
    pub memory: M,
    /// The observation on which it was decided.
    pub observed: O,
}

impl Backoffs {
    /// The same, and this step.
    #[must_use]
    pub fn and_step(self, step: &'static str, failure: Failure) -> Self {
        self.and(step, None, failure, false)
    }

    /// The same, and this item of a step.
    #[must_use]
    pub fn and_item(self, step: &'static str, item: &str, failure: Failure) -> Self {
        self.and(step, Some(item), failure, false)
    }

    /// The same, and an item of a step that may be retried.
    #[must_use]
    pub fn and_due(self, step: &'static str, item: &str, failure: Failure) -> Self {
        self.and(step, Some(item), failure, true)
    }
}

impl Failures {
    /// All reasons of the kit's own.
    pub const REASONS: &[&str] = &[REPEATED_WRITES, SETTINGS_REFUSED, SETTINGS_WAIT_FOR_RIGHTS, TIMED_OUT];
}

impl Default for Metrics {
    /// Metrics that nobody is served.
    fn default() -> Self {
        Self::new("operator")
    }
}

impl Events {
    /// Events without an [`Operator`](crate::run::Operator), such as those over a mocked client.
    #[must_use]
    pub fn over(client: Client, controller: &str) -> Self {
        Self::new(client, controller, controller, Arc::default())
    }
}

impl Writer {
    /// A writer without an [`Operator`](crate::run::Operator), such as one over a mocked client.
    #[must_use]
    pub fn over(client: Client, manager: &'static str) -> Self {
        Self::new(client, manager, Arc::default())
    }
}

impl<S> SettingsHandle<S> {
    /// Settings that never change.
    #[must_use]
    pub fn fixed(settings: S) -> Self {
        Self(watch::channel(Current { version: 1, settings: Arc::new(settings) }).1)
    }
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

//! The state of an object, with the reason for it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::Serialize;

/// The state in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum State {
    /// It serves as desired.
    Ready,
    /// It has succeeded.
    Done,
    /// It exists; its kind reports no more.
    Present,
    /// It is in progress.
    Moving,
    /// Its controller has not yet reported on its current spec.
    Unreported,
    /// It does not proceed by itself.
    Stuck,
    /// It has failed.
    Failed,
    /// It is being deleted.
    Terminating,
}

/// The state of an object, and the reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// The state.
    pub state: State,
    /// One word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl State {
    /// Whether it needs no attention.
    pub fn is_healthy(self) -> bool {
        matches!(self, Self::Ready | Self::Done | Self::Present)
    }
}

impl Health {
    /// A state with its reason.
    pub fn new(state: State, reason: &str, message: impl Into<String>) -> Self {
        Self { state, reason: reason.to_owned(), message: message.into(), since: None }
    }

    /// A state with the words of a condition.
    pub fn said(state: State, condition: &Condition) -> Self {
        let since = Some(condition.last_transition_time.0).filter(|since| *since != Timestamp::default());
        Self::new(state, &condition.reason, condition.message.clone()).since(since)
    }

    /// With its beginning.
    pub fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }
}

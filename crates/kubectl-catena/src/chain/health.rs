//! The state of an object, with the reason for it.

use jiff::Timestamp;
use serde::Serialize;

/// In short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum State {
    /// It is as it should be, and serves.
    Ready,
    /// It did what it was for.
    Done,
    /// It is there; its kind does not tell more.
    Present,
    /// It is on its way.
    Moving,
    /// Its controller has not spoken (about the spec as it is now).
    Unreported,
    /// It does not go on by itself.
    Stuck,
    /// It ended badly.
    Failed,
    /// It is being deleted.
    Terminating,
}

/// How an object is, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// In short.
    pub state: State,
    /// One word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// For people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl State {
    /// Whether nobody needs to look.
    pub fn is_well(self) -> bool {
        matches!(self, Self::Ready | Self::Done | Self::Present)
    }
}

impl Health {
    /// How it is.
    pub fn new(state: State, reason: &str, message: impl Into<String>) -> Self {
        Self { state, reason: reason.to_owned(), message: message.into(), since: None }
    }

    /// Since when it is so.
    pub fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }
}

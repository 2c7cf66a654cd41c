//! The result of a diagnosis.

use std::borrow::Cow;

use catena_cluster::{Gap, Health, Identity};
use catena_terminal::cut;
use jiff::Timestamp;
use serde::Serialize;

use super::{Row, reasons};

/// Characters of a text that is printed.
const MAX_LENGTH: usize = 2000;
/// The exit code for an object that is not ready, not finished or not gone.
const NOT_WELL: u8 = 5;
/// The exit code for an object whose state could not be found out, as for an error.
const UNKNOWN: u8 = 1;

/// The answer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The object that was asked about.
    pub object: Identity,
    /// Whether it is known to need no attention. Without a root cause, `false` means that this is unknown.
    pub well: bool,
    /// The answer in one sentence.
    pub sentence: String,
    /// The root cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_cause: Option<Cause>,
    /// The objects from the leaf to the asked one.
    pub evidence: Vec<Evidence>,
    /// Further facts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The time of the answer, by the clock of the API server.
    #[serde(skip)]
    pub now: Timestamp,
    /// Gaps because of which the answer may be wrong.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_seen: Vec<Gap>,
}

/// The root cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cause {
    /// The object at fault.
    pub object: Identity,
    /// One `PascalCase` word.
    pub reason: String,
    /// The state of that object, to be read after its name.
    pub meaning: String,
    /// The message of its reporter.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The remedy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// Whether nothing stands in the way.
    #[serde(skip)]
    pub is_progress: bool,
}

/// The state of one object.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// The object.
    #[serde(flatten)]
    pub object: Identity,
    /// Its state.
    #[serde(flatten)]
    pub health: Health,
}

impl Answer {
    /// With texts of a length that a person reads: an object may say a megabyte.
    pub(crate) fn clipped(mut self) -> Self {
        let messages = self.evidence.iter_mut().map(|evidence| &mut evidence.health.message);
        let of_cause = self.root_cause.iter_mut();
        let of_cause = of_cause.flat_map(|cause| [&mut cause.meaning, &mut cause.message, &mut cause.advice]);
        for text in messages.chain(of_cause).chain(&mut self.remarks).chain([&mut self.sentence]) {
            if let Cow::Owned(begin) = cut(text, MAX_LENGTH) {
                *text = format!("{begin} ({} bytes in all)", text.len());
            }
        }
        self
    }

    /// The exit code: an error and an unknown state have the same.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match &self.root_cause {
            _ if self.well => 0,
            Some(_) => NOT_WELL,
            None => UNKNOWN,
        }
    }
}

impl Cause {
    /// The cause that an object reports.
    pub fn reported(object: &Identity, reason: &str, message: &str) -> Self {
        let usual = || Self::described(object, reason, reasons::describe_of(object, reason)).message(message);
        Self::refused(object, reason, message).unwrap_or_else(usual)
    }

    /// The cause if a gatekeeper refused a write.
    ///
    /// The same reason, such as `Forbidden`, comes from different gatekeepers, which only the message tells apart: it has the
    /// words of the API server, which are the same for all kinds.
    pub fn refused(object: &Identity, reason: &str, message: &str) -> Option<Self> {
        let (row, name) = reasons::gatekeeper(object, &format!("{reason}: {message}"))?;
        let cause = Self::described(object, reason, Some(row)).message(message);
        Some(if name.is_empty() { cause } else { cause.meaning(format!("{} ({name})", row.meaning)) })
    }

    /// A reason with its usual meaning and remedy.
    pub fn with(object: &Identity, reason: &str) -> Self {
        Self::described(object, reason, reasons::describe(reason))
    }

    /// A reason with the meaning and the remedy of a row, if there is one.
    pub fn described(object: &Identity, reason: &str, row: Option<&Row>) -> Self {
        Self {
            object: object.clone(),
            reason: reason.to_owned(),
            meaning: row.map_or("is not ready", |row| &row.meaning).to_owned(),
            message: String::new(),
            since: None,
            advice: row.map(|row| row.remedy.clone()).unwrap_or_default(),
            is_progress: row.is_some_and(|row| row.is_progress),
        }
    }

    /// With the words of a case of its reason, in which these names are filled in.
    pub fn in_case(mut self, case: &str, names: &[(&str, &str)]) -> Self {
        let Some(row) = reasons::case(case) else { return self };
        let filled =
            |text: &str| names.iter().fold(text.to_owned(), |text, (place, name)| text.replace(place, name));
        self.meaning = filled(&row.meaning);
        if !row.remedy.is_empty() {
            self.advice = filled(&row.remedy);
        }
        self
    }

    /// With another meaning.
    pub fn meaning(self, meaning: impl Into<String>) -> Self {
        Self { meaning: meaning.into(), ..self }
    }

    /// With the message of its reporter.
    pub fn message(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// With its beginning.
    pub fn since(self, since: Option<Timestamp>) -> Self {
        Self { since, ..self }
    }

    /// With another remedy.
    pub fn advice(self, advice: impl Into<String>) -> Self {
        Self { advice: advice.into(), ..self }
    }
}

use std::sync::Arc;

use cel::Value;
use thiserror::Error;

use super::{evaluation::STEPS, values};

/// Maximum length, in characters, of a text that quotes values of any size.
const CLIPPED: usize = 200;

/// An expression that has no usable value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{field}: `{expression}` {problem}")]
pub struct ExpressionError {
    /// The field of the settings with the expression.
    pub field: Arc<str>,
    /// The expression.
    pub expression: Arc<str>,
    pub(super) problem: Problem,
}

/// Why it has none.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is not CEL, or uses an unknown variable or function, or what is not evaluated as in the API server.
    #[error("does not compile: {0}; correct the expression")]
    Compile(String),
    /// The object does not have a field that the expression reads.
    #[error("has no value: the field {0} is missing; set it, or guard it with has(…) or .?")]
    Missing(Arc<String>),
    /// The value has another type than the requested one.
    #[error("must return {wanted}, but returns {got}")]
    WrongType { wanted: &'static str, got: String },
    /// Its operations are not possible with the values of this object.
    #[error("has no value: {0}; check the fields that it reads")]
    Failed(String),
    /// Its loops take too many steps over this object.
    #[error("was stopped after {} steps: the lists that it iterates over are too long", STEPS)]
    TooCostly,
}

impl ExpressionError {
    /// The field of the object that the expression reads and the object does not have, if that is the reason.
    #[must_use]
    pub fn missing(&self) -> Option<&str> {
        if let Problem::Missing(key) = &self.problem { Some(key) } else { None }
    }
}

/// An operation that these values do not have.
pub(super) fn unsuited(operation: &str, values: &[Value]) -> Problem {
    let values: Vec<_> = values.iter().map(values::described).collect();
    let operation = operation.trim_matches(['_', '@']);
    Problem::Failed(clip(&format!("{operation} is not possible with {}", values.join(" and "))))
}

/// Puts a text with values of any size on one line of bounded length.
pub(super) fn clip(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(CLIPPED) {
        line.truncate(end);
        line.push('…');
    }
    line
}

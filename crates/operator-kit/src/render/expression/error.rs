use std::sync::Arc;

use thiserror::Error;

use crate::report::{Category, Reported};

/// Maximum length, in characters, of a text of the interpreter, which quotes values of any size.
const CLIPPED: usize = 200;

/// An expression that has no usable value. The field of the settings with the expression comes first, and then the expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// It is not CEL, or uses an unknown variable or function: the mistake in it.
    #[error("{0}: `{1}` does not compile: {2}; correct the expression")]
    Compile(Arc<str>, Arc<str>, String),
    /// The object does not have this field, which the expression reads.
    #[error("{0}: `{1}` has no value: the field {2} is missing; set it, or guard it with has(…) or .?")]
    Missing(Arc<str>, Arc<str>, String),
    /// The value has another type than the requested one: that type, and the value.
    #[error("{0}: `{1}` must return {2}, but returns {3}")]
    WrongType(Arc<str>, Arc<str>, &'static str, String),
    /// Its operations are not possible with the values of this object: the reason.
    #[error("{0}: `{1}` has no value: {2}; check the fields that it reads")]
    Failed(Arc<str>, Arc<str>, String),
    /// Its loops take more than this number of steps over this object.
    #[error("{0}: `{1}` was stopped after {2} steps: the lists that it iterates over are too long")]
    TooCostly(Arc<str>, Arc<str>, u32),
}

impl Reported for ExpressionError {
    fn category(&self) -> Category {
        Category::WaitsForChange
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::Compile(..) => "InvalidExpression",
            Self::Missing(..) => "FieldMissing",
            Self::WrongType(..) | Self::Failed(..) => "ExpressionFailed",
            Self::TooCostly(..) => "ExpressionTooCostly",
        }
    }
}

/// Puts a text of the interpreter on one line of bounded length.
pub(super) fn clip(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(CLIPPED) {
        line.truncate(end);
        line.push('…');
    }
    line
}

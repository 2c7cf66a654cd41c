use std::sync::Arc;

use thiserror::Error;

/// Maximum length, in characters, of a text of the interpreter, which quotes values of any size.
const CLIPPED: usize = 200;

/// An expression that has no usable value.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// It is not CEL, or uses an unknown variable or function.
    #[error("{field}: `{expression}` does not compile: {problem}; correct the expression")]
    Compile {
        /// The field of the settings with the expression.
        field: Arc<str>,
        /// The expression.
        expression: Arc<str>,
        /// The mistake in it.
        problem: String,
    },
    /// The object does not have a field that the expression reads.
    #[error(
        "{field}: `{expression}` has no value: the field {key} is missing; set it, or guard it with has(…) or .?"
    )]
    Missing {
        /// The field of the settings with the expression.
        field: Arc<str>,
        /// The expression.
        expression: Arc<str>,
        /// The missing field.
        key: String,
    },
    /// The value has another type than the requested one.
    #[error("{field}: `{expression}` must return {wanted}, but returns {got}")]
    WrongType {
        /// The field of the settings with the expression.
        field: Arc<str>,
        /// The expression.
        expression: Arc<str>,
        /// The requested type.
        wanted: &'static str,
        /// The value that it renders.
        got: String,
    },
    /// Its operations are not possible with the values of this object.
    #[error("{field}: `{expression}` has no value: {problem}; check the fields that it reads")]
    Failed {
        /// The field of the settings with the expression.
        field: Arc<str>,
        /// The expression.
        expression: Arc<str>,
        /// Why.
        problem: String,
    },
    /// Its loops take too many steps over this object.
    #[error(
        "{field}: `{expression}` was stopped after {steps} steps: the lists that it iterates over are too long"
    )]
    TooCostly {
        /// The field of the settings with the expression.
        field: Arc<str>,
        /// The expression.
        expression: Arc<str>,
        /// The number of allowed steps.
        steps: u32,
    },
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

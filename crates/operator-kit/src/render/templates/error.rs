use thiserror::Error;

use crate::report::{Failure, reason};

/// A template that did not render an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateError {
    /// There is no template with this name.
    #[error(
        "spec.template: there is no template {template:?}; use one of those configured ({known}) or have it added under `templates` in the values of the controller of this kind"
    )]
    Unknown {
        /// The requested name.
        template: String,
        /// The existing names.
        known: String,
    },
    /// The template uses a parameter that is not set.
    #[error("spec.parameters.{parameter} is missing: the template {template:?} requires it; set it")]
    MissingParameter {
        /// The template.
        template: String,
        /// The parameter.
        parameter: String,
    },
    /// A parameter is set that the template does not declare.
    #[error("spec.parameters.{parameter} is not a parameter of the template {template:?}: {advice}")]
    UnknownParameter {
        /// The template.
        template: String,
        /// The parameter.
        parameter: String,
        /// The name that was probably meant, or all names.
        advice: String,
    },
    /// A parameter has a value that its declaration does not allow.
    #[error("spec.parameters.{parameter} is not valid for the template {template:?}: {problem}")]
    InvalidParameter {
        /// The template.
        template: String,
        /// The parameter.
        parameter: String,
        /// The problem and the remedy.
        problem: String,
    },
    /// It is broken, cannot be rendered, or renders something else than one object that may be created.
    #[error("the template {template:?} {problem}")]
    Refused {
        /// The template.
        template: String,
        /// The problem and the remedy.
        problem: String,
    },
    /// It renders an object of another kind.
    #[error(
        "the template {template:?} renders {found:?}, but the controller is configured for {wanted:?}; change one of the two"
    )]
    WrongKind {
        /// The template.
        template: String,
        /// The rendered kind.
        found: String,
        /// The kind that is configured.
        wanted: String,
    },
    /// It renders the same name for all objects of one subject.
    #[error(
        "the template {template:?} renders the name {name:?}, which does not contain suffix: many objects are created from the template, and only suffix keeps their names apart; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
    )]
    NotUnique {
        /// The template.
        template: String,
        /// The name.
        name: String,
    },
}

impl TemplateError {
    pub(super) fn refused(template: &str, problem: impl Into<String>) -> Self {
        Self::Refused { template: template.to_owned(), problem: problem.into() }
    }

    /// The failure of a rendering with the values at hand.
    pub(super) fn failed(template: &str, problem: &str) -> Self {
        let remedy = "correct its input, such as spec.parameters, or the template";
        Self::refused(template, format!("cannot be rendered: {problem}; {remedy}"))
    }

    pub(super) fn too_long(template: &str) -> Self {
        Self::refused(template, "renders more than 3 MiB, which no API server accepts; make it smaller")
    }

    /// One `PascalCase` word for a condition or an Event.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => reason::TEMPLATE_NOT_FOUND,
            Self::MissingParameter { .. } => reason::PARAMETER_MISSING,
            Self::UnknownParameter { .. } => reason::PARAMETER_UNKNOWN,
            Self::InvalidParameter { .. } => reason::PARAMETER_INVALID,
            Self::NotUnique { .. } => reason::NOT_UNIQUE,
            _ => reason::TEMPLATE_FAILED,
        }
    }
}

impl From<&TemplateError> for Failure {
    fn from(error: &TemplateError) -> Self {
        Self::stalled(error.reason(), error.to_string())
    }
}

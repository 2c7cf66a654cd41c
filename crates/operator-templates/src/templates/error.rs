use thiserror::Error;

use crate::reason;

/// A template that did not render an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct TemplateError {
    /// One `PascalCase` word for a condition or an Event.
    pub reason: &'static str,
    /// The problem and its remedy, for people.
    pub message: String,
    /// The API version and the kind of the object that it renders, if they are none of those that are configured.
    pub other_kind: Option<String>,
}

impl TemplateError {
    pub(super) fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message, other_kind: None }
    }

    /// There is no template with this name, but those with the names in a list.
    #[must_use]
    pub fn unknown(template: &str, known: &str) -> Self {
        let message = format!(
            "spec.template: there is no template {template:?}; use one of those configured ({known}) or have it added under `templates` in the values of the controller of this kind"
        );
        Self::new(reason::TEMPLATE_NOT_FOUND, message)
    }

    /// The template uses a parameter that is not set.
    pub(super) fn missing(template: &str, parameter: &str) -> Self {
        let message =
            format!("spec.parameters.{parameter} is missing: the template {template:?} requires it; set it");
        Self::new(reason::PARAMETER_MISSING, message)
    }

    /// It is broken, cannot be rendered, or renders something else than one object that may be created.
    pub(super) fn refused(template: &str, problem: impl AsRef<str>) -> Self {
        Self::new(reason::TEMPLATE_FAILED, format!("the template {template:?} {}", problem.as_ref()))
    }

    /// The failure of a rendering with the values at hand.
    pub(super) fn failed(template: &str, problem: &str) -> Self {
        let remedy = "correct its input, such as spec.parameters, or the template";
        Self::refused(template, format!("cannot be rendered: {problem}; {remedy}"))
    }

    pub(super) fn too_long(template: &str) -> Self {
        Self::refused(template, "renders more than 3 MiB, which no API server accepts; make it smaller")
    }
}

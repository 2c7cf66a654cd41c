use std::{collections::BTreeMap, io, ops::Range};

use minijinja::{Error, ErrorKind, Template};
use thiserror::Error;

use super::{Input, source::as_written};
use crate::field_path::shown;

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
    /// All reasons why a template renders no object.
    pub const REASONS: &[&str] = &[
        "NotUnique",
        "ParameterInvalid",
        "ParameterMissing",
        "ParameterUnknown",
        "TemplateFailed",
        "TemplateNotFound",
    ];

    pub(super) fn new(reason: &'static str, message: String) -> Self {
        Self { reason, message, other_kind: None }
    }

    /// There is no template with this name, but those with the names in a list.
    #[must_use]
    pub fn unknown(template: &str, known: &str) -> Self {
        let message = format!(
            "spec.template: there is no template {template:?}; use one of those configured ({known}) or have it added under `templates` in the values of the controller of this kind"
        );
        Self::new("TemplateNotFound", message)
    }

    /// The template uses a parameter that is not set.
    pub(super) fn missing(template: &str, parameter: &str) -> Self {
        let message =
            format!("spec.parameters.{parameter} is missing: the template {template:?} requires it; set it");
        Self::new("ParameterMissing", message)
    }

    /// It is broken, cannot be rendered, or renders something else than one object that may be created.
    pub(super) fn refused(template: &str, problem: impl AsRef<str>) -> Self {
        Self::new("TemplateFailed", format!("the template {template:?} {}", problem.as_ref()))
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

/// The error for a template that failed to render.
pub(super) fn failure(template: &Template<'_, '_>, input: &Input<'_>, error: &Error) -> TemplateError {
    let name = template.name();
    if error.kind() == ErrorKind::WriteFailure {
        return TemplateError::too_long(name);
    }
    let is_undefined = error.kind() == ErrorKind::UndefinedError;
    if is_undefined
        && let Some(parameter) = input.parameters.missing()
        && is_missing(&parameter, template, input, error)
    {
        return TemplateError::missing(name, &parameter);
    }
    let Some(block) = error.range().and_then(|range| block(template.source(), range)).map(as_written) else {
        return TemplateError::failed(name, &error.to_string());
    };
    let parameter = only(input.given, |name| !is_undefined && reads(&block, name));
    TemplateError::failed(name, &format!("{block}: {error}{parameter}"))
}

/// Whether the rendering fails for lack of a parameter, and not of something else, such as a label.
fn is_missing(parameter: &str, template: &Template<'_, '_>, input: &Input<'_>, error: &Error) -> bool {
    let with_it = Input { parameters: input.parameters.with(parameter), ..input.clone() };
    let again = template.render_captured_to(with_it.values(), io::sink());
    again.err().is_none_or(|again| (again.line(), again.range()) != (error.line(), error.range()))
}

/// The block of a template, such as `{{ … }}`, around a part of it.
fn block(source: &str, part: Range<usize>) -> Option<&str> {
    let (before, after) = (source.get(..part.start)?, source.get(part.end..)?);
    let start = before.rfind("{{").max(before.rfind("{%"))?;
    let end = [after.find("}}"), after.find("%}")].into_iter().flatten().min()?;
    source.get(start..part.end + end + "}}".len())
}

/// Whether a block reads a parameter.
fn reads(block: &str, parameter: &str) -> bool {
    let is_longer = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    block.split(&format!("parameters.{parameter}")).skip(1).any(|rest| !is_longer(rest))
}

/// The only parameter for which `may_be` holds and its value, as a part of a message; empty without one.
fn only(parameters: &BTreeMap<String, String>, may_be: impl Fn(&str) -> bool) -> String {
    let mut found = parameters.iter().filter(|(name, _)| may_be(name));
    match (found.next(), found.next()) {
        (Some((name, value)), None) => format!("; spec.parameters.{name} is {}", shown(value)),
        _ => String::new(),
    }
}

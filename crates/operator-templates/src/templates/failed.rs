//! Errors of renderings, with the place in the template and the parameter that stands there.

use std::{collections::BTreeMap, ops::Range};

use minijinja::{Error, ErrorKind, Template};

use super::{Input, TemplateError, source::as_written};
use crate::field_path::shown;

/// The error for a template that failed to render.
pub(super) fn failure(template: &Template<'_, '_>, input: &Input<'_>, error: &Error) -> TemplateError {
    let name = template.name();
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
    let again = template.render(with_it.values());
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

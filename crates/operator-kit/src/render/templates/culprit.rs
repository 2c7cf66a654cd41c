//! Finds the parameter that causes a mistake, by rendering with another value. Equal texts are no evidence, because the
//! template itself may contain the same text.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use minijinja::Template;
use serde_json::Value;

use super::{ApiKind, Input, Parameters, Rendered, Subject, TemplateError, Templates, structure};
use crate::render::field_path;

/// Values that no author uses; the second is for parameters that are converted to numbers.
const OTHERS: [&str; 2] = ["catena-other-value", "919191919"];
/// Maximum number of parameters that are tried: many parameters may have the same value.
const TRIED: usize = 4;
/// Maximum number of places that are examined.
const MAX_PLACES: usize = 3;
/// Maximum size, in bytes, of an object whose parameters are tried: it is rendered about twenty times, and everything
/// else runs on the same thread.
const MAX_TRIED_BYTES: usize = 64 * 1024;
/// Maximum length of a value in a message, in bytes.
const SHOWN: usize = 60;

impl Templates {
    /// Describes each field that the server names when it refuses a rendered object, in its message or its list of
    /// fields: the field's value, and the parameter that the value comes from.
    #[must_use]
    pub fn culprits(
        &self,
        (message, fields): (&str, &[String]),
        name: &str,
        subject: &Subject<'_>,
        api_version: &str,
        kind: &str,
    ) -> Vec<String> {
        let render = |subject: &Subject<'_>| self.render(name, subject, api_version, kind).ok();
        let Some(rendered) = render(subject) else { return Vec::new() };
        let is_large = rendered.object.to_string().len() > MAX_TRIED_BYTES;
        let places = field_path::named(message, fields, &rendered.object).into_iter().take(MAX_PLACES);
        let told = places.filter_map(|place| {
            let text = text(rendered.object.pointer(&place.pointer)?)?;
            let parameter = only_one(
                subject.parameters,
                |_, value| !is_large && text.contains(value),
                |name| moves(render, subject, name, &place.pointer),
            );
            let is_news = parameter.is_some() || !message.contains(&place.path);
            is_news.then(|| said(&place.path, &text, parameter))
        });
        told.collect()
    }

    /// The parameter whose value is structure, as a part of a message; empty if it is not found.
    pub(super) fn intruder(&self, input: Input<'_>, kinds: &[ApiKind<'_>]) -> String {
        let subject = input.subject;
        let is_large = subject.parameters.values().map(String::len).sum::<usize>() > MAX_TRIED_BYTES;
        let parameter = only_one(
            subject.parameters,
            |_, value| !is_large && structure::could_be_structure(value),
            |name| {
                let parameters = with(subject.parameters, name, "1");
                let subject = Subject { parameters: &parameters, ..*subject };
                let proved = self.given(input.template, &subject).and_then(|given| {
                    self.proved(Input { subject: &subject, parameters: &given, ..input }, kinds)
                });
                proved.is_ok_and(|proved| proved.is_some())
            },
        );
        blamed(subject.parameters, parameter)
    }

    /// Whether a template sets one of the fields that the server names.
    #[must_use]
    pub fn sets(
        &self,
        fields: &[String],
        name: &str,
        subject: &Subject<'_>,
        api_version: &str,
        kind: &str,
    ) -> bool {
        let rendered = self.render(name, subject, api_version, kind);
        rendered.is_ok_and(|rendered| !field_path::named("", fields, &rendered.object).is_empty())
    }
}

/// The error for a template that failed to render, with the place and the parameter that caused it.
pub(super) fn failure(
    template: &Template<'_, '_>,
    input: Input<'_>,
    error: &minijinja::Error,
) -> TemplateError {
    let subject = input.subject;
    let place = (error.line(), error.range());
    let is_reason = |parameter: &str| {
        let parameters = with(subject.parameters, parameter, "1");
        let given = Arc::new(Parameters::given(&parameters));
        let subject = Subject { parameters: &parameters, ..*subject };
        let again = template.render(Input { subject: &subject, parameters: &given, ..input }.values());
        again.err().is_none_or(|error| (error.line(), error.range()) != place)
    };
    let name = template.name().to_owned();
    if let Some(parameter) = input
        .parameters
        .missing()
        .filter(|parameter| error.kind() == minijinja::ErrorKind::UndefinedError && is_reason(parameter))
    {
        return TemplateError::MissingParameter { template: name, parameter };
    }
    let Some(block) = error.range().and_then(|range| block(template.source(), range)) else {
        return TemplateError::Failed { template: name, problem: error.to_string() };
    };
    let is_named = |name: &str, _: &str| block.contains(&format!("parameters.{name}"));
    let parameter = only_one(subject.parameters, is_named, is_reason);
    TemplateError::Failed {
        template: name,
        problem: format!("{block}: {error}{}", blamed(subject.parameters, parameter)),
    }
}

/// A parameter and its value, as a part of a message.
fn blamed(parameters: &BTreeMap<String, String>, parameter: Option<&str>) -> String {
    let value = parameter.and_then(|name| Some((name, parameters.get(name)?)));
    value.map(|(name, value)| format!("; spec.parameters.{name} is {}", shown(value))).unwrap_or_default()
}

/// The block of a template, such as `{{ … }}`, around a part of it.
fn block(source: &str, part: Range<usize>) -> Option<&str> {
    let (before, after) = (source.get(..part.start)?, source.get(part.end..)?);
    let start = before.rfind("{{").max(before.rfind("{%"))?;
    let end = [after.find("}}"), after.find("%}")].into_iter().flatten().min()?;
    source.get(start..part.end + end + "}}".len())
}

/// Whether a change of the parameter changes the value at a place.
fn moves(
    render: impl Fn(&Subject<'_>) -> Option<Rendered>,
    subject: &Subject<'_>,
    parameter: &str,
    pointer: &str,
) -> bool {
    OTHERS.iter().any(|other| {
        let parameters = with(subject.parameters, parameter, other);
        let rendered = render(&Subject { parameters: &parameters, ..*subject });
        let moved = rendered.as_ref().and_then(|rendered| text(rendered.object.pointer(pointer)?));
        moved.is_some_and(|text| text.contains(other))
    })
}

/// The only candidate for which `is` holds, if there are few candidates.
fn only_one(
    parameters: &BTreeMap<String, String>,
    may_be: impl Fn(&str, &str) -> bool,
    is: impl Fn(&str) -> bool,
) -> Option<&str> {
    let named = parameters.iter().filter(|(name, value)| !value.is_empty() && may_be(name, value));
    let few: Vec<_> = named.map(|(name, _)| name.as_str()).take(TRIED + 1).collect();
    let mut found = few.iter().filter(|name| is(name));
    found.next().filter(|_| few.len() <= TRIED && found.next().is_none()).copied()
}

fn with(parameters: &BTreeMap<String, String>, name: &str, value: &str) -> BTreeMap<String, String> {
    let mut parameters = parameters.clone();
    parameters.insert(name.to_owned(), value.to_owned());
    parameters
}

/// A scalar value as text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn said(path: &str, text: &str, parameter: Option<&str>) -> String {
    let parameter = parameter.map(|name| format!(", from spec.parameters.{name}"));
    format!("{path} is {}{}", shown(text), parameter.unwrap_or_default())
}

fn shown(text: &str) -> String {
    if text.len() > SHOWN { "a longer string".to_owned() } else { format!("{text:?}") }
}

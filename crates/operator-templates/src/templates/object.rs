//! The rules for a rendered object.

use serde_json::Value;

use super::{ApiKind, TemplateError};
use crate::{is_object_name, reason};

/// Checks that what was rendered is an object of one of the expected kinds.
pub(super) fn check(name: &str, object: &Value, kinds: &[ApiKind<'_>]) -> Result<(), TemplateError> {
    let not_an_object = |found: &str| not_an_object(name, found);
    match object {
        Value::Object(_) => {}
        Value::Null => return Err(not_an_object("nothing")),
        Value::Array(_) => return Err(not_an_object("a list")),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return Err(not_an_object("a single value")),
    }
    if let Some(field) = ["apiVersion", "kind"].into_iter().find(|field| !object[*field].is_string()) {
        return Err(not_an_object(&format!("an object without {field}")));
    }
    let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (found_version, found_kind) = (field("apiVersion"), field("kind"));
    if !kinds.contains(&(found_version.as_str(), found_kind.as_str())) {
        let found = format!("{found_version} {found_kind}");
        let wanted: Vec<_> = kinds.iter().map(|(version, kind)| format!("{version} {kind}")).collect();
        let wanted = wanted.join(", ");
        let problem = format!(
            "renders {found:?}, but the controller is configured for {wanted:?}; change one of the two"
        );
        return Err(TemplateError { other_kind: Some(found), ..TemplateError::refused(name, problem) });
    }
    for map in ["labels", "annotations"] {
        let found = object.pointer(&format!("/metadata/{map}"));
        if found.is_some_and(|found| !found.is_object() && !found.is_null()) {
            return Err(TemplateError::refused(
                name,
                format!(
                    "renders metadata.{map} that is not a map of strings; write one entry per line, or {{{{ labels }}}}"
                ),
            ));
        }
    }
    check_names(name, object)
}

/// The error for anything but one object.
pub(super) fn not_an_object(template: &str, found: &str) -> TemplateError {
    TemplateError::refused(
        template,
        format!(
            "renders {found}, but must render one object with apiVersion, kind and metadata.name; correct the template, or the parameter on which that depends"
        ),
    )
}

fn check_names(template: &str, object: &Value) -> Result<(), TemplateError> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(name) = text("/metadata/name") else {
        let problem = "renders no metadata.name; add one, for example {{ name }}";
        return Err(TemplateError::refused(template, problem));
    };
    let namespace = text("/metadata/namespace").map(|namespace| ("metadata.namespace", namespace));
    let mut names = [("metadata.name", name)].into_iter().chain(namespace);
    match names.find(|(_, found)| !is_object_name(found)) {
        Some((field, found)) => {
            let problem = format!(
                "renders the {field} {found:?}, which is not valid; correct spec.parameters, or the template"
            );
            Err(TemplateError::refused(template, problem))
        }
        None => Ok(()),
    }
}

/// Checks that names differ by the suffix: otherwise, the second of many objects would be taken for the first.
pub(super) fn unique(name: &str, one: &Value, without_suffix: &Value) -> Result<(), TemplateError> {
    let name_of = |object: &'_ Value| object.pointer("/metadata/name").cloned().unwrap_or_default();
    let given = name_of(one);
    if given != name_of(without_suffix) {
        return Ok(());
    }
    let given = given.as_str().unwrap_or_default();
    Err(TemplateError::new(
        reason::NOT_UNIQUE,
        format!(
            "the template {name:?} renders the name {given:?}, which does not contain suffix: many objects are created from the template, and only suffix keeps their names apart; write, for example, {{{{ name ~ \"-\" ~ suffix }}}}"
        ),
    ))
}

/// Puts the rendered object into the namespace of its subject; any other namespace is an error.
pub(super) fn settle_namespace(name: &str, object: &mut Value, namespace: &str) -> Result<(), TemplateError> {
    let place = &mut object["metadata"]["namespace"];
    match place.as_str() {
        Some(other) if other != namespace => {
            let problem = format!(
                "sets metadata.namespace to {other:?}; remove it, because the object is created in the namespace of its owner"
            );
            Err(TemplateError::refused(name, problem))
        }
        _ => {
            *place = namespace.into();
            Ok(())
        }
    }
}

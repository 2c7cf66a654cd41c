//! The rules for a rendered object.

use serde_json::Value;

use super::TemplateError;

/// Checks that what was rendered is an object of one of the expected kinds.
pub(super) fn check(template: &str, object: &Value, kinds: &[(&str, &str)]) -> Result<(), TemplateError> {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let refused = |problem: String| Err(TemplateError::refused(template, problem));
    let (version, kind) = match (object, text("/apiVersion"), text("/kind")) {
        (Value::Object(_), Some(version), Some(kind)) => (version, kind),
        (Value::Object(_), None, _) => return Err(not_an_object(template, "an object without apiVersion")),
        (Value::Object(_), ..) => return Err(not_an_object(template, "an object without kind")),
        (Value::Null, ..) => return Err(not_an_object(template, "nothing")),
        (Value::Array(_), ..) => return Err(not_an_object(template, "a list")),
        _ => return Err(not_an_object(template, "a single value")),
    };
    if !kinds.contains(&(version, kind)) {
        let found = format!("{version} {kind}");
        let wanted: Vec<_> = kinds.iter().map(|(version, kind)| format!("{version} {kind}")).collect();
        let wanted = wanted.join(", ");
        let problem = format!(
            "renders {found:?}, but the controller is configured for {wanted:?}; change one of the two"
        );
        return Err(TemplateError { other_kind: Some(found), ..TemplateError::refused(template, problem) });
    }
    for map in ["labels", "annotations"] {
        let found = object.pointer(&format!("/metadata/{map}"));
        if found.is_some_and(|found| !found.is_object() && !found.is_null()) {
            return refused(format!(
                "renders metadata.{map} that is not a map of strings; write one entry per line, or {{{{ labels }}}}"
            ));
        }
    }
    let name = text("/metadata/name").unwrap_or_default();
    if name.is_empty() {
        return refused("renders no metadata.name; add one, for example {{ name }}".to_owned());
    }
    let namespace = text("/metadata/namespace").filter(|namespace| !namespace.is_empty());
    for (field, found) in [("name", Some(name)), ("namespace", namespace)] {
        if let Some(found) = found.filter(|found| !is_object_name(found)) {
            return refused(format!(
                "renders the metadata.{field} {found:?}, which is not valid; correct spec.parameters, or the template"
            ));
        }
    }
    Ok(())
}

/// Whether a text is safe in the path of a URL, into which the client puts names as they are.
fn is_object_name(text: &str) -> bool {
    let may_stand = |character: char| character.is_ascii_alphanumeric() || "-._:@~+=".contains(character);
    !matches!(text, "" | "." | "..") && text.len() <= 253 && text.chars().all(may_stand)
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

/// Checks that names differ by the suffix: otherwise, the second of many objects would be taken for the first.
pub(super) fn unique(name: &str, one: &Value, without_suffix: &Value) -> Result<(), TemplateError> {
    let name_of = |object: &'_ Value| object.pointer("/metadata/name").cloned().unwrap_or_default();
    let given = name_of(one);
    if given != name_of(without_suffix) {
        return Ok(());
    }
    let given = given.as_str().unwrap_or_default();
    Err(TemplateError::new(
        "NotUnique",
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

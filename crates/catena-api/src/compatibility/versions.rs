//! What is asked of one definition by itself, so that its versions can live beside each other without a webhook.

use serde_json::Value;

use super::{
    Finding, Rule,
    definition::{conversion, name, versions, whole},
    path,
    schema::properties,
    validation::is_open,
};

/// What breaks the policy for definitions within one definition: the server converts between its versions without a
/// webhook and without loss, and a deprecated version says what to use instead.
#[must_use]
pub fn policy(definition: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    if conversion(definition) != "None" {
        let message = format!("it is {}, but must be None", conversion(definition));
        findings.push(whole("spec.conversion.strategy", Rule::ConversionByWebhook, message));
    }
    for version in versions(definition).filter(|version| version["deprecated"] == true) {
        if version["deprecationWarning"].as_str().unwrap_or_default().is_empty() {
            let path = format!("spec.versions[{}].deprecationWarning", name(version));
            let message = "it is missing; say which version to use instead".to_owned();
            findings.push(whole(&path, Rule::DeprecationUnexplained, message));
        }
    }
    let Some(storage) = versions(definition).find(|version| version["storage"] == true) else {
        return findings;
    };
    for other in versions(definition).filter(|other| name(other) != name(storage)) {
        findings.extend(lost(storage, other));
        findings.extend(lost(other, storage));
    }
    findings
}

/// The fields of one version that another lacks.
fn lost(from: &Value, to: &Value) -> Vec<Finding> {
    let mut paths = Vec::new();
    let [before, after] = [from, to].map(|version| &version["schema"]["openAPIV3Schema"]);
    missing("", before, after, &mut paths);
    let message = format!("{} lacks the field, so that a conversion to it drops the value", name(to));
    let finding = |path| Finding {
        version: name(from).to_owned(),
        path,
        rule: Rule::VersionsDiffer,
        message: message.clone(),
    };
    paths.into_iter().map(finding).collect()
}

fn missing(path: &str, from: &Value, to: &Value, paths: &mut Vec<String>) {
    if is_open(from) && !is_open(to) {
        paths.push(if path.is_empty() { "the object" } else { path }.to_owned());
    }
    for (name, before) in properties(from) {
        let place = path::field(path, name);
        match (to["properties"].get(name), &to["additionalProperties"]) {
            (Some(after), _) | (None, after @ Value::Object(_)) => missing(&place, before, after, paths),
            (None, _) if is_open(to) => {}
            (None, _) => paths.push(place),
        }
    }
    let parts = [("items", path::items(path)), ("additionalProperties", path::values(path))];
    for (key, place) in parts {
        match (&from[key], &to[key]) {
            (before @ Value::Object(_), after @ Value::Object(_)) => missing(&place, before, after, paths),
            (Value::Object(_), _) if !is_open(to) => paths.push(place),
            _ => {}
        }
    }
}

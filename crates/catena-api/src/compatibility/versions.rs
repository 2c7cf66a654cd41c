//! What is asked of one definition by itself, so that its versions can live beside each other without a webhook.

use serde_json::Value;

use super::{
    Finding, Rule,
    definition::{conversion, name, versions, whole},
    schema::compare,
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
fn lost(from: &Value, to: &Value) -> impl Iterator<Item = Finding> {
    let message = format!("{} lacks the field, so that a conversion to it drops the value", name(to));
    let is_lost = |finding: &Finding| matches!(finding.rule, Rule::FieldRemoved | Rule::UnknownFieldsDropped);
    let lost = compare(name(from), from, to).into_iter().filter(is_lost);
    lost.map(move |finding| Finding { rule: Rule::VersionsDiffer, message: message.clone(), ..finding })
}

//! What a definition says beside its schemas.

use serde_json::Value;

use super::{Finding, Rule, schema::compare};

/// The parts of a kind's identity: a change would make it another kind.
const IDENTITY: [&str; 4] = ["/spec/group", "/spec/scope", "/spec/names/kind", "/spec/names/plural"];

/// What breaks when the definition `new` replaces `old`.
///
/// Both are `CustomResourceDefinition`s of `apiextensions.k8s.io/v1`. Each version of the old definition is compared
/// with the same version of the new one. If objects are stored in another version from now on, the two storage versions
/// are compared as well, because a conversion without a webhook keeps only fields that both have.
#[must_use]
pub fn changes(old: &Value, new: &Value) -> Vec<Finding> {
    let mut findings = of_the_whole(old, new);
    for before in versions(old) {
        let name = name(before);
        match version(new, name) {
            Some(after) => {
                if before["served"] == true && after["served"] != true {
                    findings.push(no_longer_served(before));
                }
                findings.extend(subresources(before, after));
                findings.extend(compare(name, before, after));
            }
            None if before["served"] == true => findings.push(no_longer_served(before)),
            None => {}
        }
    }
    let storage = versions(old).find(|version| version["storage"] == true);
    if let Some(before) = storage {
        if version(new, name(before)).is_none() {
            findings.push(storage_removed(name(before)));
        }
        let after = versions(new).find(|version| version["storage"] == true);
        if let Some(after) = after.filter(|after| name(after) != name(before)) {
            findings.extend(compare(name(after), before, after));
        }
    }
    findings
}

/// The versions of a definition.
pub(super) fn versions(definition: &Value) -> impl Iterator<Item = &Value> {
    definition["spec"]["versions"].as_array().into_iter().flatten()
}

/// The name of a version.
pub(super) fn name(version: &Value) -> &str {
    version["name"].as_str().unwrap_or_default()
}

/// How the versions of a definition are converted.
pub(super) fn conversion(definition: &Value) -> &str {
    definition["spec"]["conversion"]["strategy"].as_str().unwrap_or("None")
}

fn version<'v>(definition: &'v Value, wanted: &str) -> Option<&'v Value> {
    versions(definition).find(|version| name(version) == wanted)
}

fn of_the_whole(old: &Value, new: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    for place in IDENTITY {
        let [before, after] = [old, new].map(|definition| definition.pointer(place).unwrap_or(&Value::Null));
        if before != after {
            let path = place.trim_start_matches('/').replace('/', ".");
            findings.push(whole(&path, Rule::KindChanged, format!("it was {before} and is {after}")));
        }
    }
    let [before, after] = [old, new].map(conversion);
    if before != after {
        findings.push(whole(
            "spec.conversion.strategy",
            Rule::ConversionChanged,
            format!("it was {before} and is {after}"),
        ));
    }
    let keeps = |definition: &Value| definition["spec"]["preserveUnknownFields"] == true;
    if keeps(old) && !keeps(new) {
        findings.push(whole(
            "spec.preserveUnknownFields",
            Rule::UnknownFieldsDropped,
            "fields that the schema does not name were kept, and are dropped".to_owned(),
        ));
    }
    findings
}

fn no_longer_served(before: &Value) -> Finding {
    let is_deprecated = before["deprecated"] == true;
    let rule = if is_deprecated { Rule::DeprecatedVersionRemoved } else { Rule::ServedVersionRemoved };
    let before_it = if is_deprecated { "it was deprecated, and" } else { "it was not deprecated, and" };
    let name = name(before);
    whole(&format!("spec.versions[{name}]"), rule, format!("{before_it} is no longer served"))
}

fn storage_removed(name: &str) -> Finding {
    whole(
        &format!("spec.versions[{name}]"),
        Rule::StorageVersionRemoved,
        "objects are stored in it; the server refuses the definition until status.storedVersions no longer holds it"
            .to_owned(),
    )
}

fn subresources(before: &Value, after: &Value) -> Vec<Finding> {
    let names = ["status", "scale"];
    let gone = names.into_iter().filter(|name| {
        let [had, has] = [before, after].map(|version| !version["subresources"][*name].is_null());
        had && !has
    });
    let path = format!("spec.versions[{}].subresources", name(before));
    gone.map(|name| {
        whole(&format!("{path}.{name}"), Rule::SubresourceRemoved, "the subresource is removed".to_owned())
    })
    .collect()
}

pub(super) fn whole(path: &str, rule: Rule, message: String) -> Finding {
    Finding { version: String::new(), path: path.to_owned(), rule, message }
}

//! The gatekeeper behind a refusal, read from the message of the API server: admission, a quota, or a missing right.

use operator_kit::watch::unknown_fields;

use super::{
    advice::{describe, describe_of},
    answer::Cause,
};
use crate::{errors::is_missing_right, object::Identity};

/// The cause that an object reports.
///
/// The same reason, such as `Forbidden`, comes from different gatekeepers, which only the message tells apart: it has the
/// words of the API server, which are the same for all kinds.
pub fn reported(object: &Identity, reason: &str, message: &str) -> Cause {
    let gatekeeper = gatekeeper(message);
    let known = gatekeeper.as_ref().map_or_else(|| describe_of(object, reason), |(key, _)| describe(key));
    let meaning = match (known.0, gatekeeper) {
        ("", _) => "is not ready".to_owned(),
        (meaning, Some((_, name))) if !name.is_empty() => format!("{meaning} ({name})"),
        (meaning, _) => meaning.to_owned(),
    };
    Cause::described(object, reason, known).meaning(meaning).message(message)
}

/// The messages of a `LimitRange`, which does not name itself.
const LIMIT_RANGE_WORDS: [&str; 4] = [
    " usage per Container is ",
    " usage per Pod is ",
    " limit to request ratio per ",
    " usage per PersistentVolumeClaim is ",
];

/// The gatekeeper as a key of the descriptions, and its name.
fn gatekeeper(message: &str) -> Option<(&'static str, String)> {
    let quoted = |after: &str, quote: char| {
        let rest = message.split_once(after)?.1;
        Some(rest.split(quote).next().unwrap_or_default().to_owned())
    };
    if let Some(webhook) = quoted("admission webhook \"", '"') {
        return Some(("RefusedByWebhook", webhook));
    }
    if let Some(webhook) = quoted("failed calling webhook \"", '"') {
        return Some(("WebhookDoesNotAnswer", webhook));
    }
    if let Some(policy) = quoted("ValidatingAdmissionPolicy '", '\'') {
        return Some(("RefusedByPolicy", policy));
    }
    if let Some(level) = quoted("violates PodSecurity \"", '"') {
        return Some(("RefusedByPodSecurity", level));
    }
    if message.contains("exceeded quota: ") {
        let quota = quoted("exceeded quota: ", ',').unwrap_or_default();
        return Some(("QuotaExceeded", quota));
    }
    if message.contains("failed quota: ") {
        let quota = quoted("failed quota: ", ':').unwrap_or_default();
        let key = if message.contains("must specify ") { "QuotaDemands" } else { "QuotaRefused" };
        return Some((key, quota));
    }
    if message.contains("custom resource definition is terminating") {
        return Some(("DefinitionTerminating", String::new()));
    }
    if let Some(account) = quoted("serviceaccount \"", '"').filter(|_| message.contains("not found")) {
        return Some(("ServiceAccountMissing", account));
    }
    if let Some(class) = quoted("no PriorityClass with name ", ' ') {
        return Some(("PriorityClassMissing", class));
    }
    if let Some(class) = quoted("RuntimeClass \"", '"').filter(|_| message.contains("not found")) {
        return Some(("RuntimeClassMissing", class));
    }
    if LIMIT_RANGE_WORDS.iter().any(|words| message.contains(words)) {
        return Some(("LimitRangeRefused", String::new()));
    }
    if let Some(field) = unknown_fields(message).into_iter().next() {
        return Some(("UnknownField", field));
    }
    if message.contains("because it is being terminated") {
        return Some(("NamespaceTerminating", String::new()));
    }
    if message.contains("runAsNonRoot") {
        return Some(("RunsAsRoot", String::new()));
    }
    is_missing_right(message).then(|| ("RightMissing", String::new()))
}

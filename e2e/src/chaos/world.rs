//! A namespace in a form that can be compared with that of another run: without uids, times, versions and anything derived from them.

use std::{collections::BTreeMap, fmt};

use catena_api::keys;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{census::Seen, revision_order::RevisionOrder};

/// Fields of the metadata that differ in every run.
const OF_ONE_RUN: [&str; 5] = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"];
/// Fields of a pod that its controller does not determine.
const OF_A_NODE: [&str; 3] = ["nodeName", "serviceAccountName", "serviceAccount"];
/// The slot of a pod depends on the order in which nodes end other pods.
const SLOT: &str = keys::SLOT;
/// Letters of a uid.
const UID: usize = 36;
/// Letters and digits of a hash, at the least.
const HASH: usize = 8;
/// The characters of a generated end of a name.
const OF_A_SUFFIX: &str = "bcdfghjklmnpqrstvwxz2456789";

/// The objects of a namespace, each as a text with its number of occurrences.
#[derive(Clone, PartialEq, Eq)]
pub struct World(BTreeMap<String, usize>);

impl World {
    /// The comparable part of the present state.
    pub fn of(seen: &Seen, namespace: &str) -> Self {
        let mut objects = BTreeMap::new();
        let order = RevisionOrder::of(seen.now.values());
        for ((kind, _), object) in &seen.now {
            let mut object = if *kind == "Secret" { contents(object) } else { object.clone() };
            order.put_into(&mut object);
            let text = serde_json::to_string(&masked(&of_pod(kind, object), namespace)).unwrap_or_default();
            *objects.entry(format!("{kind} {text}")).or_default() += 1;
        }
        Self(objects)
    }

    /// The objects that only this one has.
    pub fn beyond(&self, other: &Self) -> Vec<String> {
        let more = |(text, count): (&String, &usize)| {
            let count = count.saturating_sub(other.0.get(text).copied().unwrap_or_default());
            (count > 0).then(|| format!("{count} × {text}"))
        };
        self.0.iter().filter_map(more).collect()
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// A Secret with the names of its entries: a manifest contains times.
fn contents(secret: &Value) -> Value {
    let mut secret = secret.clone();
    for (_, value) in secret["data"].as_object_mut().into_iter().flatten() {
        *value = "…".into();
    }
    secret
}

/// A pod without the report of its node.
fn of_pod(kind: &str, mut object: Value) -> Value {
    if kind != "Pod" {
        return object;
    }
    let is_ready = object["status"]["conditions"]
        .as_array()
        .is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"));
    object["status"] = serde_json::json!({"phase": object["status"]["phase"], "ready": is_ready});
    if let Some(spec) = object["spec"].as_object_mut() {
        spec.retain(|field, _| !OF_A_NODE.contains(&field.as_str()));
    }
    object
}

fn masked(value: &Value, namespace: &str) -> Value {
    match value {
        Value::Object(fields) => {
            let fields =
                fields.iter().filter(|(field, _)| !OF_ONE_RUN.contains(&field.as_str()) && *field != SLOT);
            let masked =
                |(field, value): (&String, &Value)| (mask(field, namespace), masked(value, namespace));
            Value::Object(fields.map(masked).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| masked(item, namespace)).collect(),
        Value::String(text) => mask(text, namespace).into(),
        other => other.clone(),
    }
}

/// A text without times, hashes, uids and the namespace.
fn mask(text: &str, namespace: &str) -> String {
    if text.parse::<Timestamp>().is_ok() {
        return "<time>".into();
    }
    // Times in a text that is JSON itself.
    if let Ok(value @ Value::Array(_)) = serde_json::from_str(text) {
        return masked(&value, namespace).to_string();
    }
    let text = text.replace(namespace, "<namespace>");
    let is_of_a_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    let mut masked = String::new();
    for part in text.split_inclusive(|letter| !is_of_a_word(letter)) {
        let words = part.trim_end_matches(|letter| !is_of_a_word(letter));
        if is_uid(words) {
            masked.push('#');
        } else {
            let words = words.split('-').map(|word| if is_hash(word) { "#" } else { word });
            masked.push_str(&words.collect::<Vec<_>>().join("-"));
        }
        masked.push_str(&part[words.len()..]);
    }
    masked
}

fn is_uid(text: &str) -> bool {
    let is_part = |letter: char| letter.is_ascii_hexdigit() || letter == '-';
    text.len() == UID && text.chars().all(is_part) && text.matches('-').count() == 4
}

fn is_hash(word: &str) -> bool {
    let is_hex = || word.len() > HASH && word.chars().all(|letter| letter.is_ascii_hexdigit());
    let is_suffix = || word.len() == HASH && word.chars().all(|letter| OF_A_SUFFIX.contains(letter));
    is_hex() || is_suffix()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_from_uids_and_times_is_masked_and_nothing_else() {
        for (text, expected) in [
            ("2026-11-23T20:15:00Z", "<time>"),
            (r#"[{"created":"2026-11-23T20:15:00Z"}]"#, r#"[{"created":"<time>"}]"#),
            ("web-5d8f7a91c2", "web-#"),
            ("web-dkpjknkh", "web-#"),
            ("catena.dev/v1alpha1", "catena.dev/v1alpha1"),
            ("uid=0b6f1d2c-5083-4538-92bc-0242ac120002", "uid=#"),
            ("catena.dev/template-hash", "catena.dev/template-hash"),
            ("registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"),
            ("in e2e-chaos-x7", "in <namespace>"),
            ("3 of 3 ready", "3 of 3 ready"),
        ] {
            assert_eq!(mask(text, "e2e-chaos-x7"), expected);
        }
    }
}

use std::borrow::Cow;

use kube::{api::ObjectMeta, core::Status};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::watch::lenient::Lenient;

/// The content of a line of a watch.
pub(super) enum Change<K> {
    /// An object is new or changed.
    Applied(Lenient<K>),
    /// An object is gone.
    Deleted(Lenient<K>),
    /// The watch is as far as this version.
    Reached(String),
}

/// A line of a watch. kube's `WatchEvent` decodes the object with the line, and fails with it.
#[derive(Deserialize)]
struct Line<'t> {
    r#type: Cow<'t, str>,
    #[serde(borrow)]
    object: &'t RawValue,
}

#[derive(Deserialize)]
struct Bookmark {
    metadata: ObjectMeta,
}

impl<K: DeserializeOwned> Change<K> {
    pub fn read(text: &str) -> kube::Result<Self> {
        Self::read_at_once(text).map_or_else(|| Self::read_in_steps(text), Ok)
    }

    /// The change of a line as the API server writes it. Nearly all are, and most of the work of a busy watch is to decode
    /// them.
    fn read_at_once(text: &str) -> Option<Self> {
        let (r#type, rest) = text.strip_prefix(r#"{"type":""#)?.split_once(r#"","object":"#)?;
        let change = match r#type {
            "ADDED" | "MODIFIED" => Self::Applied,
            "DELETED" => Self::Deleted,
            _ => return None,
        };
        // Whatever else may follow in the line is no part of an object.
        let object = Lenient::read(rest.trim_end().strip_suffix('}')?);
        object.0.is_ok().then(|| change(object))
    }

    fn read_in_steps(text: &str) -> kube::Result<Self> {
        let Line { r#type, object } = serde_json::from_str(text).map_err(kube::Error::SerdeError)?;
        Ok(match &*r#type {
            "ADDED" | "MODIFIED" => Self::Applied(Lenient::read(object.get())),
            "DELETED" => Self::Deleted(Lenient::read(object.get())),
            "BOOKMARK" => {
                let Bookmark { metadata } =
                    serde_json::from_str(object.get()).map_err(kube::Error::SerdeError)?;
                Self::Reached(metadata.resource_version.unwrap_or_default())
            }
            _ => {
                let status: Status = serde_json::from_str(object.get()).map_err(kube::Error::SerdeError)?;
                return Err(kube::Error::Api(Box::new(status)));
            }
        })
    }
}

/// Whether a line that a test makes up is understood.
#[cfg(feature = "testing")]
pub(crate) fn read_change<K: DeserializeOwned>(line: &str) -> bool {
    Change::<K>::read(line).is_ok()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    /// What is read of a line: its type, and the name of the object if it can be read.
    fn read(line: &str) -> (&'static str, Option<String>) {
        let named = |object: Lenient<ConfigMap>| object.0.ok().and_then(|map| map.metadata.name);
        match Change::read(line) {
            Ok(Change::Applied(object)) => ("applied", named(object)),
            Ok(Change::Deleted(object)) => ("deleted", named(object)),
            Ok(Change::Reached(version)) => ("reached", Some(version)),
            Err(_) => ("interrupted", None),
        }
    }

    #[test]
    fn a_line_means_the_same_in_whatever_form_it_comes() {
        let object = r#"{"metadata":{"name":"a","annotations":{"x":"\",\"object\":}"}}}"#;
        let applied = ("applied", Some("a".to_owned()));
        for line in [
            format!(r#"{{"type":"MODIFIED","object":{object}}}"#),
            format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n"),
            format!(r#"{{ "type": "ADDED", "object": {object} }}"#),
            format!(r#"{{"object":{object},"type":"ADDED"}}"#),
            format!(r#"{{"type":"ADDED","object":{object},"other":{{}}}}"#),
        ] {
            assert_eq!(read(&line), applied, "{line}");
        }
        assert_eq!(read(&format!(r#"{{"type":"DELETED","object":{object}}}"#)).0, "deleted");
        let reached = r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}"#;
        assert_eq!(read(reached), ("reached", Some("7".to_owned())));
    }

    #[test]
    fn a_line_whose_object_cannot_be_read_is_told_from_one_that_is_none() {
        assert_eq!(read(r#"{"type":"ADDED","object":{"metadata":{"name":7}}}"#), ("applied", None));
        for line in ["", "{}", r#"{"type":"ADDED","object":{"#, r#"{"type":"ERROR","object":{"code":410}}"#] {
            assert_eq!(read(line).0, "interrupted", "{line}");
        }
    }
}

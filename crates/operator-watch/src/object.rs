//! The identity of an object, for writes and for messages.

use std::fmt::{self, Display};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::Serialize;

/// The identity of an object within its kind. As JSON, it is the `metadata` of a patch that applies to this object
/// alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct ObjectId<'o> {
    /// Its namespace; empty for a cluster-scoped object.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub namespace: &'o str,
    /// Its name.
    pub name: &'o str,
    /// Its uid, which a later object with the same name does not share.
    pub uid: &'o str,
}

impl<'o> ObjectId<'o> {
    /// The identity of an object. Missing parts are empty, which happens only for objects that no server has stored.
    pub fn of<K: Resource>(object: &'o K) -> Self {
        object.meta().into()
    }

    /// Whether a text is safe in the path of a URL as the name of an object or a namespace. The client does not escape
    /// names in URLs: a GET of an empty name is a list, and a GET of `?watch=true` never ends.
    #[must_use]
    pub fn is_name(text: &str) -> bool {
        let may_stand = |character: char| character.is_ascii_alphanumeric() || "-._:@~+=".contains(character);
        !matches!(text, "" | "." | "..") && text.len() <= 253 && text.chars().all(may_stand)
    }
}

impl<'o> From<&'o ObjectMeta> for ObjectId<'o> {
    fn from(ObjectMeta { namespace, name, uid, .. }: &'o ObjectMeta) -> Self {
        let [namespace, name, uid] = [namespace, name, uid].map(|part| part.as_deref().unwrap_or_default());
        Self { namespace, name, uid }
    }
}

impl Display for ObjectId<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            "" => formatter.write_str(self.name),
            namespace => write!(formatter, "{namespace}/{}", self.name),
        }
    }
}

/// The kind and name of an object, for messages: `Pod "web-x"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectName {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

impl<K: Into<String>, N: Into<String>> From<(K, N)> for ObjectName {
    fn from((kind, name): (K, N)) -> Self {
        Self { kind: kind.into(), name: name.into() }
    }
}

impl Display for ObjectName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:?}", self.kind, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_an_object_in_a_namespace_is_told_and_patched_with_one() {
        let metadata = |namespace: Option<&str>| ObjectMeta {
            namespace: namespace.map(str::to_owned),
            name: Some("web".into()),
            uid: Some("u1".into()),
            ..ObjectMeta::default()
        };
        let (namespaced, cluster_scoped) = (metadata(Some("shop")), metadata(None));
        let ids = [&namespaced, &cluster_scoped].map(ObjectId::from);
        assert_eq!(ids.map(|id| id.to_string()), ["shop/web", "web"]);
        assert_eq!(json!(ids[0]), json!({"namespace": "shop", "name": "web", "uid": "u1"}));
        assert_eq!(json!(ids[1]), json!({"name": "web", "uid": "u1"}));
    }

    #[test]
    fn what_would_be_another_request_is_no_name() {
        for name in ["web", "web-1.shop", "system:node", "a@b", "A_b"] {
            assert!(ObjectId::is_name(name), "{name}");
        }
        let too_long = "a".repeat(254);
        for text in [
            "",
            ".",
            "..",
            "?watch=true",
            "a?b",
            "a#b",
            "a/b",
            "../x",
            "%2e%2e",
            "a b",
            "a\nb",
            "ü",
            &too_long,
        ] {
            assert!(!ObjectId::is_name(text), "{text:?}");
        }
    }
}

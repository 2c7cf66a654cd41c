//! e2e/rights.yaml: rights that no request of the suite uses, or not always.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use local_cluster::files;
use serde::Deserialize;

use super::grants::Grant;

/// The exceptions of both kinds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    /// Rights that are granted, but that no request uses.
    pub unused: Vec<Exception>,
    /// Rights that are needed only in races, which no test can bring about.
    pub sometimes: Vec<Exception>,
}

/// One exception.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The controller; `*` for any.
    pub controller: String,
    /// A verb and a resource with its group and subresource; `*` for any name of a kind: `update */finalizers`.
    pub right: String,
    /// The reason.
    pub reason: String,
}

impl Exceptions {
    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read(path)?;
        let exceptions: Self =
            serde_saphyr::from_str(&text).with_context(|| format!("{} is malformed", path.display()))?;
        for exception in exceptions.unused.iter().chain(&exceptions.sometimes) {
            ensure!(!exception.reason.trim().is_empty(), "{}: {exception:?} has no reason", path.display());
        }
        Ok(exceptions)
    }
}

impl Exception {
    /// Whether it is about this right.
    pub fn is_about(&self, grant: &Grant) -> bool {
        let Some((for_verb, for_resource)) = self.right.split_once(' ') else { return false };
        let subresource = |resource: &str| resource.split_once('/').map(|(_, sub)| sub.to_owned());
        let is_any_kind = for_resource.split('/').next() == Some("*");
        (self.controller == "*" || self.controller == grant.account)
            && for_verb == grant.verb
            && (for_resource == grant.resource
                || is_any_kind && subresource(for_resource) == subresource(&grant.resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_kind_with_the_same_subresource() {
        let any = |right: &str| Exception { controller: "*".into(), right: right.into(), reason: "x".into() };
        for (right, verb, resource, is_about) in [
            ("update */finalizers", "update", "shops.example.com/finalizers", true),
            ("update */finalizers", "update", "shops.example.com", false),
            ("update *", "update", "shops.example.com/finalizers", false),
            ("update *", "patch", "shops.example.com", false),
            ("get pods", "get", "pods", true),
        ] {
            let [account, verb, resource] = ["command-binder", verb, resource].map(str::to_owned);
            let grant = Grant { account, verb, resource, namespace: None, name: None, by_values: None };
            assert_eq!(any(right).is_about(&grant), is_about, "{right}: {grant}");
        }
    }

    #[test]
    fn the_committed_file_can_be_read() {
        let file = crate::workspace::root().join("e2e/rights.yaml");
        assert!(!Exceptions::read(&file).unwrap().unused.is_empty());
    }
}

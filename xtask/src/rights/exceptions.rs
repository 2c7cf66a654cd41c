//! e2e/rights.yaml: rights that no request of the suite uses, or not always.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use local_cluster::files;
use serde::Deserialize;

use super::request::Account;

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
    pub fn is_about(&self, account: &Account, verb: &str, resource: &str) -> bool {
        let Some((for_verb, for_resource)) = self.right.split_once(' ') else { return false };
        let subresource = |resource: &str| resource.split_once('/').map(|(_, sub)| sub.to_owned());
        let is_any_kind = for_resource.split('/').next() == Some("*");
        (self.controller == "*" || self.controller == account.0)
            && for_verb == verb
            && (for_resource == resource || is_any_kind && subresource(for_resource) == subresource(resource))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_kind_with_the_same_subresource() {
        let any = |right: &str| Exception { controller: "*".into(), right: right.into(), reason: "x".into() };
        let account = Account("command-binder".into());
        assert!(any("update */finalizers").is_about(&account, "update", "shops.example.com/finalizers"));
        assert!(!any("update */finalizers").is_about(&account, "update", "shops.example.com"));
        assert!(!any("update *").is_about(&account, "update", "shops.example.com/finalizers"));
        assert!(!any("update *").is_about(&account, "patch", "shops.example.com"));
        assert!(any("get pods").is_about(&account, "get", "pods"));
    }

    #[test]
    fn the_committed_file_can_be_read() {
        let file = crate::workspace::root().join("e2e/rights.yaml");
        assert!(!Exceptions::read(&file).unwrap().unused.is_empty());
    }
}

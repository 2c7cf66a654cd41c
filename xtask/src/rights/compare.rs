//! Granted rights against used ones, and the exceptions.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::Path,
};

use anyhow::{Context, Result, ensure};
use local_cluster::files;
use serde::Deserialize;

use super::{
    grants::{Grant, of_charts},
    log::{Log, Request},
};

/// e2e/rights.yaml: rights that no request of the suite uses, or not always.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    /// Rights that are granted, but that no request uses.
    pub unused: Vec<Exception>,
    /// Rights that are needed only in races, which no test can bring about.
    pub sometimes: Vec<Exception>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exception {
    /// The controller; `*` for any.
    pub controller: String,
    /// A verb and a resource with its group and subresource; `*` for any name of a kind: `update */finalizers`.
    pub right: String,
    pub reason: String,
}

impl Exceptions {
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

/// A difference between granted and used rights.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// A right of the chart that no request needed.
    Unused(Grant),
    /// A right on each kind in a list of the values that no request needed for any of them.
    UnusedForAnyKind(Vec<Grant>),
    /// A listed exception whose right was used.
    UsedException(Exception, Grant),
    /// An unnecessary exception.
    NeedlessException(Exception),
}

/// Finds the differences after the whole suite. A right that is used on one cluster is needed.
pub fn compare(logs: &[Log], exceptions: &Exceptions) -> Vec<Finding> {
    let used = Used::of(logs.iter().flat_map(|log| &log.used));
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    let mut by_values: BTreeMap<(String, String, String), Vec<Grant>> = BTreeMap::new();
    let grants: BTreeSet<Grant> = logs.iter().flat_map(|log| of_charts(&log.written)).collect();
    for grant in grants {
        let find = |exceptions: &[Exception]| {
            exceptions.iter().find(|exception| exception.is_about(&grant)).cloned()
        };
        let is_used = used.any(&grant);
        if let Some(exception) = find(&exceptions.unused) {
            if is_used {
                findings.push(Finding::UsedException(exception.clone(), grant));
            }
            needed.insert(exception);
        } else if let Some(exception) = find(&exceptions.sometimes) {
            needed.insert(exception);
        } else if let Some(rule) = &grant.by_values {
            let of_one_rule = (grant.account.clone(), rule.clone(), grant.verb.clone());
            by_values.entry(of_one_rule).or_default().push(grant);
        } else if !is_used {
            findings.push(Finding::Unused(grant));
        }
    }
    let without_use = by_values.into_values().filter(|grants| !grants.iter().any(|grant| used.any(grant)));
    findings.extend(without_use.map(Finding::UnusedForAnyKind));
    let listed = exceptions.unused.iter().chain(&exceptions.sometimes);
    let needless = listed.filter(|exception| !needed.contains(*exception));
    findings.extend(needless.cloned().map(Finding::NeedlessException));
    findings
}

/// The requests by their most distinctive parts.
struct Used<'a>(BTreeMap<(&'a str, &'a str), Vec<&'a Request>>);

impl<'a> Used<'a> {
    fn of(requests: impl Iterator<Item = &'a Request>) -> Self {
        let mut by_kind: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for request in requests {
            by_kind.entry((request.verb.as_str(), request.resource.as_str())).or_default().push(request);
        }
        Self(by_kind)
    }

    fn any(&self, grant: &Grant) -> bool {
        let requests = self.0.get(&(grant.verb.as_str(), grant.resource.as_str()));
        requests.into_iter().flatten().any(|request| grant.covers(request))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unused(grant) => write!(f, "granted and never used: {grant}"),
            Self::UnusedForAnyKind(grants) => {
                f.write_str("granted for each configured kind, and never used for any: ")?;
                let grants: Vec<String> = grants.iter().map(ToString::to_string).collect();
                f.write_str(&grants.join("; "))
            }
            Self::UsedException(exception, grant) => write!(
                f,
                "used, although e2e/rights.yaml says that it is not ({}: {}): {grant}",
                exception.controller, exception.right
            ),
            Self::NeedlessException(Exception { controller, right, .. }) => {
                write!(f, "nothing needs the exception in e2e/rights.yaml: {controller}: {right}")
            }
        }
    }
}

#[cfg(test)]
mod tests;

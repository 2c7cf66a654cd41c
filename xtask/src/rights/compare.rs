//! Granted rights against used ones.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    exceptions::{Exception, Exceptions},
    grants::{Grant, Origin},
    log::Log,
    request::{Account, Request},
};

/// Time for which an upgraded or uninstalled controller may still send requests that it is no longer allowed.
const WITHDRAWAL: SignedDuration = SignedDuration::from_secs(60);
/// Time for which a controller may send requests before its new rights are in force.
const ARRIVAL: SignedDuration = SignedDuration::from_secs(10);

/// The part of the suite that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it: every needed right was used.
    Whole,
    /// Some tests: the rights that the others need are unknown.
    Selected,
}

/// A difference between granted and used rights.
#[derive(Debug, PartialEq, Eq)]
pub enum Finding {
    /// A right of the chart that no request needed.
    Unused(Grant),
    /// A right on each kind in a list of the values that no request needed for any of them.
    UnusedForAnyKind(Vec<Grant>),
    /// A request that RBAC denied, although no chart had just been changed.
    Denied(Request, Timestamp),
    /// A listed exception whose right was used.
    UsedException(Exception, Grant),
    /// An unnecessary exception.
    NeedlessException(Exception),
}

/// Finds the differences. A request is denied by the grants of its own cluster, and a right is used on any.
pub fn compare(logs: &[Log], exceptions: &Exceptions, part: Part) -> Vec<Finding> {
    let mut findings = denials(logs, exceptions, part);
    if part == Part::Whole {
        findings.extend(unused(logs, exceptions));
    }
    findings
}

fn denials(logs: &[Log], exceptions: &Exceptions, part: Part) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    let denied =
        logs.iter().flat_map(|log| log.denied.iter().map(move |(request, times)| (log, request, times)));
    for (log, request, times) in denied.filter(|(_, request, _)| !request.is_discovery()) {
        if let Some(exception) = exceptions.denied.iter().find(|listed| listed.is_about_request(request)) {
            needed.insert(exception);
            continue;
        }
        let is_explained =
            |at: &&Timestamp| log.ledger.allowed_between(request, **at - WITHDRAWAL, **at + ARRIVAL);
        if let Some(at) = times.iter().find(|at| !is_explained(at)) {
            findings.push(Finding::Denied(request.clone(), *at));
        }
    }
    if part == Part::Whole {
        let needless = exceptions.denied.iter().filter(|exception| !needed.contains(exception));
        findings.extend(needless.cloned().map(Finding::NeedlessException));
    }
    findings
}

fn unused(logs: &[Log], exceptions: &Exceptions) -> Vec<Finding> {
    let used = Used::of(logs.iter().flat_map(|log| &log.used));
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    let mut by_values: BTreeMap<(Account, String, String), Vec<Grant>> = BTreeMap::new();
    let grants: BTreeSet<Grant> = logs.iter().flat_map(|log| log.ledger.of_charts()).collect();
    for grant in grants {
        let find = |exceptions: &[Exception]| {
            let is_about =
                |exception: &&Exception| exception.is_about(&grant.account, &grant.verb, &grant.resource);
            exceptions.iter().find(is_about).cloned()
        };
        let is_used = used.any(&grant);
        if let Some(exception) = find(&exceptions.unused) {
            if is_used {
                findings.push(Finding::UsedException(exception.clone(), grant));
            }
            needed.insert(exception);
        } else if let Some(exception) = find(&exceptions.sometimes) {
            needed.insert(exception);
        } else if let Origin::Values(rule) = &grant.origin {
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
            Self::Denied(Request { account, verb, resource, namespace, name }, at) => {
                write!(f, "denied at {at}: {account}: {verb} {resource} {namespace}/{name}")
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

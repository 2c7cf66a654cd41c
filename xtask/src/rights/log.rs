//! Requests of controllers and their rights, from an audit log.

use std::{
    collections::BTreeSet,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use anyhow::{Context, Result};

use super::grants::Written;
use crate::audit::Line;

/// The group of roles and their bindings.
const RBAC: &str = "rbac.authorization.k8s.io";
/// The API server's prefix for the `ServiceAccounts` of controllers.
const ACCOUNTS: &str = "system:serviceaccount:catena-system:";

/// A request, in the terms of an authorizer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Request {
    /// The controller, by the name of its ServiceAccount in the namespace of the charts.
    pub account: String,
    pub verb: String,
    /// With group and subresource, such as `basicdeployments.catena.dev/status`; a path if it is for no resource.
    pub resource: String,
    /// Empty for a cluster-wide resource.
    pub namespace: String,
    /// Empty for a collection.
    pub name: String,
}

/// A resource in this notation: `pods`, `basicdeployments.catena.dev/status`.
pub fn resource(group: &str, name: &str, subresource: &str) -> String {
    let part =
        |separator, part: &str| if part.is_empty() { String::new() } else { format!("{separator}{part}") };
    format!("{name}{}{}", part('.', group), part('/', subresource))
}

/// Rights, and requests that needed them.
#[derive(Default)]
pub struct Log {
    /// Every version of every role and binding, in their order.
    pub written: Vec<Written>,
    /// The requests that were allowed, once each.
    pub used: BTreeSet<Request>,
}

impl Log {
    /// Reads the log of a cluster from its start.
    pub fn read(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("could not open {}", path.display()))?;
        let mut log = Self::default();
        for line in BufReader::new(file).lines() {
            let line = line.with_context(|| format!("could not read {}", path.display()))?;
            log.take(&line).with_context(|| format!("a line of {} is of another shape", path.display()))?;
        }
        Ok(log)
    }

    /// Takes one line; most are about others, and are not even parsed.
    fn take(&mut self, line: &str) -> serde_json::Result<()> {
        if !line.contains(ACCOUNTS) && !line.contains(RBAC) {
            return Ok(());
        }
        let mut line: Line = serde_json::from_str(line)?;
        if line.uri.contains("dryRun=All") {
            return Ok(());
        }
        // The role or binding that this request wrote.
        if let Some(object) = &line.object_ref
            && object.api_group == RBAC
            && ["create", "update", "patch"].contains(&line.verb.as_str())
            && line.response_status.code < 300
            && let Some(written) = line.response_object.take()
        {
            let (resource, object) = (object.resource.clone(), serde_json::from_value(written)?);
            self.written.push(Written { resource, object });
        }
        let Some(account) = line.user.username.strip_prefix(ACCOUNTS) else { return Ok(()) };
        if line.annotations.get("authorization.k8s.io/decision").is_some_and(|decision| decision == "allow") {
            let request = request(&line, account);
            // An apply that creates its object needs both rights.
            if line.verb == "patch" && line.response_status.code == 201 {
                self.used.insert(Request { verb: "create".into(), ..request.clone() });
            }
            self.used.insert(request);
        }
        Ok(())
    }
}

fn request(line: &Line, account: &str) -> Request {
    let (account, verb) = (account.to_owned(), line.verb.clone());
    let Some(object) = &line.object_ref else {
        let path = line.uri.split('?').next().unwrap_or_default().to_owned();
        return Request { account, verb, resource: path, namespace: String::new(), name: String::new() };
    };
    Request {
        account,
        verb,
        resource: resource(&object.api_group, &object.resource, &object.subresource),
        namespace: object.namespace.clone(),
        name: object.name.clone(),
    }
}

/// A summary of the compared requests.
pub fn summary(logs: &[Log]) -> String {
    let used = || logs.iter().flat_map(|log| &log.used);
    let accounts: BTreeSet<&String> = used().map(|request| &request.account).collect();
    let kinds: BTreeSet<_> = used().map(|used| (&used.account, &used.verb, &used.resource)).collect();
    format!("{} kinds of requests of {} controllers", kinds.len(), accounts.len())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(verb: &str, code: u16, decision: &str, uri: &str) -> Value {
        json!({
            "requestURI": uri,
            "verb": verb,
            "user": {"username": "system:serviceaccount:catena-system:backup-controller"},
            "objectRef": {"apiGroup": "batch", "resource": "jobs", "subresource": "status", "namespace": "shop", "name": "web"},
            "responseStatus": {"code": code},
            "annotations": {"authorization.k8s.io/decision": decision},
        })
    }

    fn log(lines: &[Value]) -> Log {
        let mut log = Log::default();
        for line in lines {
            log.take(&line.to_string()).unwrap();
        }
        log
    }

    fn verbs(log: &Log) -> Vec<&str> {
        log.used.iter().map(|request| request.verb.as_str()).collect()
    }

    #[test]
    fn an_apply_that_makes_its_object_uses_both_rights() {
        assert_eq!(verbs(&log(&[line("patch", 200, "allow", "/")])), ["patch"]);
        let made = log(&[line("patch", 201, "allow", "/")]);
        assert_eq!(verbs(&made), ["create", "patch"]);
        assert_eq!(made.used.first().unwrap().resource, "jobs.batch/status");
    }

    #[test]
    fn a_request_uses_its_right_unless_rbac_denies_it() {
        assert_eq!(verbs(&log(&[line("patch", 403, "allow", "/")])), ["patch"], "admission refused it");
        assert!(log(&[line("patch", 403, "forbid", "/")]).used.is_empty());
    }

    #[test]
    fn a_dry_run_and_a_request_of_somebody_else_use_nothing() {
        let mut of_others = line("patch", 200, "allow", "/");
        of_others["user"]["username"] = json!("system:admin");
        of_others["objectRef"]["apiGroup"] = json!(RBAC);
        assert!(log(&[of_others, line("patch", 200, "allow", "/x?dryRun=All")]).used.is_empty());
    }

    #[test]
    fn roles_are_taken_as_the_api_server_stored_them() {
        let mut role = line("patch", 200, "allow", "/");
        role["objectRef"] = json!({"apiGroup": RBAC, "resource": "clusterroles", "name": "x"});
        role["responseObject"] = json!({"metadata": {"name": "x"}, "rules": [{"verbs": ["get"]}]});
        assert_eq!(log(&[role.clone()]).written.len(), 1);
        role["responseStatus"]["code"] = json!(409);
        assert!(log(&[role]).written.is_empty());
    }
}

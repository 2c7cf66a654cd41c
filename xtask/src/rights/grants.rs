//! The rights that charts grant.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use k8s_openapi::{
    api::rbac::v1::{PolicyRule, RoleRef, Subject},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Deserialize;
use serde_json::Value;

use super::log::{Request, resource};

/// The label that `e2e/tests/upgrades_charts.rs` gives to what an earlier chart makes.
const OF_AN_EARLIER_CHART: &str = "e2e.catena.dev/earlier-chart";

/// A role, or the binding of one.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RbacObject {
    pub metadata: ObjectMeta,
    pub rules: Option<Vec<PolicyRule>>,
    /// Its rules are those of other roles.
    pub aggregation_rule: Option<Value>,
    pub subjects: Option<Vec<Subject>>,
    pub role_ref: Option<RoleRef>,
}

/// One version of a role or a binding.
pub struct Written {
    /// `roles`, `clusterroles` or one of the bindings.
    pub resource: String,
    pub object: RbacObject,
}

/// One right of one controller.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    pub account: String,
    pub verb: String,
    /// In the notation of a [`Request`].
    pub resource: String,
    /// The only namespace of the right, if there is one.
    pub namespace: Option<String>,
    /// The only object of the right, if there is one.
    pub name: Option<String>,
    /// If it comes from values of a test: the rule of the chart, which serves each kind in a list of the values. Rules with the
    /// same verbs count as the same rule.
    pub by_values: Option<String>,
}

/// `roles` or `clusterroles`, the namespace, the name.
type Key = (String, String, String);

impl Grant {
    /// Whether this right allows the request.
    pub fn covers(&self, request: &Request) -> bool {
        let only = |limit: &Option<String>, value: &String| limit.as_ref().is_none_or(|limit| limit == value);
        self.account == request.account
            && self.verb == request.verb
            && self.resource == request.resource
            && only(&self.namespace, &request.namespace)
            && only(&self.name, &request.name)
    }
}

/// Every right that a chart ever granted, from all versions of all roles and bindings in their order.
pub fn of_charts(written: &[Written]) -> BTreeSet<Grant> {
    let of_charts = || written.iter().filter(|written| written.object.is_of_a_chart());
    let bindings: Vec<_> = of_charts().flat_map(|written| written.object.bound()).collect();
    let mut grants = BTreeMap::new();
    let mut known = BTreeSet::new();
    for Written { resource, object } in
        of_charts().filter(|written| written.object.aggregation_rule.is_none())
    {
        let key = object.key(resource);
        // The first version is that of the installation, before any test.
        let is_first = known.insert(key.clone());
        for (account, _, namespace) in bindings.iter().filter(|(_, role, _)| *role == key) {
            for rule in object.rules.iter().flatten() {
                for grant in rights(account, rule, namespace.as_ref()) {
                    grants.entry(grant).or_insert_with(|| (!is_first).then(|| shape(rule)));
                }
            }
        }
    }
    grants.into_iter().map(|(grant, by_values)| Grant { by_values, ..grant }).collect()
}

impl RbacObject {
    /// Whether a chart of the checkout made it, and not an earlier one, whose rights nobody may need any more.
    fn is_of_a_chart(&self) -> bool {
        let labels = self.metadata.labels.as_ref();
        labels.is_some_and(|labels| {
            let is_of_helm =
                labels.get("app.kubernetes.io/managed-by").is_some_and(|manager| manager == "Helm");
            is_of_helm && !labels.contains_key(OF_AN_EARLIER_CHART)
        })
    }

    fn key(&self, resource: &str) -> Key {
        let part = |value: &Option<String>| value.clone().unwrap_or_default();
        (resource.to_owned(), part(&self.metadata.namespace), part(&self.metadata.name))
    }

    /// For a binding: its account, its role and its namespace.
    fn bound(&self) -> Vec<(String, Key, Option<String>)> {
        let Some(role) = &self.role_ref else { return Vec::new() };
        let namespace = self.metadata.namespace.clone();
        let key = match role.kind.as_str() {
            "Role" => ("roles".to_owned(), namespace.clone().unwrap_or_default(), role.name.clone()),
            _ => ("clusterroles".to_owned(), String::new(), role.name.clone()),
        };
        let accounts = self.subjects.iter().flatten().filter(|subject| subject.kind == "ServiceAccount");
        accounts.map(|subject| (subject.name.clone(), key.clone(), namespace.clone())).collect()
    }
}

fn rights(account: &str, rule: &PolicyRule, namespace: Option<&String>) -> Vec<Grant> {
    let names = match rule.resource_names.as_deref().unwrap_or_default() {
        [] => vec![None],
        names => names.iter().cloned().map(Some).collect(),
    };
    let mut grants = Vec::new();
    for group in rule.api_groups.iter().flatten() {
        for written in rule.resources.iter().flatten() {
            let (kind, subresource) = written.split_once('/').unwrap_or((written, ""));
            let resource = resource(group, kind, subresource);
            for verb in &rule.verbs {
                grants.extend(names.iter().map(|name| Grant {
                    account: account.to_owned(),
                    verb: verb.clone(),
                    resource: resource.clone(),
                    namespace: namespace.cloned(),
                    name: name.clone(),
                    by_values: None,
                }));
            }
        }
    }
    grants
}

/// The common part of rules for different kinds that come from the same lines of a chart.
fn shape(rule: &PolicyRule) -> String {
    let subresources: BTreeSet<&str> =
        rule.resources.iter().flatten().filter_map(|resource| Some(resource.split_once('/')?.1)).collect();
    let subresources: Vec<&str> = subresources.into_iter().collect();
    format!("{} {}", rule.verbs.join(","), subresources.join(","))
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.account, self.verb, self.resource)?;
        for (word, limit) in [("named", &self.name), ("in", &self.namespace)] {
            if let Some(limit) = limit {
                write!(f, " {word} {limit}")?;
            }
        }
        Ok(())
    }
}

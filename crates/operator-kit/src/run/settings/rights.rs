//! The rights that settings need, which the chart grants from the same values.

use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, stream};
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    rbac::v1::PolicyRule,
};
use kube::{Api, Client, api::PostParams};
use serde::Deserialize;
use tokio::time::timeout;

/// Number of concurrent reviews.
const MAX_CONCURRENT_REVIEWS: usize = 8;
/// Time within which the server has to answer a review.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(10);
/// Number of missing rights that a message lists.
const LISTED: usize = 3;

/// The rules of one namespace, or of all.
#[derive(Deserialize)]
struct Rules {
    #[serde(default)]
    namespace: String,
    rules: Vec<PolicyRule>,
}

/// Asks the server which of these rights the controller lacks; `None` if it has all. `rights` is a list of
/// `{namespace, rules}`.
///
/// # Errors
/// When the list cannot be parsed, or the server does not answer.
pub(super) async fn missing(client: &Client, rights: &str) -> anyhow::Result<Option<String>> {
    let reviews = stream::iter(wanted(rights)?).map(|right| review(client, right));
    let mut reviews = reviews.buffered(MAX_CONCURRENT_REVIEWS);
    let mut missing = Vec::new();
    while let Some(reviewed) = reviews.next().await {
        missing.extend(reviewed?);
    }
    Ok((!missing.is_empty()).then(|| listed(&missing)))
}

/// The right, if the controller lacks it.
async fn review(client: &Client, right: ResourceAttributes) -> anyhow::Result<Option<ResourceAttributes>> {
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(right.clone()), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    let (reviews, params) = (Api::all(client.clone()), PostParams::default());
    let reviewed = timeout(REVIEW_TIMEOUT, reviews.create(&params, &review)).await;
    let reviewed = reviewed
        .with_context(|| format!("the API server did not answer a review within {REVIEW_TIMEOUT:?}"))?;
    let reviewed = match reviewed {
        // A cluster that lets nobody ask must not keep settings out for ever.
        Err(kube::Error::Api(refusal)) if refusal.code == 403 => return Ok(None),
        reviewed => reviewed?,
    };
    Ok((!reviewed.status.is_some_and(|status| status.allowed)).then_some(right))
}

/// The rights one by one.
fn wanted(rights: &str) -> anyhow::Result<Vec<ResourceAttributes>> {
    let lists: Vec<Rules> = serde_saphyr::from_str(rights)?;
    let mut wanted = Vec::new();
    for Rules { namespace, rules } in lists {
        for rule in rules {
            let names = rule.resource_names.filter(|names| !names.is_empty());
            let names = names.map_or(vec![None], |names| names.into_iter().map(Some).collect());
            for group in rule.api_groups.iter().flatten() {
                for resource in rule.resources.iter().flatten() {
                    let (resource, subresource) = resource.split_once('/').unwrap_or((resource.as_str(), ""));
                    for (verb, name) in
                        rule.verbs.iter().flat_map(|verb| names.iter().map(move |name| (verb, name)))
                    {
                        let right = ResourceAttributes {
                            group: Some(group.clone()),
                            resource: Some(resource.to_owned()),
                            subresource: Some(subresource.to_owned()).filter(|part| !part.is_empty()),
                            verb: Some(verb.clone()),
                            name: name.clone(),
                            namespace: Some(namespace.clone()).filter(|namespace| !namespace.is_empty()),
                            ..ResourceAttributes::default()
                        };
                        if !wanted.contains(&right) {
                            wanted.push(right);
                        }
                    }
                }
            }
        }
    }
    Ok(wanted)
}

/// The first of some rights, and the number of the others.
fn listed(rights: &[ResourceAttributes]) -> String {
    let listed = rights.iter().take(LISTED).map(described).collect::<Vec<_>>().join(", ");
    match rights.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed} and {more} more"),
    }
}

/// `create secrets in the namespace backups`.
fn described(right: &ResourceAttributes) -> String {
    let mut text = right.verb.clone().unwrap_or_default() + " ";
    text += right.resource.as_deref().unwrap_or_default();
    for (separator, part) in [(".", &right.group), ("/", &right.subresource), (" ", &right.name)] {
        if let Some(part) = part.as_deref().filter(|part| !part.is_empty()) {
            text = text + separator + part;
        }
    }
    if let Some(namespace) = &right.namespace {
        text = text + " in the namespace " + namespace;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answer, answering};

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_answer_leaves_it_unknown_which_rights_are_missing() {
        let (client, _log) = answering(|_| Answer::Silence);
        let rights = "[{rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]}]";
        let asked = timeout(2 * REVIEW_TIMEOUT, missing(&client, rights)).await;
        let Err(error) = asked.expect("it does not wait for ever") else { panic!() };
        assert!(error.to_string().contains("did not answer"), "{error}");
    }

    #[test]
    fn rules_are_taken_apart_and_described() {
        let rights = wanted(
            "[{rules: [{apiGroups: [apps], resources: [deployments/scale], verbs: [get, patch]},
                       {apiGroups: [''], resources: [pods], resourceNames: [a, b], verbs: [get]}]},
              {namespace: backups, rules: [{apiGroups: [''], resources: [secrets], verbs: [create]},
                                           {apiGroups: [''], resources: [secrets], verbs: [create]}]}]",
        )
        .unwrap();
        let described: Vec<String> = rights.iter().map(described).collect();
        assert_eq!(
            described,
            [
                "get deployments.apps/scale",
                "patch deployments.apps/scale",
                "get pods a",
                "get pods b",
                "create secrets in the namespace backups"
            ]
        );
        assert_eq!(
            listed(&rights),
            "get deployments.apps/scale, patch deployments.apps/scale, get pods a and 2 more"
        );
    }
}

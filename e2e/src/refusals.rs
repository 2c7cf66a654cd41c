//! Policies of the cluster that refuse requests of a user in one namespace.

use anyhow::Result;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::{Cluster, Namespace};

/// Allows a user the requests of a rule only if an expression is true. The API server enforces it a little later.
pub async fn forbid_unless(
    cluster: &Cluster,
    namespace: &Namespace,
    user: &str,
    rule: Value,
    expression: &str,
    message: &str,
) -> Result<()> {
    let name = name_of_policy(namespace, user);
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": namespace.owns(&name),
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "user", "expression": format!("request.userInfo.username == '{user}'")}],
            "validations": [{"expression": expression, "message": message}],
        },
    }))?;
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace.name}});
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": namespace.owns(&name),
        "spec": {
            "policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector},
        },
    }))?;
    cluster.all().create(&PostParams::default(), &policy).await?;
    cluster.all().create(&PostParams::default(), &binding).await?;
    Ok(())
}

/// Reverts [`forbid_unless`].
pub async fn permit(cluster: &Cluster, namespace: &Namespace, user: &str) -> Result<()> {
    let bindings = cluster.all::<ValidatingAdmissionPolicyBinding>();
    bindings.delete(&name_of_policy(namespace, user), &DeleteParams::default()).await?;
    Ok(())
}

fn name_of_policy(namespace: &Namespace, user: &str) -> String {
    let who = user.rsplit(':').next().unwrap_or(user);
    format!("e2e-forbids-{who}-{}", namespace.name)
}

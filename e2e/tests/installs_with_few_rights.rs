//! Whoever has only the rights that docs/restricted-clusters.md lists for every chart installs each of them with the values of that
//! page.

use anyhow::Result;
use e2e::{
    BINDER, CONTROLLERS, Cluster, Controller, DEPLOYMENTS, Namespace, REPLICA_SETS, install_as,
    kinds_without_admission, kubectl_apply,
};
use serde_json::{Value, json};

const INSTALLER: &str = "installer";

/// The rights on one namespace.
async fn allow(namespace: &Namespace) -> Result<()> {
    let verbs = ["create", "get", "list", "watch", "update", "patch", "delete"];
    let resources = ["secrets", "configmaps", "serviceaccounts", "services", "pods"];
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": INSTALLER},
        "rules": [
            {"apiGroups": [""], "resources": resources, "verbs": verbs},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": verbs},
            {"apiGroups": ["batch"], "resources": ["jobs"], "verbs": verbs},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": INSTALLER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": INSTALLER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": INSTALLER}],
    });
    for object in [role, binding] {
        kubectl_apply(&namespace.name, &object.to_string()).await?;
    }
    Ok(())
}

/// The values of the page for a chart, and none of its pods, which would act on the whole cluster.
fn values(controller: Controller) -> Result<Value> {
    let mut values = json!({"replicas": 0, "rbac": {"create": false}});
    if [DEPLOYMENTS, REPLICA_SETS].contains(&controller) {
        values["rbac"]["aggregateToUsers"] = false.into();
        values["crds"] = json!({"install": false});
    }
    if controller == BINDER {
        values["kinds"] = kinds_without_admission()?;
    }
    Ok(values)
}

#[tokio::test]
async fn every_chart_is_installed_with_the_rights_of_the_page_alone() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("few-rights").await?;
    allow(&namespace).await?;
    let mut refused = Vec::new();
    for controller in CONTROLLERS {
        let installed = install_as(INSTALLER, &namespace.name, controller, &values(controller)?).await;
        refused.extend(installed.err().map(|error| format!("{error:#}")));
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    Ok(())
}

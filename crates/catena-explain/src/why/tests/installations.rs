//! Which objects are believed to be an installation of a controller, as the server lists them.

use catena_api::keys::SETTINGS_VERSION;
use catena_cluster::{
    protection::NAME,
    testing::{Answer, answering, serving, status},
};
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::why::{Verdict, gather::gather};

/// Objects of a controller in a namespace, with the labels of our charts.
fn binder(namespace: &str, mut object: Value) -> Value {
    let labels = json!({"app.kubernetes.io/component": "command-binder"});
    let annotations = json!({SETTINGS_VERSION: "1"});
    object["metadata"] =
        json!({"name": "binder", "namespace": namespace, "labels": labels, "annotations": annotations});
    object
}

fn available(namespace: &str) -> Value {
    let labels = json!({NAME: "binder"});
    let spec = json!({"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}});
    binder(namespace, json!({"spec": spec, "status": {"availableReplicas": 1}}))
}

fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items})
}

#[tokio::test]
async fn what_only_has_the_labels_of_our_charts_costs_no_request() {
    let (cluster, requests) = serving(|uri| match uri.split('?').next()? {
        "/apis/coordination.k8s.io/v1/leases" => Some(list(&[binder("catena-system", json!({"spec": {}}))])),
        "/apis/apps/v1/deployments" => Some(list(&[available("catena-system"), available("tenant")])),
        "/api/v1/configmaps" => Some(list(&["catena-system", "tenant"].map(|of| binder(of, json!({}))))),
        _ => Some(list(&[])),
    });
    let controllers = gather(&cluster, Some("shop")).await.controllers;
    assert_eq!(controllers.seen.iter().map(|seen| &*seen.namespace).collect::<Vec<_>>(), ["catena-system"]);
    let requests = requests.lock().unwrap();
    let of = |namespace: &str| requests.iter().filter(|uri| uri.contains(namespace)).count();
    assert_eq!((of("/namespaces/catena-system/"), of("/namespaces/tenant/")), (2, 0), "{requests:?}");
}

#[tokio::test]
async fn what_a_tenant_runs_under_the_name_of_a_controller_says_nothing_of_it() {
    let renewed = Timestamp::now();
    let lease =
        |holder: &str| json!({"spec": {"holderIdentity": holder, "renewTime": format!("{renewed:.6}")}});
    let forged = binder("tenant", lease("pod"));
    let dead = binder("catena-system", lease(""));
    let pod = json!({"metadata": {"name": "pod", "namespace": "tenant", "labels": {NAME: "binder"}}});
    let rights = binder(
        "",
        json!({"subjects": [{"kind": "ServiceAccount", "name": "b", "namespace": "catena-system"}]}),
    );
    let runs = async |may_read_rights: bool| {
        let (forged, dead, pod, rights) = (forged.clone(), dead.clone(), pod.clone(), rights.clone());
        let (cluster, _) = serving(move |uri| match uri.split('?').next()? {
            "/apis/coordination.k8s.io/v1/leases" => Some(list(&[dead.clone(), forged.clone()])),
            "/apis/apps/v1/deployments" => Some(list(&["catena-system", "tenant"].map(available))),
            "/api/v1/namespaces/tenant/pods" => Some(list(std::slice::from_ref(&pod))),
            path if path.ends_with("/clusterrolebindings") => {
                may_read_rights.then(|| list(std::slice::from_ref(&rights)))
            }
            _ => Some(list(&[])),
        });
        let controllers = gather(&cluster, Some("shop")).await.controllers;
        controllers.verdict("command-binder", renewed) == Verdict::Runs
    };
    assert!(runs(false).await, "the objects alone cannot be told apart");
    assert!(!runs(true).await);
}

#[tokio::test]
async fn a_controller_whose_lease_or_deployment_cannot_be_read_is_neither_called_running_nor_absent() {
    for (unread, found) in [("leases", available("catena-system")), ("deployments", json!({"metadata": {}}))]
    {
        let (cluster, _) = answering(move |_, uri, _| -> Answer {
            let path = uri.split('?').next().unwrap_or_default();
            if path.ends_with(unread) {
                return status(403, "Forbidden", &format!("{unread} is forbidden"));
            }
            let is_found = path.ends_with("/deployments");
            (StatusCode::OK, list(if is_found { std::slice::from_ref(&found) } else { &[] }))
        });
        let surroundings = gather(&cluster, Some("shop")).await;
        let verdict = surroundings.controllers.verdict("command-binder", Timestamp::now());
        assert_eq!(verdict, Verdict::Unknown(format!("{unread} is forbidden")));
        let told: Vec<String> = surroundings.gaps.iter().map(ToString::to_string).collect();
        assert_eq!(told, [format!("the controllers of Catena ({unread} is forbidden)")]);
    }
}

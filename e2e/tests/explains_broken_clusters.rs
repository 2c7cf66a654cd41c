//! Broken clusters, as they are: kubectl catena why begins with the root cause, beyond the chain of the object as well.
//!
//! The rarer ones are ignored by default: `cargo xtask e2e --only explains_broken_clusters -- --include-ignored`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{
    CHAIN, COLLECTION_TIMEOUT, Cluster, Namespace, OwnNode, WAIT_TIMEOUT, catena, deployment, eventually,
    image, kubectl_apply, open_kind, until_says,
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, LimitRange, Namespace as CoreNamespace, Node, PersistentVolumeClaim, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

/// Before this, basic-deployment-controller does not report that a child only takes its time.
const FIRST_REPORT: Duration = Duration::from_secs(18);

const HOLD: &str = "example.com/hold";

fn held() -> Value {
    json!({"metadata": {"finalizers": [HOLD]}})
}

fn let_go() -> Value {
    json!({"metadata": {"finalizers": null}})
}

/// A pod that fits only on the node of the test.
fn pod(namespace: &Namespace, name: &str) -> Result<Pod> {
    let security = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {OwnNode::LABEL: namespace.name},
            "containers": [{"name": "main", "image": image(), "securityContext": security}],
        },
    }))?)
}

#[tokio::test]
async fn a_child_that_is_left_behind_is_found_and_explains_the_next_deployment_of_its_name() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("why-former").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    namespace.merge::<BasicReplicaSet>("web", held()).await?;
    namespace.delete::<BasicDeployment>("web").await?;
    namespace.until_gone::<BasicDeployment>("web").await;
    let holds = format!("it is being deleted and is held by the finalizer {HOLD}");
    let says = format!("BasicDeployment/web was deleted, and left BasicReplicaSet/web behind: {holds}");
    until_says(WAIT_TIMEOUT, &namespace.name, "bd/web", &says).await;

    namespace.create(&deployment("web", 1)).await?;
    let holds = format!("BasicReplicaSet/web is being deleted and is held by the finalizer {HOLD}");
    let says = format!("BasicDeployment/web is not ready: {holds}");
    until_says(FIRST_REPORT, &namespace.name, "web", &says).await;
    namespace
        .until("web", "says why", |web: &BasicDeployment| {
            let status = web.status.as_ref().map(|status| &status.conditions);
            let ready = status.and_then(|conditions| e2e::condition(conditions, "Ready"));
            ready.is_some_and(|ready| ready.reason == "FormerChildLeaving")
        })
        .await;
    namespace.merge::<BasicReplicaSet>("web", let_go()).await?;
    namespace.until_ready("web").await;
    let well = catena(&namespace.name, &["why", "bd/web"]).await?;
    ensure!(well.code == 0 && well.out.starts_with("BasicDeployment/web is ready"), "{well:?}");
    Ok(())
}

#[tokio::test]
async fn somebody_who_keeps_changing_the_child_is_named() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("why-fight").await?;
    let meddler = PatchParams { field_manager: Some("meddler".into()), ..PatchParams::default() };
    let fields = [json!({"spec": {"parameters": {"extra": "1"}}}), json!({"spec": {"replicas": 3}})];
    for (name, change) in ["parameters", "replicas"].into_iter().zip(&fields) {
        namespace.create(&deployment(name, 1)).await?;
        namespace.until_ready(name).await;
        let child = format!("BasicReplicaSet/{name}");
        let says = format!(
            "BasicDeployment/{name} does not come to rest: {child} is changed again and again by meddler"
        );
        eventually("the meddler is named", 2 * WAIT_TIMEOUT, async || {
            let sets = namespace.api::<BasicReplicaSet>();
            let changed = sets.patch(name, &meddler, &Patch::Merge(change)).await;
            changed.map_err(|error| error.to_string())?;
            let said = catena(&namespace.name, &["why", name]).await.map_err(|error| error.to_string())?;
            if said.out.starts_with(&says) && said.code == 5 { Ok(()) } else { Err(format!("{said:?}")) }
        })
        .await;
    }
    Ok(())
}

#[tokio::test]
async fn a_terminating_namespace_leads_to_what_holds_it() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("why-leaving").await?;
    let name = &namespace.name;
    let map: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "kept", "finalizers": [HOLD]}}))?;
    namespace.create(&map).await?;
    cluster.all::<CoreNamespace>().delete(name, &DeleteParams::background()).await?;
    let holds = format!("is being deleted and is held by the finalizer {HOLD}");
    let whole = format!("namespace/{name}");
    let says = format!("Namespace/{name} is not gone: ConfigMap/kept {holds}");
    until_says(COLLECTION_TIMEOUT, name, &whole, &says).await;
    let inside = until_says(WAIT_TIMEOUT, name, "configmap/kept", &format!("ConfigMap/kept {holds}")).await;
    ensure!(inside["remarks"].to_string().contains("the namespace has been terminating"), "{inside}");
    namespace.merge::<ConfigMap>("kept", let_go()).await?;
    cluster.until_namespace_gone(name).await;
    let said = catena(name, &["why", "web", "-o", "json"]).await?;
    ensure!(
        said.code == 1 && said.json()?["error"].to_string().contains("there is no namespace"),
        "{said:?}"
    );
    Ok(())
}

#[tokio::test]
async fn a_pod_leads_to_the_nodes_that_do_not_take_it_or_do_not_answer() -> Result<()> {
    e2e::needs!(FakeNodes);
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("why-nodes").await?;
    let of = &namespace.name;

    let cordoned = OwnNode::fake(&cluster, &namespace, "cordoned", json!({"unschedulable": true})).await?;
    until_node_is_ready(&cluster, &cordoned.name).await;
    namespace.create(&pod(&namespace, "waits")?).await?;
    let until_named = async |closed: String| {
        eventually(&format!("why says: {closed}"), WAIT_TIMEOUT, async || {
            let said = catena(of, &["why", "pod/waits", "-o", "json"]).await.and_then(|said| said.json());
            let answer = said.map_err(|error| json!(format!("{error:#}")))?;
            let sentence = answer["sentence"].as_str().unwrap_or_default();
            let is_named = sentence.starts_with("Pod/waits fits on no node: ") && sentence.contains(&closed);
            if is_named { Ok(answer) } else { Err(answer) }
        })
        .await
    };
    let answer = until_named(format!("{} is cordoned", cordoned.name)).await;
    let advice = answer["rootCause"]["advice"].to_string();
    ensure!(advice.contains(&format!("kubectl uncordon {}", cordoned.name)), "{answer}");
    drop(cordoned);

    let taint = json!({"taints": [{"key": "e2e.catena.dev/dedicated", "effect": "NoSchedule"}]});
    let tainted = OwnNode::fake(&cluster, &namespace, "tainted", taint).await?;
    until_node_is_ready(&cluster, &tainted.name).await;
    let answer = until_named(format!("{} has the taint e2e.catena.dev/dedicated", tainted.name)).await;
    ensure!(answer["rootCause"]["advice"].to_string().contains(&tainted.name), "{answer}");
    drop(tainted);

    let silent = OwnNode::silent(&cluster, &namespace).await?;
    let unknown = json!({"status": {"conditions": [{
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown",
        "message": "Kubelet stopped posting node status.", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let nodes = cluster.all::<Node>();
    nodes.patch_status(&silent.name, &PatchParams::default(), &Patch::Merge(&unknown)).await?;
    let mut placed = pod(&namespace, "placed")?;
    placed.spec.as_mut().context("spec")?.node_name = Some(silent.name.clone());
    namespace.create(&placed).await?;
    let says = format!("Pod/placed is not ready: Node/{} has stopped reporting", silent.name);
    until_says(WAIT_TIMEOUT, of, "pod/placed", &says).await;
    namespace.delete::<Pod>("placed").await?;
    let says = format!("Pod/placed is not gone: Node/{} has stopped reporting", silent.name);
    until_says(WAIT_TIMEOUT, of, "pod/placed", &says).await;
    Ok(())
}

async fn until_node_is_ready(cluster: &Cluster, name: &str) {
    eventually("the node is ready", WAIT_TIMEOUT, async || {
        let node = cluster.all::<Node>().get(name).await.map_err(|error| error.to_string())?;
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_ready = conditions.iter().any(|found| found.type_ == "Ready" && found.status == "True");
        if is_ready { Ok(()) } else { Err(format!("{conditions:?}")) }
    })
    .await;
}

#[tokio::test]
#[ignore = "rare"]
async fn a_pod_leads_to_its_claim_and_the_claim_to_its_class() -> Result<()> {
    e2e::needs!(FakeNodes);
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("why-volumes").await?;
    let of = &namespace.name;
    for (name, says) in [
        ("missing", "PersistentVolumeClaim/missing does not exist"),
        ("classless", "StorageClass/e2e-nowhere does not exist"),
        ("plain", "PersistentVolumeClaim/plain is not bound, and has no storage class"),
    ] {
        if name != "missing" {
            let class = if name == "classless" { "e2e-nowhere" } else { "" };
            let claim: PersistentVolumeClaim = serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {
                    "accessModes": ["ReadWriteOnce"], "storageClassName": class,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }))?;
            namespace.create(&claim).await?;
        }
        let mut pod = pod(&namespace, name)?;
        let spec = pod.spec.as_mut().context("spec")?;
        spec.node_selector = None;
        let volume = json!([{"name": "data", "persistentVolumeClaim": {"claimName": name}}]);
        spec.volumes = serde_json::from_value(volume)?;
        namespace.create(&pod).await?;
        let says = format!("Pod/{name} is not ready: {says}");
        until_says(WAIT_TIMEOUT, of, &format!("pod/{name}"), &says).await;
    }
    Ok(())
}

#[tokio::test]
#[ignore = "rare"]
async fn a_limit_range_and_a_quota_that_demands_limits_are_told_from_a_missing_right() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("why-limits").await?;
    let limits: LimitRange = serde_json::from_value(json!({
        "metadata": {"name": "large"}, "spec": {"limits": [{"type": "Container", "min": {"memory": "8Gi"}}]},
    }))?;
    namespace.create(&limits).await?;
    namespace.create(&deployment("web", 1)).await?;
    let says = "BasicDeployment/web is not ready: BasicReplicaSet/web is refused by a LimitRange";
    let answer = until_says(WAIT_TIMEOUT, &namespace.name, "web", says).await;
    ensure!(!answer["rootCause"]["advice"].to_string().contains("grant"), "{answer}");

    let namespace = cluster.namespace("why-demands").await?;
    namespace.limit("compute", json!({"limits.cpu": "1"})).await?;
    namespace.create(&deployment("web", 1)).await?;
    let says = "BasicDeployment/web is not ready: BasicReplicaSet/web is refused by a ResourceQuota that demands requests or limits (compute)";
    until_says(WAIT_TIMEOUT, &namespace.name, "web", says).await;
    Ok(())
}

#[tokio::test]
#[ignore = "rare"]
async fn a_definition_that_is_being_deleted_leads_to_the_object_that_holds_it() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("why-definition").await?;
    let group = format!("{}.example.com", namespace.name);
    let name = gadgets(&namespace, &group, json!({})).await?;
    let kept = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gadget",
        "metadata": {"name": "kept", "finalizers": [HOLD]},
    });
    until_applied(&namespace, &kept).await;
    cluster.all::<CustomResourceDefinition>().delete(&name, &DeleteParams::default()).await?;
    let says = format!(
        "CustomResourceDefinition/{name} is not gone: Gadget/kept in namespace {} is being deleted and is held by the finalizer {HOLD}",
        namespace.name
    );
    until_says(WAIT_TIMEOUT, &namespace.name, &format!("crd/{name}"), &says).await;
    let gadgets = format!("gadgets.{group}");
    let patch = ["patch", &gadgets, "kept", "--type=merge", "--patch={\"metadata\":{\"finalizers\":null}}"];
    let release = [&["--namespace", &namespace.name][..], &patch].concat();
    // Once was seen to be too little, while the API server stops serving the kind.
    eventually("the definition goes when its object is released", WAIT_TIMEOUT, async || {
        let released = e2e::kubectl(&release).await;
        match cluster.all::<CustomResourceDefinition>().get_opt(&name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{released:?}, {:?}", other.map(|found| found.map(|found| found.status)))),
        }
    })
    .await;
    Ok(())
}

/// Installs a kind of the test.
async fn gadgets(namespace: &Namespace, group: &str, labels: Value) -> Result<String> {
    let mut definition = open_kind(group, "Gadget", &["v1"]);
    let name = definition["metadata"]["name"].as_str().context("name")?.to_owned();
    definition["metadata"] = namespace.owns(&name);
    definition["metadata"]["labels"] = labels;
    kubectl_apply(&namespace.name, &definition.to_string()).await?;
    Ok(name)
}

/// A new kind is not served at once.
async fn until_applied(namespace: &Namespace, object: &Value) {
    eventually("the kind is served", WAIT_TIMEOUT, async || {
        kubectl_apply(&namespace.name, &object.to_string()).await.map_err(|error| error.to_string())
    })
    .await;
}

#[tokio::test]
#[ignore = "rare"]
async fn a_command_whose_kind_does_not_describe_its_binding_has_a_note() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-label").await?;
    let group = format!("{}.example.com", namespace.name);
    gadgets(&namespace, &group, json!({"catena.dev/command": "true"})).await?;
    let command = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Gadget",
        "metadata": {"name": "polish"}, "spec": {"targetRef": {"name": "shoes"}},
    });
    until_applied(&namespace, &command).await;
    eventually("a note tells that nobody binds it", WAIT_TIMEOUT, async || {
        let said = catena(&namespace.name, &["why", "gadget/polish"]).await;
        let said = said.map_err(|error| error.to_string())?.out;
        let note = "no warning of command-binder tells why";
        if said.contains(note) { Ok(()) } else { Err(said) }
    })
    .await;
    Ok(())
}

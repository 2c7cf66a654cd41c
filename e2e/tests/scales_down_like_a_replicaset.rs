//! With fewer replicas, the same pods go as from the ReplicaSet of a Deployment of kube-controller-manager, which is the control.

use std::collections::BTreeSet;

use anyhow::Result;
use catena_api::{BasicReplicaSet, keys::POD_DELETION_COST};
use e2e::{Cluster, Namespace, REPLICA_SETS, Release, image, replica_set, restarts};
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{Node, Pod},
};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

/// The label by which the test tells its pods apart.
const ROLE: &str = "role";
/// The parts that pods play, in the order in which they go: each by a rule whose successors would choose another pod.
const ROLES: [&str; 7] = ["unassigned", "restarted", "not-ready", "cheap", "young", "alone", "old"];

fn role(pod: &Pod) -> &str {
    pod.labels().get(ROLE).map_or("", String::as_str)
}

/// A pod that no scheduler takes, so that the test chooses its node.
fn spec() -> Value {
    json!({
        "schedulerName": "none",
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{
            "name": "main", "image": image(),
            "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
        }],
    })
}

/// Gives a pod its part and its node. The fake node plays the rest.
async fn assign(namespace: &Namespace, pod: &str, role: &str, nodes: &[String]) -> Result<()> {
    let play = match role {
        "restarted" => "crash-loop",
        "not-ready" => "not-ready",
        _ => "none",
    };
    let cost = if role == "cheap" { "-1" } else { "0" };
    let annotations = json!({"catena.dev/play": play, POD_DELETION_COST: cost});
    let marks = json!({"metadata": {"labels": {ROLE: role}, "annotations": annotations}});
    namespace.merge::<Pod>(pod, marks).await?;
    if role != "unassigned" {
        let node = &nodes[usize::from(["young", "old"].contains(&role))];
        let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
        let binding =
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target});
        let pods = namespace.api::<Pod>();
        let _: Value = pods.create_subresource("binding", pod, &PostParams::default(), &binding).await?;
    }
    Ok(())
}

/// Whether the fake node has played its part.
fn plays(pod: &Pod) -> bool {
    match role(pod) {
        "unassigned" => true,
        "restarted" => restarts(pod) > 0,
        "not-ready" => pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running")),
        _ => e2e::is_ready(pod),
    }
}

/// The parts of the pods of a kind.
fn roles<'p>(pods: &'p [Pod], kind: &str) -> BTreeSet<&'p str> {
    let is_of = |pod: &&Pod| pod.owner_references().iter().any(|owner| owner.kind == kind);
    pods.iter().filter(is_of).map(role).collect()
}

#[tokio::test]
async fn the_same_pods_go_as_in_a_replicaset() -> Result<()> {
    e2e::needs!(FakeNodes);
    let cluster = Cluster::changing(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("ranks").await?;
    let nodes = cluster.all::<Node>().list(&ListParams::default().labels("type=kwok").limit(2)).await?;
    let nodes: Vec<_> = nodes.iter().map(ResourceExt::name_any).collect();
    let pod = "apiVersion: v1, kind: Pod, metadata: {name: {{ name ~ '-' ~ suffix }}}";
    let template = format!("{{{pod}, spec: {}}}", spec());
    let release =
        Release::upgrade(&cluster, REPLICA_SETS, &json!({"templates": {"ranks": template}})).await?;

    let count = i32::try_from(ROLES.len())?;
    let mut set = replica_set("web", count);
    set.spec.template = "ranks".into();
    namespace.create(&set).await?;
    let labels = json!({"app": "control"});
    // Alone, a ReplicaSet does not look at the nodes of its pods.
    let control: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "control"},
        "spec": {
            "replicas": count, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec()},
        },
    }))?;
    namespace.create(&control).await?;
    let pods = namespace.until_pods("both have their pods", |pods| pods.len() == 2 * ROLES.len()).await;
    let (own, others): (Vec<_>, Vec<_>) =
        pods.iter().map(ResourceExt::name_any).partition(|name| name.starts_with("web-"));
    for (pod, role) in own.iter().zip(ROLES).chain(others.iter().zip(ROLES)) {
        assign(&namespace, pod, role, &nodes).await?;
    }
    let pods = namespace.until_pods("all play their parts", |pods| pods.iter().all(plays)).await;
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T00:00:00Z"});
    let long_ago = Patch::Strategic(json!({"status": {"conditions": [ready]}}));
    for pod in pods.iter().filter(|pod| ["old", "cheap"].contains(&role(pod))) {
        let api = namespace.api::<Pod>();
        api.patch_status(&pod.name_any(), &PatchParams::default(), &long_ago).await?;
    }

    for gone in 1..ROLES.len() {
        let fewer = json!({"spec": {"replicas": ROLES.len() - gone}});
        namespace.merge::<Deployment>("control", fewer.clone()).await?;
        namespace.merge::<BasicReplicaSet>("web", fewer).await?;
        let left: BTreeSet<_> = ROLES[gone..].iter().copied().collect();
        let both_keep =
            |pods: &[Pod]| roles(pods, "ReplicaSet") == left && roles(pods, "BasicReplicaSet") == left;
        namespace.until_pods(&format!("both keep {left:?}"), both_keep).await;
    }
    namespace.delete::<BasicReplicaSet>("web").await?;
    release.restore().await
}

//! The number of replicas follows its source: a person, the scale subresource, an autoscaler.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicReplicaSet, keys};
use e2e::{
    CHAIN, Cluster, Namespace, REPLICA_SETS, another_image, condition, deployment, kubectl, names,
    replica_set, uids,
};
use k8s_openapi::{
    api::{autoscaling::v2::HorizontalPodAutoscaler, core::v1::Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

async fn scale(namespace: &Namespace, replicas: i32) -> Result<()> {
    let replicas = format!("--replicas={replicas}");
    kubectl(&["--namespace", &namespace.name, "scale", "basicdeployment/web", &replicas]).await?;
    Ok(())
}

#[tokio::test]
async fn kubectl_scale_goes_up_down_and_to_zero() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("scale").await?;
    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    let two = uids(&namespace.until_ready_pods(2).await);

    scale(&namespace, 6).await?;
    let six = uids(&namespace.until_ready_pods(6).await);
    assert!(six.is_superset(&two), "the pods that were there stay");
    namespace.until_ready("web").await;

    scale(&namespace, 1).await?;
    let one = uids(&namespace.until_ready_pods(1).await);
    assert!(one.is_subset(&six));
    namespace.until_ready("web").await;

    scale(&namespace, 0).await?;
    namespace.until_ready_pods(0).await;
    let status = namespace.until_ready("web").await.status.context("status")?;
    assert_eq!((status.active, status.progress.as_str()), (0, "0/0"));
    Ok(())
}

#[tokio::test]
async fn what_serves_is_told_soon_also_where_nothing_else_changes() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("paused").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let change = json!({"spec": {"paused": true, "parameters": {"image": another_image()}}});
    namespace.merge::<BasicDeployment>("web", change).await?;
    let is_paused = |web: &BasicDeployment| {
        let ready = web.status.as_ref().and_then(|status| condition(&status.conditions, "Ready"));
        ready.is_some_and(|ready| ready.reason == "Paused")
    };
    namespace.until("web", "is paused", is_paused).await;

    scale(&namespace, 4).await?;
    namespace.until_ready_pods(4).await;
    let says_so = |web: &BasicDeployment| {
        web.status.as_ref().is_some_and(|status| status.active == 4 && status.progress == "4/4")
    };
    namespace.until_soon(Duration::from_secs(8), "web", "says that four serve", says_so).await?;
    Ok(())
}

#[tokio::test]
async fn a_child_of_a_former_name_counts_and_is_scaled_until_the_next_one_serves() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("renamed").await?;
    let mut web = deployment("web", 2);
    web.spec.template = "lined".into();
    web.spec.max_unavailable = IntOrString::Int(0);
    web.spec.parameters.insert("line".into(), "blue".into());
    let good = web.spec.parameters.get("image").cloned();
    namespace.create(&web).await?;
    namespace.until_ready("web").await;

    let bad = json!({"line": "green", "image": "registry.invalid/missing:1"});
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": bad}})).await?;
    let serve = |count: i32| {
        move |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                let child = status.child.as_ref().map(|child| child.name.as_str());
                !status.ready && child == Some("web-green") && status.active == count
            })
        }
    };
    namespace.until("web", "counts those of the former child", serve(2)).await;
    scale(&namespace, 4).await?;
    let web = namespace.until("web", "counts what was added to the former child", serve(4)).await;
    let status = web.status.context("status")?;
    assert_eq!((status.progress.as_str(), status.replicas), ("4/4", 5));
    let ready = condition(&status.conditions, "Ready").context("Ready")?;
    assert!(ready.message.contains("web-blue"), "{}", ready.message);
    // An autoscaler counts the serving pods.
    let former = namespace.api::<BasicReplicaSet>().get("web-blue").await?;
    assert_eq!(status.selector, former.status.and_then(|status| status.selector));

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"image": good}}})).await?;
    namespace.until_ready("web").await;
    namespace.until_collected::<BasicReplicaSet>("web-blue").await;
    namespace.until_ready_pods(4).await;
    Ok(())
}

#[tokio::test]
async fn scaling_is_no_new_revision() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("revision").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let before = namespace.until_set_ready("web").await;

    scale(&namespace, 2).await?;
    namespace.until_ready_pods(2).await;
    let after = namespace.until_set_ready("web").await;
    assert_eq!(after.annotations().get(keys::HASH), before.annotations().get(keys::HASH));
    Ok(())
}

#[tokio::test]
async fn pods_of_a_low_deletion_cost_go_first() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("cost").await?;
    namespace.create(&replica_set("web", 5)).await?;
    let pods = namespace.until_ready_pods(5).await;

    // Neither the first nor the last by name or age.
    let cheap: BTreeSet<String> = [&pods[1], &pods[3]].map(ResourceExt::name_any).into();
    for name in &cheap {
        let cost = json!({"metadata": {"annotations": {keys::POD_DELETION_COST: "-10"}}});
        namespace.merge::<Pod>(name, cost).await?;
    }
    // A status with a sixth pod that serves shows that the controller knows of everything before it.
    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 6}})).await?;
    namespace.until_set_ready("web").await;
    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 4}})).await?;
    let left = names(&namespace.until_ready_pods(4).await);
    assert!(left.is_disjoint(&cheap), "{cheap:?} are cheap, and there are {left:?}");
    Ok(())
}

#[tokio::test]
async fn pods_that_do_not_serve_go_before_those_that_do() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("unready").await?;
    namespace.create(&replica_set("web", 4)).await?;
    let pods = namespace.until_ready_pods(4).await;

    let name = pods[2].name_any();
    // A kubelet cannot pull this image; a fake node plays its part. A kubelet would overwrite a patched status.
    let broken = json!({
        "metadata": {"annotations": {keys::POD_DELETION_COST: "100", "catena.dev/play": "crash-loop"}},
        "spec": {"containers": [{"name": "main", "image": "localhost:1/none:1"}]},
    });
    let patch = Patch::Strategic(&broken);
    namespace.api::<Pod>().patch(&name, &PatchParams::default(), &patch).await?;
    let knows = |set: &BasicReplicaSet| set.status.as_ref().is_some_and(|status| status.active == 3);
    namespace.until("web", "the set knows that a pod does not serve", knows).await;
    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 3}})).await?;
    let left = names(&namespace.until_ready_pods(3).await);
    assert!(!left.contains(&name), "{name} does not serve, and there are {left:?}");
    Ok(())
}

#[tokio::test]
async fn the_scale_subresource_selects_exactly_its_own_pods() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("selector").await?;
    namespace.create(&deployment("web", 3)).await?;
    namespace.create(&deployment("other", 2)).await?;
    namespace.until_ready("web").await;
    namespace.until_ready("other").await;
    let all = namespace.until_ready_pods(5).await;
    let set = namespace.until_set_ready("web").await;
    let own: Vec<Pod> = all
        .into_iter()
        .filter(|pod| {
            pod.owner_references().iter().any(|owner| Some(&owner.uid) == set.metadata.uid.as_ref())
        })
        .collect();

    for scale in [
        namespace.api::<BasicDeployment>().get_scale("web").await?,
        namespace.api::<BasicReplicaSet>().get_scale("web").await?,
    ] {
        let status = scale.status.context("status")?;
        assert_eq!((scale.spec.context("spec")?.replicas, status.replicas), (Some(3), 3));
        let selector = status.selector.filter(|selector| !selector.is_empty()).context("no selector")?;
        let selected = namespace.api::<Pod>().list(&ListParams::default().labels(&selector)).await?;
        assert_eq!(uids(&selected.items), uids(&own), "{selector}");
    }
    Ok(())
}

#[tokio::test]
async fn a_horizontal_pod_autoscaler_reads_and_sets_the_scale() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("hpa").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let autoscaler: HorizontalPodAutoscaler = serde_json::from_value(json!({
        "metadata": {"name": "web"},
        "spec": {
            "scaleTargetRef": {"apiVersion": e2e::GROUP_VERSION, "kind": "BasicDeployment", "name": "web"},
            "minReplicas": 3,
            "maxReplicas": 5,
            "metrics": [{
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }],
        },
    }))?;
    namespace.create(&autoscaler).await?;

    // The autoscaler syncs every 15 s.
    namespace
        .until_within(
            Duration::from_secs(60),
            "web",
            "reads the scale",
            |autoscaler: &HorizontalPodAutoscaler| {
                let conditions =
                    autoscaler.status.iter().flat_map(|status| status.conditions.iter().flatten());
                conditions.into_iter().any(|condition| {
                    let reason = condition.reason.as_deref().unwrap_or_default();
                    condition.type_ == "AbleToScale"
                        && condition.status == "True"
                        && ["SucceededGetScale", "SucceededRescale", "ReadyForNewScale"].contains(&reason)
                })
            },
        )
        .await;
    let web = namespace
        .until("web", "has the least that the autoscaler allows", |web: &BasicDeployment| {
            web.spec.replicas == 3
        })
        .await;
    assert_eq!(web.spec.replicas, 3);
    namespace.until_ready("web").await;
    namespace.until_ready_pods(3).await;
    Ok(())
}

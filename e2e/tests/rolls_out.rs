//! Pods are replaced within the budget: when parameters change, when a template changes, and for a
//! restart.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicReplicaSet, PodReplacementPolicy, keys};
use e2e::{
    CHAIN, Cluster, DEPLOYMENTS, Namespace, REPLICA_SETS, Recorded, Recording, Release, WAIT_TIMEOUT,
    condition, deployment, eventually, forbid_unless, names, replica_set, shipped_template, uids,
};
use k8s_openapi::{
    api::core::v1::{Node, Pod},
    apimachinery::pkg::util::intstr::IntOrString::{Int, String as Text},
};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

/// The value of an environment variable of a pod.
fn variable<'p>(pod: &'p Pod, name: &str) -> Option<&'p str> {
    let container = pod.spec.as_ref()?.containers.first()?;
    let found = container.env.iter().flatten().find(|variable| variable.name == name)?;
    found.value.as_deref()
}

async fn until_pods_have_version(namespace: &Namespace, count: usize, version: &str) -> Vec<Pod> {
    namespace
        .until_pods(&format!("{count} pods of version {version} serve, and there is no other"), |pods| {
            pods.len() == count
                && pods.iter().all(|pod| e2e::is_ready(pod) && variable(pod, "VERSION") == Some(version))
        })
        .await
}

#[tokio::test]
async fn changed_parameters_replace_all_pods_within_the_budget() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("budget").await?;
    namespace.create(&deployment("web", 10)).await?;
    namespace.until_ready("web").await;
    let before = namespace.until_ready_pods(10).await;
    let recording = Recording::start(&namespace).await;

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    let after = until_pods_have_version(&namespace, 10, "2").await;
    namespace.until_ready("web").await;
    let Recorded { most, fewest_ready: fewest, .. } = recording.so_far();
    assert!(uids(&before).is_disjoint(&uids(&after)));
    // A quarter of ten: three on top, two missing.
    assert!(most <= 13, "{most} pods at once");
    assert!(fewest >= 8, "only {fewest} ready pods");
    Ok(())
}

#[tokio::test]
async fn a_set_that_may_not_surge_never_does() -> Result<()> {
    replaces_within(0, 1, 4, 3).await
}

#[tokio::test]
async fn a_set_that_may_not_miss_a_pod_never_does() -> Result<()> {
    replaces_within(1, 0, 5, 4).await
}

async fn replaces_within(surge: i32, unavailable: i32, at_most: usize, at_least: usize) -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("strict").await?;
    let mut set = replica_set("web", 4);
    set.spec.max_surge = Int(surge);
    set.spec.max_unavailable = Int(unavailable);
    namespace.create(&set).await?;
    namespace.until_ready_pods(4).await;
    let recording = Recording::start(&namespace).await;

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    until_pods_have_version(&namespace, 4, "2").await;
    namespace.until_set_ready("web").await;
    let Recorded { most, fewest_ready: fewest, .. } = recording.so_far();
    assert!(most <= at_most, "{most} pods at once");
    assert!(fewest >= at_least, "only {fewest} ready pods");
    Ok(())
}

#[tokio::test]
async fn a_version_that_never_gets_ready_leaves_the_old_one_serving() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("bad").await?;
    let mut good = deployment("web", 4);
    good.spec.parameters.insert("env.VERSION".into(), "1".into());
    namespace.create(&good).await?;
    namespace.until_ready("web").await;
    let recording = Recording::start(&namespace).await;

    let bad = json!({"spec": {"parameters": {"image": "registry.invalid/missing:1", "env.VERSION": "2"}}});
    namespace.merge::<BasicDeployment>("web", bad).await?;
    namespace
        .until("web", "names a pod that blocks", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                status.blocked_by.as_ref().is_some_and(|blocker| blocker.reason == "ImagePullBackOff")
            })
        })
        .await;
    let back = json!({"spec": {"parameters": good.spec.parameters}});
    namespace.merge::<BasicDeployment>("web", back).await?;
    until_pods_have_version(&namespace, 4, "1").await;
    namespace.until_ready("web").await;
    let Recorded { most, fewest_ready: fewest, .. } = recording.so_far();
    assert!(fewest >= 3, "only {fewest} ready pods");
    assert!(most <= 5, "{most} pods at once");
    Ok(())
}

/// As by a drain, in the middle of a restart of the controller, which has nothing but the API server to remember by.
#[tokio::test]
async fn a_stuck_rollout_makes_all_of_its_old_pods_again_when_they_are_lost() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing(&[REPLICA_SETS]).await?;
    REPLICA_SETS.until_ready(&cluster).await;
    let namespace = cluster.namespace("lost").await?;
    let mut set = replica_set("web", 3);
    set.spec.parameters.insert("env.VERSION".into(), "1".into());
    namespace.create(&set).await?;
    namespace.until_set_ready("web").await;
    let old = namespace.until_ready_pods(3).await;

    let bad = json!({"spec": {"parameters": {"image": "registry.invalid/missing:1", "env.VERSION": "2"}}});
    namespace.merge::<BasicReplicaSet>("web", bad).await?;
    namespace
        .until("web", "names a pod that blocks", |web: &BasicReplicaSet| {
            let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
            blocker.is_some_and(|blocker| blocker.reason == "ImagePullBackOff")
        })
        .await;
    let process = REPLICA_SETS.process(&cluster).await?;
    process.kill()?;
    for pod in &old {
        namespace.delete::<Pod>(&pod.name_any()).await?;
    }
    process.until_replaced(&cluster).await;
    let serve = |pods: &[Pod], count| {
        let good = |pod: &&Pod| e2e::is_ready(pod) && variable(pod, "VERSION") == Some("1");
        pods.iter().filter(good).count() == count
    };
    let again = namespace.until_pods("three pods of version 1 serve again", |pods| serve(pods, 3)).await;
    assert!(uids(&again).is_disjoint(&uids(&old)));

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 6}})).await?;
    let serve_five = |pods: &[Pod]| serve(pods, 5) && pods.len() == 8;
    namespace.until_pods("five of six serve, and three new ones try", serve_five).await;
    let good = json!({"spec": {"parameters": {"image": e2e::image(), "env.VERSION": "3"}}});
    namespace.merge::<BasicReplicaSet>("web", good).await?;
    until_pods_have_version(&namespace, 6, "3").await;
    namespace.until_set_ready("web").await;
    Ok(())
}

/// As by a policy that is stricter than the version that serves.
#[tokio::test]
async fn a_version_that_is_no_longer_admitted_does_not_hold_up_its_successor() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("stricter").await?;
    let mut set = replica_set("web", 1);
    set.spec.parameters.insert("env.VERSION".into(), "1".into());
    namespace.create(&set).await?;
    namespace.until_set_ready("web").await;

    let pods =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
    let is_newer =
        "!object.spec.containers[0].?env.orValue([]).exists(one, one.name == 'VERSION' && one.value == '1')";
    let why = "version 1 is not allowed";
    forbid_unless(&cluster, &namespace, &REPLICA_SETS.user(), pods, is_newer, why).await?;
    eventually("a lost pod is refused", WAIT_TIMEOUT, async || {
        for pod in namespace.pods().await.map_err(|error| error.to_string())? {
            namespace.delete::<Pod>(&pod.name_any()).await.map_err(|error| error.to_string())?;
        }
        let web = namespace.api::<BasicReplicaSet>().get("web").await.map_err(|error| error.to_string())?;
        let told = web.status.map(|status| status.conditions).unwrap_or_default();
        let is_refused = condition(&told, "Ready").is_some_and(|ready| ready.message.contains(why));
        if is_refused { Ok(()) } else { Err(format!("{told:?}")) }
    })
    .await;
    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    until_pods_have_version(&namespace, 1, "2").await;
    namespace.until_set_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_version_that_has_only_just_become_ready_replaces_nobody() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("young").await?;
    namespace.create(&replica_set("web", 3)).await?;
    namespace.until_set_ready("web").await;
    let old = namespace.until_ready_pods(3).await;

    let change = json!({"spec": {"minReadySeconds": 86_400, "parameters": {"env.VERSION": "2"}}});
    namespace.merge::<BasicReplicaSet>("web", change).await?;
    // It reports only when there is nothing left to replace.
    let waits = |web: &BasicReplicaSet| {
        web.status.as_ref().is_some_and(|status| {
            let ready = condition(&status.conditions, "Ready");
            let is_told = ready.is_some_and(|ready| {
                ready.status == "False" && ready.message.contains("spec.minReadySeconds")
            });
            is_told && (status.active, status.updated) == (4, 1)
        })
    };
    namespace.until("web", "waits for a pod that is ready", waits).await;
    assert!(uids(&namespace.until_ready_pods(4).await).is_superset(&uids(&old)));

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"minReadySeconds": 0}})).await?;
    until_pods_have_version(&namespace, 3, "2").await;
    namespace.until_set_ready("web").await;
    Ok(())
}

/// A finalizer keeps the old one, as a long grace period would.
#[tokio::test]
async fn a_pod_whose_end_is_awaited_never_runs_beside_its_successor() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("one").await?;
    let mut set = replica_set("web", 1);
    (set.spec.max_surge, set.spec.max_unavailable) = (Int(0), Int(1));
    set.spec.pod_replacement_policy = PodReplacementPolicy::TerminationComplete;
    namespace.create(&set).await?;
    namespace.until_set_ready("web").await;
    let old = namespace.until_ready_pods(1).await[0].name_any();
    namespace.merge::<Pod>(&old, json!({"metadata": {"finalizers": ["e2e.catena.dev/hold"]}})).await?;

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    let waits = |web: &BasicReplicaSet| {
        web.status.as_ref().is_some_and(|status| {
            let ready = condition(&status.conditions, "Ready");
            let is_told = ready.is_some_and(|ready| {
                ready.status == "False" && ready.message.contains("spec.podReplacementPolicy")
            });
            is_told && (status.replicas, status.terminating) == (0, Some(1))
        })
    };
    namespace.until("web", "waits for the end of the old pod", waits).await;
    assert_eq!(names(&namespace.pods().await?), BTreeSet::from([old.clone()]));
    namespace.merge::<Pod>(&old, json!({"metadata": {"finalizers": null}})).await?;
    until_pods_have_version(&namespace, 1, "2").await;
    let status = namespace.until_set_ready("web").await.status.context("a status")?;
    assert_eq!(status.terminating, Some(0));
    Ok(())
}

/// Each of two nodes takes one pod of a revision, so that a rollout ends only if pods of the old one do not count.
#[tokio::test]
async fn a_rollout_under_a_required_anti_affinity_ends_because_pods_are_labelled_by_their_revision()
-> Result<()> {
    e2e::needs!(FakeNodes);
    let cluster = Cluster::changing(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("apart").await?;
    let nodes = cluster.all::<Node>().list(&ListParams::default().labels("type=kwok").limit(2)).await?;
    let nodes: Vec<_> = nodes.iter().map(ResourceExt::name_any).collect();
    let on_them = json!({"key": "kubernetes.io/hostname", "operator": "In", "values": nodes});
    let affinity = json!({
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [on_them]}],
        }},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "topologyKey": "kubernetes.io/hostname",
            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
            "matchLabelKeys": [keys::REVISION],
        }]},
    });
    let spec = format!("\nspec:\n  affinity: {affinity}\n");
    let template = shipped_template(REPLICA_SETS)?.replacen("\nspec:\n", &spec, 1);
    let release =
        Release::upgrade(&cluster, REPLICA_SETS, &json!({"templates": {"apart": template}})).await?;
    let mut set = replica_set("web", 2);
    set.spec.template = "apart".into();
    namespace.create(&set).await?;
    namespace.until_set_ready("web").await;

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}})).await?;
    let pods = until_pods_have_version(&namespace, 2, "2").await;
    namespace.until_set_ready("web").await;
    let revisions: BTreeSet<_> = pods.iter().map(|pod| pod.labels().get(keys::REVISION)).collect();
    assert!(revisions.len() == 1 && !revisions.contains(&None), "{revisions:?}");
    namespace.delete::<BasicReplicaSet>("web").await?;
    release.restore().await
}

#[tokio::test]
async fn what_is_paused_is_scaled_but_not_changed() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("paused").await?;
    let mut web = deployment("web", 2);
    web.spec.parameters.insert("env.VERSION".into(), "1".into());
    namespace.create(&web).await?;
    namespace.until_ready("web").await;

    let change = json!({"spec": {"paused": true, "replicas": 3, "parameters": {"env.VERSION": "2"}}});
    namespace.merge::<BasicDeployment>("web", change).await?;
    until_pods_have_version(&namespace, 3, "1").await;
    namespace
        .until("web", "says that it is paused", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                let progressing = condition(&status.conditions, "Progressing");
                !status.ready
                    && status.observed_generation == web.metadata.generation
                    && progressing.is_some_and(|said| said.status == "False" && said.reason == "Paused")
            })
        })
        .await;

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;
    until_pods_have_version(&namespace, 3, "2").await;
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn another_restart_token_replaces_every_pod() -> Result<()> {
    let cluster = Cluster::with(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("restart").await?;
    let mut set = replica_set("web", 4);
    (set.spec.max_surge, set.spec.max_unavailable) = (Text("25%".into()), Int(0));
    namespace.create(&set).await?;
    let before = namespace.until_ready_pods(4).await;
    let recording = Recording::start(&namespace).await;

    let token = json!({"spec": {"restartedAt": "2026-01-01T00:00:00Z"}});
    namespace.merge::<BasicReplicaSet>("web", token).await?;
    namespace
        .until_pods("four other pods serve", |now| {
            now.len() == 4 && now.iter().all(e2e::is_ready) && uids(now).is_disjoint(&uids(&before))
        })
        .await;
    namespace.until_set_ready("web").await;
    let Recorded { most, fewest_ready: fewest, .. } = recording.so_far();
    assert!((most, fewest) == (5, 4), "{most} pods at once, {fewest} ready ones at least");
    Ok(())
}

#[tokio::test]
async fn a_changed_pod_template_rolls_out_without_a_restart_of_the_controllers() -> Result<()> {
    let cluster = Cluster::changing(&CHAIN).await?;
    let namespace = cluster.namespace("template").await?;
    namespace.create(&deployment("web", 8)).await?;
    namespace.until_ready("web").await;
    let before = namespace.until_ready_pods(8).await;
    let child = namespace.until_set_ready("web").await;
    let processes = [DEPLOYMENTS.process(&cluster).await?.pid, REPLICA_SETS.process(&cluster).await?.pid];
    let revision = Release::revision(DEPLOYMENTS).await?;
    let recording = Recording::start(&namespace).await;

    let template = shipped_template(REPLICA_SETS)?.replace("  labels:\n", "  labels:\n    e2e: changed\n");
    let values = json!({"templates": {"default": template}});
    let release = Release::upgrade(&cluster, REPLICA_SETS, &values).await?;
    let after = namespace
        .until_pods("eight pods of the new template serve", |pods| {
            let is_new = |pod: &Pod| e2e::is_ready(pod) && pod.labels().contains_key("e2e");
            pods.len() == 8 && pods.iter().all(is_new)
        })
        .await;
    namespace.until_ready("web").await;
    let Recorded { most, fewest_ready: fewest, .. } = recording.so_far();

    assert!(uids(&before).is_disjoint(&uids(&after)));
    assert!(most <= 10, "{most} pods at once");
    assert!(fewest >= 6, "only {fewest} ready pods");
    let now = [DEPLOYMENTS.process(&cluster).await?.pid, REPLICA_SETS.process(&cluster).await?.pid];
    assert_eq!(now, processes, "a controller was restarted");
    assert_eq!(Release::revision(DEPLOYMENTS).await?, revision, "the other release was touched");
    let child_after = namespace.until_set_ready("web").await;
    assert_eq!(child_after.annotations().get(keys::HASH), child.annotations().get(keys::HASH));
    assert_eq!(child_after.metadata.generation, child.metadata.generation, "the child was changed");

    release.restore().await?;
    namespace
        .until_pods("eight pods of the shipped template serve", |pods| {
            let is_old = |pod: &Pod| e2e::is_ready(pod) && !pod.labels().contains_key("e2e");
            pods.len() == 8 && pods.iter().all(is_old)
        })
        .await;
    Ok(())
}

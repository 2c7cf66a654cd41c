//! Kinds that the reaper does not know at build time, by configuration alone. Each test changes the release.

use anyhow::{Result, ensure};
use e2e::{Cluster, Namespace, REAPER, Release, WAIT_TIMEOUT, eventually, kubectl_with_input, open_kind};
use jiff::Timestamp;
use k8s_openapi::{
    api::{batch::v1::Job, core::v1::ConfigMap},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

/// Jobs that are marked as one-shot, and `EtcdOpsTasks`, of whose status only the state is known.
fn values() -> Value {
    let job = json!({
        "id": "jobs", "group": "batch", "version": "v1", "resource": "jobs", "kind": "Job",
        "selector": "e2e.catena.dev/one-shot=true",
        "expire": {
            "finishedAt": "object.status.conditions.filter(c, c.type in ['Complete', 'Failed'] && c.status == 'True')\
                           .map(c, c.lastTransitionTime)[?0].orValue(null)",
            "ttlSeconds": "object.metadata.?annotations[?'example.com/keep'].hasValue() ? null : 0",
        },
    });
    let task = json!({
        "id": "etcd", "group": "reaping.example.com", "version": "v1", "resource": "etcdopstasks", "kind": "EtcdOpsTask",
        "expire": {
            "finishedAt": "object.status.state in ['Succeeded', 'Failed', 'Rejected'] ? object.status.lastTransition : null",
            "ttlSeconds": "object.spec.ttlSecondsAfterFinished",
        },
    });
    json!({"kinds": [job, task]})
}

const CRD: &str = "etcdopstasks.reaping.example.com";

fn crd() -> Result<CustomResourceDefinition> {
    Ok(serde_json::from_value(open_kind("reaping.example.com", "EtcdOpsTask", &["v1"]))?)
}

fn tasks(cluster: &Cluster, namespace: &Namespace) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("reaping.example.com", "v1", "EtcdOpsTask"));
    Api::namespaced_with(cluster.client.clone(), &namespace.name, &resource)
}

fn task(name: &str, status: &Value) -> Result<DynamicObject> {
    Ok(serde_json::from_value(json!({
        "apiVersion": "reaping.example.com/v1",
        "kind": "EtcdOpsTask",
        "metadata": {"name": name},
        "spec": {"ttlSecondsAfterFinished": 0},
        "status": status,
    }))?)
}

/// A Job that ends soon, with either outcome.
fn job(name: &str, labels: &Value, annotations: &Value) -> Result<Job> {
    let container = json!({
        "name": "main",
        "image": e2e::image(),
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    let pod = json!({
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    });
    Ok(serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"activeDeadlineSeconds": 2, "backoffLimit": 0, "template": {"spec": pod}},
    }))?)
}

async fn until_finished(namespace: &Namespace, name: &str) {
    let is_finished = |job: &Job| {
        let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.status == "True")
    };
    namespace.until(name, "is finished", is_finished).await;
}

async fn until_gone_task(tasks: &Api<DynamicObject>, name: &str) {
    eventually(&format!("{name} is gone"), WAIT_TIMEOUT, async || match tasks.get_opt(name).await {
        Ok(None) => Ok(()),
        other => Err(other),
    })
    .await;
}

#[tokio::test]
async fn finished_jobs_go_with_what_they_own_and_others_stay() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let namespace = cluster.namespace("jobs").await?;
    let release = Release::upgrade(&cluster, REAPER, &values()).await?;
    let one_shot = || json!({"e2e.catena.dev/one-shot": "true"});
    namespace.create(&job("unlabelled", &json!({}), &json!({}))?).await?;
    namespace.create(&job("kept", &one_shot(), &json!({"example.com/keep": ""}))?).await?;
    let gone = namespace.create(&job("gone", &one_shot(), &json!({}))?).await?;
    let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "uid": gone.uid()});
    let config = json!({"metadata": {"name": "owned", "ownerReferences": [owner]}});
    namespace.create(&serde_json::from_value::<ConfigMap>(config)?).await?;

    namespace.until_gone::<Job>("gone").await;
    // A Job orphans its dependents by default.
    namespace.until_collected::<ConfigMap>("owned").await;
    // A Job that is created again runs once more, but not without end, although each one has its own uid in its spec.
    namespace.create(&job("gone", &one_shot(), &json!({}))?).await?;
    namespace.until_event("gone", "CreatedAgain").await;
    for name in ["unlabelled", "kept"] {
        until_finished(&namespace, name).await;
    }
    let left = namespace.api::<Job>().list(&ListParams::default()).await?;
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["gone", "kept", "unlabelled"]);

    // Other settings take effect at run time, and kinds that they omit are left alone.
    let mut others = values();
    others["kinds"][0]["selector"] = json!("e2e.catena.dev/one-shot=maybe");
    release.change(&others).await?;
    let maybe = || json!({"e2e.catena.dev/one-shot": "maybe"});
    namespace.create(&job("first-marker", &maybe(), &json!({}))?).await?;
    namespace.until_gone::<Job>("first-marker").await;
    namespace.create(&job("left-out", &one_shot(), &json!({}))?).await?;
    until_finished(&namespace, "left-out").await;
    namespace.create(&job("second-marker", &maybe(), &json!({}))?).await?;
    namespace.until_gone::<Job>("second-marker").await;
    until_finished(&namespace, "left-out").await;
    release.restore().await
}

#[tokio::test]
async fn a_kind_that_comes_late_is_reaped_and_one_that_is_missing_stops_no_other() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let namespace = cluster.namespace("late").await?;
    let process = REAPER.process(&cluster).await?;
    let release = Release::upgrade(&cluster, REAPER, &values()).await?;
    namespace.create(&job("first", &json!({"e2e.catena.dev/one-shot": "true"}), &json!({}))?).await?;
    namespace.until_gone::<Job>("first").await;
    assert_eq!(process.readiness().await?.0, 200);

    let crds = cluster.all::<CustomResourceDefinition>();
    crds.create(&PostParams::default(), &crd()?).await?;
    let tasks = tasks(&cluster, &namespace);
    let finished = json!({"state": "Failed", "lastTransition": Timestamp::now()});
    let create = async |name: &str, status: &Value| {
        let task = task(name, status).map_err(|error| format!("{error:#}"))?;
        tasks.create(&PostParams::default(), &task).await.map_err(|error| error.to_string())
    };
    eventually("the kind is served", WAIT_TIMEOUT, async || create("finished", &finished).await).await;
    create("running", &json!({"state": "InProgress"})).await.map_err(anyhow::Error::msg)?;
    create("new", &Value::Null).await.map_err(anyhow::Error::msg)?;
    until_gone_task(&tasks, "finished").await;
    let left = tasks.list(&ListParams::default()).await?;
    assert_eq!(left.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["new", "running"]);

    crds.delete(CRD, &DeleteParams::default()).await?;
    namespace.create(&job("second", &json!({"e2e.catena.dev/one-shot": "true"}), &json!({}))?).await?;
    namespace.until_gone::<Job>("second").await;
    assert_eq!(process.readiness().await?.0, 200);
    assert_eq!(REAPER.process(&cluster).await?.pid, process.pid, "it was restarted");

    // Once more: the watch of a removed kind returns with it.
    eventually("the definition is gone", WAIT_TIMEOUT, async || match crds.get_opt(CRD).await {
        Ok(None) => Ok(()),
        other => Err(other),
    })
    .await;
    crds.create(&PostParams::default(), &crd()?).await?;
    eventually("the kind is served again", WAIT_TIMEOUT, async || create("again", &finished).await).await;
    until_gone_task(&tasks, "again").await;
    crds.delete(CRD, &DeleteParams::default()).await?;
    release.restore().await
}

#[tokio::test]
async fn the_rights_are_enough_and_not_more() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let asks = async |verb: &str, resource: &str| -> Result<bool> {
        let who = REAPER.user();
        let arguments = ["auth", "can-i", verb, resource, "--as", &who, "--all-namespaces"];
        // It fails if the answer is no.
        Ok(kubectl_with_input(&arguments, "").await?.0)
    };
    // The chart of basic-deployment-controller grants those on the kinds that describe themselves.
    let mut listed = values();
    listed["discovery"] = json!({"enabled": false});
    let release = Release::upgrade(&cluster, REAPER, &listed).await?;
    for verb in ["list", "watch", "patch", "delete"] {
        ensure!(asks(verb, "jobs.batch").await?, "{verb} jobs.batch");
        // A kind that is no longer configured.
        ensure!(!asks(verb, "basicdeploymentrestarts.catena.dev").await?, "{verb}");
    }
    for verb in ["get", "create", "update", "deletecollection", "*"] {
        ensure!(!asks(verb, "jobs.batch").await?, "{verb} jobs.batch");
    }
    for resource in ["pods", "secrets", "configmaps", "basicdeployments.catena.dev", "*"] {
        for verb in ["get", "list", "watch", "delete"] {
            ensure!(!asks(verb, resource).await?, "{verb} {resource}");
        }
    }
    release.restore().await?;
    for (verb, may) in [("delete", true), ("list", true), ("patch", true), ("update", false)] {
        ensure!(asks(verb, "basicdeploymentrollbacks.catena.dev").await? == may, "{verb}");
    }
    // After a slash, kubectl takes `status` for the name of an object.
    let status = ["auth", "can-i", "patch", "basicdeploymentrestarts.catena.dev", "--subresource=status"];
    let as_reaper = ["--as", &REAPER.user(), "--all-namespaces"];
    ensure!(!kubectl_with_input(&[&status[..], &as_reaper[..]].concat(), "").await?.0, "patch its status");
    ensure!(!asks("delete", "jobs.batch").await?);
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_the_settings_leaves_those_from_before_in_force() -> Result<()> {
    let cluster = Cluster::changing(&[REAPER]).await?;
    let namespace = cluster.namespace("mistake").await?;
    let release = Release::upgrade(&cluster, REAPER, &values()).await?;
    namespace.create(&job("first", &json!({"e2e.catena.dev/one-shot": "true"}), &json!({}))?).await?;
    namespace.until_gone::<Job>("first").await;
    let mut broken = values();
    broken["kinds"][0]["expire"]["ttlSeconds"] = json!("object.spec.");
    release.change(&broken).await?;
    let process = REAPER.process(&cluster).await?;
    eventually("the mistake is counted", WAIT_TIMEOUT, async || {
        let metrics = process.metrics().await.map_err(|error| format!("{error:#}"))?;
        let line = metrics.lines().find(|line| line.starts_with("catena_settings_errors_total"));
        match line.and_then(|line| line.rsplit(' ').next()) {
            Some(count) if count != "0" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    namespace.create(&job("second", &json!({"e2e.catena.dev/one-shot": "true"}), &json!({}))?).await?;
    namespace.until_gone::<Job>("second").await;
    release.restore().await
}

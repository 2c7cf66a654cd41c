//! Children of other kinds than BasicReplicaSet, by the values under examples/children: they are created, scaled, rolled out,
//! restarted, rolled back, orphaned, adopted and deleted, and a version that never serves is never called ready, and its pod is named.

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicDeploymentRollback, BlockedBy};
use e2e::{
    Cluster, DEPLOYMENTS, JobReplicas, Namespace, Release, WAIT_TIMEOUT, another_image, child_example,
    commands, condition, deployment, eventually, image, uids,
};
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    core::{GroupVersionKind, TypeMeta},
    discovery::ApiResource,
};
use serde_json::{Value, json};

/// Nobody can pull it.
const MISSING: &str = "registry.invalid/missing:1";

/// A kind of child.
struct Kind {
    /// The example under examples/children.
    example: &'static str,
    can_restart: bool,
    /// The end of its template, which only the fake nodes need.
    addition: &'static str,
}

const DEPLOYMENT: Kind = Kind { example: "deployment", can_restart: true, addition: "" };
const STATEFUL_SET: Kind = Kind { example: "statefulset", can_restart: true, addition: "" };
const REPLICA_SET: Kind = Kind { example: "replicaset", can_restart: false, addition: "" };
/// The fake nodes would end its pods, as those of other Jobs.
const JOB_REPLICAS: Kind = Kind {
    example: "job-replicas",
    can_restart: true,
    addition: "  podAnnotations: {catena.dev/play: run-on}\n",
};

/// Its values for basic-deployment-controller.
fn values(kind: &Kind) -> Result<Value> {
    let mut values = child_example(kind.example)?;
    let template = &mut values["templates"]["default"];
    *template = format!("{}{}", template.as_str().context("a text")?, kind.addition).into();
    Ok(values)
}

fn image_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.containers.first()?.image.as_deref()
}

async fn change(namespace: &Namespace, spec: Value) -> Result<()> {
    namespace.merge::<BasicDeployment>("web", json!({"spec": spec})).await?;
    Ok(())
}

pub async fn until_serving(namespace: &Namespace, count: usize, image: &str) -> Vec<Pod> {
    namespace.until_ready("web").await;
    let what = format!("{count} pods of {image} serve, and there is no other");
    namespace
        .until_pods(&what, |pods| {
            pods.len() == count && pods.iter().all(|pod| e2e::is_ready(pod) && image_of(pod) == Some(image))
        })
        .await
}

/// A version that nobody can pull is rolled out. Ready is never reported of it, until the deadline has passed and a pod of this
/// version is named.
pub async fn ensure_never_ready(namespace: &Namespace) -> Result<()> {
    change(namespace, json!({"parameters": {"image": MISSING}, "progressDeadlineSeconds": 5})).await?;
    let web = namespace
        .until("web", "has exceeded its deadline, and names the pod", |web: &BasicDeployment| {
            let Some(status) = &web.status else { return false };
            let is_current = status.observed_generation == web.metadata.generation;
            assert!(!(is_current && status.ready), "ready with an image that nobody can pull: {status:#?}");
            is_current
                && status.blocked_by.as_ref().is_some_and(is_missing_image)
                && condition(&status.conditions, "Progressing").is_some_and(|told| told.status == "False")
        })
        .await;
    let name = web.status.and_then(|status| status.blocked_by).map(|blocker| blocker.name);
    let pod = namespace.api::<Pod>().get(&name.unwrap_or_default()).await?;
    assert_eq!(image_of(&pod), Some(MISSING), "another pod is blamed");
    Ok(())
}

fn is_missing_image(blocker: &BlockedBy) -> bool {
    blocker.kind == "Pod" && matches!(blocker.reason.as_str(), "ErrImagePull" | "ImagePullBackOff")
}

/// An autoscaler finds the pods by the scale subresource, and refuses one without a selector.
async fn has_a_scale(namespace: &Namespace, pods: &[Pod]) -> Result<()> {
    let status = namespace.api::<BasicDeployment>().get_scale("web").await?.status.context("a status")?;
    let selector = status.selector.filter(|selector| !selector.is_empty()).context("a selector")?;
    let selected = namespace.api::<Pod>().list(&ListParams::default().labels(&selector)).await?;
    assert_eq!(uids(&selected.items), uids(pods), "{selector}");
    Ok(())
}

/// The same values, with another name of the child.
fn renamed(mut values: Value) -> Value {
    let template = &mut values["templates"]["default"];
    *template =
        template.as_str().unwrap_or_default().replacen("name: {{ name", "name: {{ 'new-' ~ name", 1).into();
    values
}

/// The listed kind of these values.
fn api_resource(values: &Value) -> Result<ApiResource> {
    let text = |field: &str| values["children"][0][field].as_str().context("a text");
    let kind: GroupVersionKind =
        TypeMeta { api_version: text("apiVersion")?.into(), kind: text("kind")?.into() }.try_into()?;
    Ok(ApiResource::from_gvk_with_plural(&kind, text("resource")?))
}

/// The child is orphaned, and adopted by a BasicDeployment of the same name, without a change of its pods.
async fn comes_back(namespace: &Namespace, kind: &ApiResource) -> Result<()> {
    let web = namespace.until_ready("web").await;
    let pods = uids(&namespace.until_ready_pods(4).await);
    let before = orphan_child(namespace, kind).await?;
    let orphan = namespace.api_of(kind).get(&before.name_any()).await?;
    assert!(orphan.owner_references().is_empty(), "{:?}", orphan.owner_references());

    let web = namespace.create(&BasicDeployment::new("web", web.spec)).await?;
    let ready = namespace.until_ready("web").await;
    let after = namespace.api_of(kind).get(&before.name_any()).await?;
    assert_eq!(after.uid(), before.uid(), "it is another child");
    let owners: Vec<_> = after.owner_references().iter().map(|owner| Some(owner.uid.clone())).collect();
    assert_eq!(owners, [web.uid()]);
    assert_eq!(ready.status.and_then(|status| status.child).map(|child| child.uid), after.uid());
    assert_eq!(uids(&namespace.until_ready_pods(4).await), pods, "pods were replaced");
    Ok(())
}

/// What somebody adds to a container is removed, although an apply would leave it there.
async fn loses_what_others_add(namespace: &Namespace) -> Result<()> {
    let children = namespace.api::<Deployment>();
    let before = children.get("web").await?.spec.template;
    let name = &before.spec.as_ref().context("no pod")?.containers[0].name;
    let added = json!({"name": name, "command": ["added"], "env": [{"name": "ADDED", "value": "1"}]});
    let change = json!({"spec": {"template": {"spec": {"containers": [added]}}}});
    children.patch("web", &PatchParams::default(), &Patch::Strategic(change)).await?;
    eventually("the child is as before", WAIT_TIMEOUT, async || {
        let now = children.get("web").await.map_err(|error| error.to_string())?.spec.template;
        if now == before { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await;
    Ok(())
}

async fn lives_with(cluster: &Cluster, release: &Release, kind: &Kind) -> Result<()> {
    release.change(&values(kind)?).await?;
    DEPLOYMENTS.until_ready(cluster).await;
    let namespace = cluster.namespace(kind.example).await?;
    let (one, other) = (image(), another_image());
    namespace.create(&deployment("web", 1)).await?;
    until_serving(&namespace, 1, &one).await;
    ensure_never_ready(&namespace).await?;
    change(&namespace, json!({"parameters": {"image": one}, "progressDeadlineSeconds": 600})).await?;
    until_serving(&namespace, 1, &one).await;

    change(&namespace, json!({"replicas": 4})).await?;
    let serving = until_serving(&namespace, 4, &one).await;
    has_a_scale(&namespace, &serving).await?;
    let good = namespace.until_ready("web").await.status.and_then(|status| status.revision);
    ensure_never_ready(&namespace).await?;
    change(&namespace, json!({"parameters": {"image": other}, "progressDeadlineSeconds": 600})).await?;
    let before = until_serving(&namespace, 4, &other).await;

    let web = namespace.api::<BasicDeployment>().get("web").await?;
    let again = commands::restart(&web, "again");
    namespace.create(&again).await?;
    namespace
        .until("again", "has ended", |again: &BasicDeploymentRestart| {
            let told = commands::condition_of(again, "Succeeded").map(|told| &*told.status);
            told == Some(if kind.can_restart { "True" } else { "False" })
        })
        .await;
    let after = until_serving(&namespace, 4, &other).await;
    assert_eq!(uids(&before).is_disjoint(&uids(&after)), kind.can_restart);

    namespace.create(&commands::rollback(&web, "back", good.unwrap_or_default())).await?;
    namespace
        .until("back", "has succeeded", |back: &BasicDeploymentRollback| {
            commands::condition_of(back, "Succeeded").is_some_and(|told| told.status == "True")
        })
        .await;
    if kind.example == DEPLOYMENT.example {
        loses_what_others_add(&namespace).await?;
    }
    let before = until_serving(&namespace, 4, &one).await;

    release.change(&renamed(values(kind)?)).await?;
    let is_replaced = "all pods are those of the child's new name";
    namespace
        .until_pods(is_replaced, |pods| {
            pods.len() == 4 && pods.iter().all(e2e::is_ready) && uids(&before).is_disjoint(&uids(pods))
        })
        .await;
    comes_back(&namespace, &api_resource(&values(kind)?)?).await?;
    namespace.delete::<BasicDeployment>("web").await?;
    namespace.until_pods("no pod is left", <[Pod]>::is_empty).await;
    Ok(())
}

/// A contract that does not fit the kind is reported by its field, and the child is left alone.
async fn is_told_of_a_breach(cluster: &Cluster, release: &Release) -> Result<()> {
    let mut unfit = values(&DEPLOYMENT)?;
    unfit["children"][0]["contract"]["selector"] = "status.replicas".into();
    release.change(&unfit).await?;
    DEPLOYMENTS.until_ready(cluster).await;
    let namespace = cluster.namespace("breach").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace
        .until("web", "names the output", |web: &BasicDeployment| {
            let status = web.status.as_ref();
            let told = status.and_then(|status| condition(&status.conditions, "Ready"));
            told.is_some_and(|told| {
                told.reason == "ContractBroken" && told.message.contains("contract.selector")
            })
        })
        .await;
    namespace.until_event("web", "ContractBroken").await;
    change(&namespace, json!({"replicas": 3})).await?;
    namespace
        .until("web", "has seen the change", |web: &BasicDeployment| {
            let status = web.status.as_ref();
            status
                .is_some_and(|status| status.observed_generation == web.metadata.generation && !status.ready)
        })
        .await;
    let child = namespace.api::<Deployment>().get("web").await?;
    assert_eq!(child.spec.replicas, Some(1), "it was written to");
    Ok(())
}

async fn live_with(cluster: &Cluster, kinds: &[Kind]) -> Result<()> {
    let release = Release::upgrade(cluster, DEPLOYMENTS, &json!({})).await?;
    for kind in kinds {
        lives_with(cluster, &release, kind).await?;
    }
    is_told_of_a_breach(cluster, &release).await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(cluster).await;
    Ok(())
}

/// Deletes a deployment, and orphans its child of any kind. Returns the child as it was before.
///
/// An object of the same kind is collected before that: the garbage collector discovers new kinds twice a minute, and orphans only
/// dependents that it has seen.
async fn orphan_child(namespace: &Namespace, kind: &ApiResource) -> Result<DynamicObject> {
    let web = namespace.api::<BasicDeployment>().get("web").await?;
    let child = web.status.and_then(|status| status.child).context("it has no child")?;
    let children = namespace.api_of(kind);
    let child = children.get(&child.name).await?;

    let mut garbage = DynamicObject::new("garbage", kind).data(json!({"spec": child.data["spec"]}));
    garbage.data["spec"]["replicas"] = 0.into();
    let mut gone = child.owner_references().first().context("it has no owner")?.clone();
    gone.name = "gone".into();
    gone.uid = "00000000-0000-4000-8000-000000000000".into();
    garbage.owner_references_mut().push(gone);
    children.create(&PostParams::default(), &garbage).await?;
    eventually("the garbage collector knows the kind", 2 * WAIT_TIMEOUT, async || {
        match children.get_opt("garbage").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::orphan()).await?;
    namespace.until_gone::<BasicDeployment>("web").await;
    Ok(child)
}

#[tokio::test]
async fn a_deployment_is_a_child_that_never_lies() -> Result<()> {
    let cluster = Cluster::changing(&[DEPLOYMENTS]).await?;
    live_with(&cluster, &[DEPLOYMENT]).await
}

#[tokio::test]
#[ignore = "it keeps all other tests of basic-deployment-controller waiting"]
async fn stateful_sets_and_replica_sets_are_children_that_never_lie() -> Result<()> {
    let cluster = Cluster::changing(&[DEPLOYMENTS]).await?;
    live_with(&cluster, &[STATEFUL_SET, REPLICA_SET]).await
}

#[tokio::test]
#[ignore = "it keeps all other tests of basic-deployment-controller waiting"]
async fn the_example_of_a_third_party_is_a_child_that_never_lies() -> Result<()> {
    e2e::needs!(HostProcesses);
    let cluster = Cluster::changing(&[DEPLOYMENTS]).await?;
    let _controller = JobReplicas::start(&cluster).await?;
    live_with(&cluster, &[JOB_REPLICAS]).await
}

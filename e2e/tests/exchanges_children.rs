//! A child is exchanged for one of another kind while it serves, within the budget of its BasicDeployment, and back. A kind
//! without a mapped field is told.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicDeploymentRollback, BasicReplicaSet};
use e2e::{
    AuditLog, CHAIN, Cluster, DEPLOYMENTS, Namespace, Recorded, Recording, Release, WAIT_TIMEOUT, catena,
    child_example, commands, condition, deployment, eventually,
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::apps::v1::{Deployment, StatefulSet},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    Resource,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{sync::watch, time::interval};

/// The kinds and templates of an example under examples/children.
fn example(name: &str) -> Result<(Value, Value)> {
    let values = child_example(name)?;
    Ok((values["children"][0].clone(), values["templates"]["default"].clone()))
}

/// Values with a template for each of these examples, beside the default one, and any further kinds.
pub fn values(examples: &[&str], further: &[Value]) -> Result<Value> {
    let mut values = json!({
        "children": [{
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "resource": "basicreplicasets",
        }],
        "templates": {},
    });
    for name in examples {
        let (kind, template) = example(name)?;
        values["children"].as_array_mut().context("a list")?.push(kind);
        values["templates"][name] = template;
    }
    values["children"].as_array_mut().context("a list")?.extend(further.iter().cloned());
    Ok(values)
}

pub async fn change(namespace: &Namespace, spec: Value) -> Result<()> {
    namespace.merge::<BasicDeployment>("web", json!({"spec": spec})).await?;
    Ok(())
}

/// Fails if fewer pods served at any moment.
fn ensure_at_least(least: usize, recording: &Recording) -> Result<()> {
    let Recorded { fewest_ready, made, .. } = recording.so_far();
    println!("at least {fewest_ready} pods served, of {made} in all");
    ensure!(fewest_ready >= least, "only {fewest_ready} of at least {least} pods served");
    Ok(())
}

/// Waits until the child is the only one, and of this kind.
pub async fn until_on<K>(namespace: &Namespace, others: &[&str]) -> Result<()>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    let kind = K::kind(&()).into_owned();
    let is_on = |web: &BasicDeployment| {
        let Some(status) = &web.status else { return false };
        let is_current = status.observed_generation == web.metadata.generation;
        is_current && status.ready && status.child.as_ref().is_some_and(|child| child.kind == kind)
    };
    namespace.until_within(2 * WAIT_TIMEOUT, "web", &format!("serves through a {kind}"), is_on).await;
    for other in others {
        match *other {
            "BasicReplicaSet" => namespace.until_collected::<BasicReplicaSet>("web").await,
            "Deployment" => namespace.until_collected::<Deployment>("web").await,
            _ => namespace.until_collected::<StatefulSet>("web").await,
        }
    }
    Ok(())
}

/// A `BasicDeployment` of four replicas, one more of which may exist and one of which may be missing.
pub fn web() -> BasicDeployment {
    let mut web = deployment("web", 4);
    web.spec.max_surge = IntOrString::Int(1);
    web.spec.max_unavailable = IntOrString::Int(1);
    web
}

async fn rolls_back(namespace: &Namespace) -> Result<()> {
    let web = namespace.api::<BasicDeployment>().get("web").await?;
    namespace.create(&commands::rollback(&web, "back", 0)).await?;
    namespace
        .until_within(2 * WAIT_TIMEOUT, "back", "has succeeded", |back: &BasicDeploymentRollback| {
            commands::condition_of(back, "Succeeded").is_some_and(|told| told.status == "True")
        })
        .await;
    Ok(())
}

#[tokio::test]
async fn a_child_is_exchanged_for_another_kind_and_rolled_back_while_it_serves() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values(&["deployment"], &[])?).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    let namespace = cluster.namespace("exchange").await?;
    namespace.create(&web()).await?;
    namespace.until_ready("web").await;
    let recording = Recording::start(&namespace).await;
    change(&namespace, json!({"template": "deployment"})).await?;
    until_on::<Deployment>(&namespace, &["BasicReplicaSet"]).await?;
    rolls_back(&namespace).await?;
    until_on::<BasicReplicaSet>(&namespace, &["Deployment"]).await?;
    ensure_at_least(3, &recording)?;
    drop(recording);

    change(
        &namespace,
        json!({"template": "deployment", "replicas": 2, "parameters": {"image": e2e::another_image()}}),
    )
    .await?;
    until_on::<Deployment>(&namespace, &["BasicReplicaSet"]).await?;
    is_shown_while_it_serves(&namespace).await?;
    is_not_left_behind(&cluster, &namespace, &release).await?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}

/// The kubectl plugin shows a former child beside one that never serves, although the status names only the new one.
async fn is_shown_while_it_serves(namespace: &Namespace) -> Result<()> {
    let spec = |template: &str, image: &str| json!({"template": template, "parameters": {"image": image}});
    change(namespace, spec("default", "registry.invalid/missing:1")).await?;
    eventually("both children are in the tree", WAIT_TIMEOUT, async || {
        let web = namespace.api::<BasicDeployment>().get("web").await;
        let web = web.map_err(|error| json!(error.to_string()))?;
        let child = web.status.and_then(|status| status.child).map(|child| child.kind);
        let said = catena(&namespace.name, &["tree", "web", "-o", "json"]).await.and_then(|said| said.json());
        let said = said.map_err(|error| json!(format!("{error:#}")))?;
        let children = said["tree"]["children"].as_array().into_iter().flatten();
        let kinds: Vec<_> = children.filter_map(|child| child["kind"].as_str()).collect();
        let is_shown = ["BasicReplicaSet", "Deployment"].iter().all(|kind| kinds.contains(kind));
        if is_shown && child.as_deref() == Some("BasicReplicaSet") { Ok(()) } else { Err(said) }
    })
    .await;
    change(namespace, spec("deployment", &e2e::another_image())).await?;
    until_on::<Deployment>(namespace, &["BasicReplicaSet"]).await
}

/// A kind that is no longer listed: no other child is created beside one that nobody sees.
async fn is_not_left_behind(cluster: &Cluster, namespace: &Namespace, release: &Release) -> Result<()> {
    release.change(&values(&[], &[])?).await?;
    DEPLOYMENTS.until_ready(cluster).await;
    // The settings have taken effect.
    until_told(namespace, "TemplateNotFound", "deployment").await;
    change(namespace, json!({"template": "default"})).await?;
    until_told(namespace, "KindNotListed", "children").await;
    namespace.until_event("web", "KindNotListed").await;
    assert!(namespace.api::<BasicReplicaSet>().get_opt("web").await?.is_none());
    release.change(&values(&["deployment"], &[])?).await?;
    DEPLOYMENTS.until_ready(cluster).await;
    until_on::<BasicReplicaSet>(namespace, &["Deployment"]).await
}

/// Waits until the condition Ready has this reason, and names a field.
async fn until_told(namespace: &Namespace, reason: &str, field: &str) -> BasicDeployment {
    let is_told = |web: &BasicDeployment| {
        let status = web.status.as_ref();
        let told = status.and_then(|status| condition(&status.conditions, "Ready"));
        told.is_some_and(|told| told.reason == reason && told.message.contains(field))
    };
    namespace.until("web", &format!("says {reason} of {field}"), is_told).await
}

/// The definition of a kind without replicas.
fn without_replicas(namespace: &Namespace, kind: &str, scope: &str) -> Result<CustomResourceDefinition> {
    let singular = kind.to_lowercase();
    let spec = json!({"type": "object", "properties": {"image": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let definition = json!({
        "metadata": namespace.owns(&format!("{singular}s.e2e.catena.dev")),
        "spec": {
            "group": "e2e.catena.dev", "scope": scope,
            "names": {"plural": format!("{singular}s"), "singular": singular, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    Ok(serde_json::from_value(definition)?)
}

#[tokio::test]
async fn a_kind_without_a_mapped_field_is_told_by_the_field_and_harms_no_other_object() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("narrow").await?;
    let definitions = cluster.all::<CustomResourceDefinition>();
    let mut values = values(&[], &[])?;
    for (name, kind, scope) in [("narrow", "Narrow", "Namespaced"), ("wide", "Wide", "Cluster")] {
        definitions.create(&PostParams::default(), &without_replicas(&namespace, kind, scope)?).await?;
        let template = "{apiVersion: e2e.catena.dev/v1, kind: KIND, metadata: {name: {{ name }}}, spec: {image: {{ parameters.image }}}}";
        values["templates"][name] = template.replace("KIND", kind).into();
        let kind = json!({"apiVersion": "e2e.catena.dev/v1", "kind": kind, "resource": format!("{name}s")});
        values["children"].as_array_mut().context("a list")?.push(kind);
    }
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    let log = AuditLog::from_now()?;
    let mut narrow = deployment("web", 2);
    narrow.spec.template = "wide".into();
    namespace.create(&narrow).await?;
    until_told(&namespace, "KindNotNamespaced", "Wide of e2e.catena.dev/v1 is cluster-scoped").await;
    namespace.until_event("web", "KindNotNamespaced").await;
    change(&namespace, json!({"template": "narrow"})).await?;
    namespace.create(&deployment("beside", 1)).await?;
    let told = namespace
        .until("web", "names the field", |web: &BasicDeployment| {
            let status = web.status.as_ref();
            let told = status.and_then(|status| condition(&status.conditions, "Ready"));
            told.is_some_and(|told| told.message.contains("spec.replicas"))
        })
        .await;
    assert!(!told.status.is_some_and(|status| status.ready));
    namespace.until_ready("beside").await;

    // Its definition goes, and with it the child.
    definitions.delete("narrows.e2e.catena.dev", &DeleteParams::default()).await?;
    until_told(&namespace, "KindNotServed", "Narrow").await;
    namespace.until_event("web", "KindNotServed").await;
    namespace.merge::<BasicDeployment>("beside", json!({"spec": {"replicas": 2}})).await?;
    namespace.until_ready("beside").await;
    let requests = log.by(DEPLOYMENTS, &namespace.name)?;
    let written =
        requests.iter().filter(|request| request.is_write() && request.resource == "narrows").count();
    assert!(written <= 3, "{written} writes to a child that drops them");

    change(&namespace, json!({"template": "default"})).await?;
    namespace.until_ready("web").await;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}

/// Switches the template, while the replicas change once a second.
async fn switches_under_load(namespace: &Namespace, template: &str) -> Result<()> {
    let (end, mut is_ended) = watch::channel(false);
    let api = namespace.api::<BasicDeployment>();
    let load = tokio::spawn(async move {
        let mut ticks = interval(Duration::from_secs(1));
        let mut scales = 0_usize;
        loop {
            tokio::select! {
                _ = is_ended.changed() => return Ok::<_, kube::Error>(scales),
                _ = ticks.tick() => {
                    scales += 1;
                    let patch = json!({"spec": {"replicas": 4 + scales % 2}});
                    api.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await?;
                }
            }
        }
    });
    change(namespace, json!({"template": template})).await?;
    let wanted = if template == "default" { "BasicReplicaSet" } else { template };
    let is_alone = async || {
        let status =
            namespace.api::<BasicDeployment>().get("web").await.map_err(|error| error.to_string())?.status;
        let child =
            status.and_then(|status| status.child).context("no child").map_err(|error| error.to_string())?;
        let sets =
            namespace.api::<BasicReplicaSet>().get_opt("web").await.map_err(|error| error.to_string())?;
        let deployments =
            namespace.api::<Deployment>().get_opt("web").await.map_err(|error| error.to_string())?;
        let stateful =
            namespace.api::<StatefulSet>().get_opt("web").await.map_err(|error| error.to_string())?;
        let left = [sets.is_some(), deployments.is_some(), stateful.is_some()];
        let is_wanted = child.kind.eq_ignore_ascii_case(wanted);
        if is_wanted && left.iter().filter(|is_left| **is_left).count() == 1 {
            Ok(())
        } else {
            Err(format!("{}: {left:?}", child.kind))
        }
    };
    eventually(&format!("only the {wanted} is left"), 4 * WAIT_TIMEOUT, is_alone).await;
    end.send_replace(true);
    println!("{template}: {} scales meanwhile", load.await??);
    Ok(())
}

#[tokio::test]
#[ignore = "it keeps all other tests of basic-deployment-controller waiting"]
async fn kinds_are_switched_there_and_back_under_a_load_of_scales() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let release =
        Release::upgrade(&cluster, DEPLOYMENTS, &values(&["deployment", "statefulset"], &[])?).await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    let namespace = cluster.namespace("switch").await?;
    namespace.create(&web()).await?;
    namespace.until_ready("web").await;
    let log = e2e::has(&[e2e::Need::AuditLog]).then(AuditLog::from_now).transpose()?;
    let recording = Recording::start(&namespace).await;
    for template in ["deployment", "statefulset", "default", "statefulset", "deployment", "default"] {
        let before = log.as_ref().map(|log| log.by(DEPLOYMENTS, &namespace.name)).transpose()?;
        switches_under_load(&namespace, template).await?;
        if let (Some(log), Some(before)) = (&log, before) {
            let after = log.by(DEPLOYMENTS, &namespace.name)?;
            println!("to {template}: {} requests of the controller", after.len() - before.len());
        }
    }
    ensure_at_least(3, &recording)?;
    release.restore().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}

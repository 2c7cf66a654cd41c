//! A mistake is refused where it is made, or reported on the object: the field, the problem, the remedy. It costs
//! little, and does not affect others.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicReplicaSet};
use e2e::{
    AuditLog, CHAIN, COLLECTION_TIMEOUT, Cluster, DEPLOYMENTS, Namespace, Pace, REPLICA_SETS, Release, Tally,
    WAIT_TIMEOUT, condition, deployment, is_true, kubectl_with_input, replica_set, shipped_template,
};
use k8s_openapi::{
    api::core::v1::{Pod, ResourceQuota, Secret},
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

/// Waits until a `BasicDeployment` is stalled for a reason, and returns the condition.
async fn until_stalled(namespace: &Namespace, name: &str, reason: &str) -> Result<Condition> {
    let what = format!("is stalled by {reason}");
    let stalled = namespace
        .until(name, &what, |deployment: &BasicDeployment| {
            deployment.status.as_ref().is_some_and(|status| {
                let stalled = condition(&status.conditions, "Stalled");
                stalled.is_some_and(|stalled| stalled.status == "True" && stalled.reason == reason)
            })
        })
        .await;
    let status = stalled.status.context("status")?;
    ensure!(!status.ready && !is_true(&status.conditions, "Ready"), "ready though it is stalled");
    let blocker = status.blocked_by.context("blockedBy")?;
    ensure!(blocker.reason == reason, "blockedBy says {blocker:?}");
    Ok(condition(&status.conditions, "Stalled").context("Stalled")?.clone())
}

#[tokio::test]
async fn the_api_server_refuses_what_cannot_be_and_names_the_field() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("schema").await?;
    let long = "n".repeat(60);
    for (kind, name, field, value) in [
        ("BasicDeployment", "web", "spec.replicas", "-1"),
        ("BasicDeployment", "web", "spec.replicas", "10001"),
        ("BasicDeployment", "web", "spec.progressDeadlineSeconds", "0"),
        ("BasicDeployment", "web", "spec.progressDeadlineSeconds", "10, minReadySeconds: 10"),
        ("BasicDeployment", "web", "spec.template", "''"),
        ("BasicDeployment", "web", "spec.unknown", "1"),
        ("BasicDeployment", &long, "metadata.name", "1"),
        ("BasicReplicaSet", &long, "metadata.name", "1"),
        ("BasicReplicaSet", "web", "spec.replicas", "-1"),
        ("BasicReplicaSet", "web", "spec.maxSurge", "abc"),
        ("BasicReplicaSet", "web", "spec.maxSurge", "-1"),
        ("BasicReplicaSet", "web", "spec.maxUnavailable", "150%"),
        ("BasicReplicaSet", "web", "spec.maxUnavailable", "0, maxSurge: 0%"),
        ("BasicDeployment", "web", "spec.maxUnavailable", "0%, maxSurge: 0"),
        ("BasicReplicaSet", "web", "spec.minReadySeconds", "-1"),
        ("BasicReplicaSet", "web", "spec.podReplacementPolicy", "Never"),
        ("BasicDeployment", "web", "spec.minReadySeconds", "-1"),
        ("BasicDeployment", "web", "spec.podReplacementPolicy", "Never"),
    ] {
        let spec = match field {
            "metadata.name" => format!("replicas: {value}"),
            field => format!("{}: {value}", field.trim_start_matches("spec.")),
        };
        let yaml = format!(
            "{{apiVersion: {}, kind: {kind}, metadata: {{name: {name}}}, spec: {{{spec}}}}}",
            e2e::GROUP_VERSION
        );
        let apply = ["apply", "--namespace", &namespace.name, "--filename", "-"];
        let (is_taken, said) = kubectl_with_input(&apply, &yaml).await?;
        ensure!(!is_taken, "it was taken: {yaml}: {said}");
        assert!(said.contains(field), "{field}: {value} is refused without its name: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn an_unknown_template_is_answered_with_the_known_ones() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("unknown").await?;
    let mut web = deployment("web", 1);
    web.spec.template = "lost".into();
    namespace.create(&web).await?;

    let message = until_stalled(&namespace, "web", "TemplateNotFound").await?.message;
    for part in ["spec.template", "\"lost\"", "default"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"template": "default"}})).await?;
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_pod_template_whose_name_lacks_the_suffix_is_refused_and_harms_no_other() -> Result<()> {
    let cluster = Cluster::changing(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("suffix").await?;
    let shipped = shipped_template(REPLICA_SETS)?;
    let fixed = shipped.replace("{{ name ~ \"-\" ~ suffix }}", "{{ name }}");
    ensure!(fixed != shipped, "the shipped template has another name by now");
    let release =
        Release::upgrade(&cluster, REPLICA_SETS, &json!({"templates": {"default": shipped, "fixed": fixed}}))
            .await?;
    let mut set = replica_set("fixed", 2);
    set.spec.template = "fixed".into();
    namespace.create(&set).await?;
    namespace.create(&replica_set("web", 2)).await?;

    let set = namespace
        .until("fixed", "is stalled by the name", |set: &BasicReplicaSet| {
            let stalled = set.status.as_ref().and_then(|status| condition(&status.conditions, "Stalled"));
            stalled.is_some_and(|stalled| stalled.reason == "NotUnique")
        })
        .await;
    let conditions = set.status.context("status")?.conditions;
    let stalled = condition(&conditions, "Stalled").context("Stalled")?;
    assert!(stalled.message.contains("suffix"), "{}", stalled.message);
    namespace.until_set_ready("web").await;
    let pods = namespace.until_ready_pods(2).await;
    assert!(pods.iter().all(|pod| pod.name_any().starts_with("web-")), "{:?}", e2e::names(&pods));
    release.restore().await
}

#[tokio::test]
async fn a_parameter_cannot_make_another_request_of_a_childs_name_and_harms_no_other() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("names").await?;
    let odd = [("endless", "?watch=true"), ("dry", "shared?dryRun=All"), ("above", "../x"), ("all", "..")];
    for (name, given) in odd {
        let mut deployment = deployment(name, 1);
        deployment.spec.template = "named".into();
        deployment.spec.parameters.insert("name".into(), given.into());
        namespace.create(&deployment).await?;
    }
    namespace.create(&deployment("web", 1)).await?;

    for (name, given) in odd {
        let message = until_stalled(&namespace, name, "TemplateFailed").await?.message;
        for part in ["metadata.name", given] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }
    namespace.until_ready("web").await;
    let sets = namespace.api::<BasicReplicaSet>().list(&ListParams::default()).await?;
    assert!(sets.iter().all(|set| set.name_any() == "web"), "{sets:?}");
    let mended = json!({"spec": {"parameters": {"name": "above-x"}}});
    namespace.merge::<BasicDeployment>("above", mended).await?;
    namespace.until_ready("above").await;
    Ok(())
}

#[tokio::test]
async fn a_missing_parameter_is_named() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("missing").await?;
    let mut web = deployment("web", 1);
    let image = web.spec.parameters.remove("image");
    namespace.create(&web).await?;

    let message = until_stalled(&namespace, "web", "ParameterMissing").await?.message;
    assert!(message.contains("spec.parameters.image"), "{message}");
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"image": image}}})).await?;
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_parameter_cannot_change_what_is_rendered() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("escape").await?;
    let attempts = BTreeMap::from([
        ("env.LINES", "a\nkind: Secret\nmetadata:\n  name: stolen\n---\nkind: Secret\n"),
        ("env.QUOTES", "\"'`\\\" }}]], {{ uid }} {% raw %} #"),
        ("env.ANCHOR", "&a *a !!binary |\n  x"),
        ("env.EMPTY", ""),
        ("env.NUMBER", "0x10"),
        ("env.YES", "yes"),
        // Line breaks and controls for YAML, but not for JSON.
        ("env.BREAKS", "\u{2028}\u{85}\u{feff}\u{1}end \u{2029} x \u{85} y"),
        ("env.CONTROLS", "\u{7f}\u{80}\u{9b}\u{fffe}\u{ffff}"),
    ]);
    let mut web = deployment("web", 1);
    for (name, value) in &attempts {
        web.spec.parameters.insert((*name).into(), (*value).into());
    }
    namespace.create(&web).await?;
    namespace.until_ready("web").await;

    let set = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!(set.spec.parameters, web.spec.parameters, "the child has other parameters");
    let pods = namespace.until_ready_pods(1).await;
    let containers = &pods[0].spec.as_ref().context("spec")?.containers;
    assert_eq!(containers.len(), 1);
    let variables = containers[0].env.iter().flatten();
    let seen: BTreeMap<_, _> = variables
        .map(|variable| (format!("env.{}", variable.name), variable.value.clone().unwrap_or_default()))
        .collect();
    let mut expected = web.spec.parameters.clone();
    expected.remove("image");
    assert_eq!(seen, expected);
    let secrets = namespace.api::<Secret>().list(&ListParams::default()).await?;
    assert!(secrets.items.is_empty(), "a Secret was made");
    Ok(())
}

#[tokio::test]
async fn a_pod_that_the_server_refuses_is_reported_with_its_words() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("invalid").await?;
    let mut web = deployment("web", 1);
    web.spec.parameters.insert("memory".into(), "plenty".into());
    namespace.create(&web).await?;

    let message = until_stalled(&namespace, "web", "Invalid").await?.message;
    for part in ["web", "spec.containers[0].resources.", "\"plenty\""] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"memory": "32Mi"}}})).await?;
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_parameter_of_a_wrong_type_is_named() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("type").await?;
    let mut web = deployment("web", 1);
    web.spec.parameters.insert("port".into(), "abc".into());
    namespace.create(&web).await?;

    let message = until_stalled(&namespace, "web", "TemplateFailed").await?.message;
    for part in ["spec.parameters.port", "\"abc\""] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    // The server refuses this one: no port is that high.
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"port": "70000"}}})).await?;
    let message = until_stalled(&namespace, "web", "Invalid").await?.message;
    for part in ["spec.containers[0].ports[0].containerPort", "70000"] {
        assert!(message.contains(part), "{part} is not in: {message}");
    }
    Ok(())
}

#[tokio::test]
async fn a_child_of_somebody_else_is_left_alone() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("taken").await?;
    let mut foreign = replica_set("web", 2);
    foreign.labels_mut().insert("whose".into(), "somebodys".into());
    namespace.create(&foreign).await?;
    let before = namespace.until_set_ready("web").await;

    namespace.create(&deployment("web", 3)).await?;
    let message = until_stalled(&namespace, "web", "ChildNotOwned").await?.message;
    assert!(message.contains("BasicReplicaSet \"web\""), "{message}");
    let after = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!((after.spec, after.metadata.labels), (before.spec, before.metadata.labels));
    assert_eq!(after.metadata.owner_references, before.metadata.owner_references);
    assert_eq!(after.metadata.annotations, before.metadata.annotations);

    // No watch shows an object that is not ours, so it is looked up again after a time.
    namespace.delete::<BasicReplicaSet>("web").await?;
    namespace.until_ready("web").await;
    let are = |pods: &[Pod]| pods.len() == 3 && pods.iter().all(e2e::is_ready);
    namespace.until_pods_within(COLLECTION_TIMEOUT, "those of the other one are collected", are).await;
    Ok(())
}

#[tokio::test]
async fn a_used_up_quota_is_named_costs_little_and_harms_nobody_else() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let (namespace, elsewhere) = (cluster.namespace("quota").await?, cluster.namespace("elsewhere").await?);
    let pace = Pace::start(&elsewhere).await?;
    elsewhere.create(&deployment("calm", 3)).await?;
    elsewhere.until_ready("calm").await;
    let calm = pace.elapsed();
    namespace.limit("two-pods", json!({"pods": "2"})).await?;
    let log = AuditLog::from_now()?;
    namespace.create(&deployment("web", 20)).await?;

    let blocked = namespace
        .until("web", "names the quota", |web: &BasicDeployment| {
            let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
            blocker.is_some_and(|blocker| blocker.reason == "QuotaExceeded")
        })
        .await;
    let message = blocked.status.and_then(|status| status.blocked_by).context("blockedBy")?.message;
    assert!(message.contains("two-pods"), "{message}");
    namespace.until_ready_pods(2).await;

    let (started, pace) = (Instant::now(), Pace::start(&elsewhere).await?);
    elsewhere.create(&deployment("web", 3)).await?;
    elsewhere.until_ready("web").await;
    let took = pace.elapsed();
    assert!(took < 5 * calm.max(Duration::from_secs(2)), "others wait for it: {took:?} instead of {calm:?}");

    // Two more attempts: after 5 s to 6 s, and 10 s to 12 s later.
    sleep_until(started + Duration::from_secs(20)).await;
    let requests = log.by(REPLICA_SETS, &namespace.name)?;
    let refused =
        requests.iter().filter(|request| request.is("create", "pods") && request.code == 403).count();
    assert!((1..=8).contains(&refused), "{refused} creates in vain: {:?}", Tally::of(&requests));

    namespace.delete::<ResourceQuota>("two-pods").await?;
    namespace.until_ready_within(3 * WAIT_TIMEOUT, "web").await;
    namespace.until_ready_pods(20).await;
    Ok(())
}

#[tokio::test]
async fn nothing_is_hot_after_a_mistake() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("hot").await?;
    let mut lost = deployment("lost", 1);
    lost.spec.template = "lost".into();
    let mut missing = deployment("missing", 1);
    missing.spec.parameters.clear();
    let mut invalid = deployment("invalid", 1);
    invalid.spec.parameters.insert("memory".into(), "plenty".into());
    let taken = replica_set("taken", 1);
    namespace.create(&taken).await?;
    for deployment in [&lost, &missing, &invalid, &deployment("taken", 2)] {
        namespace.create(deployment).await?;
    }
    until_stalled(&namespace, "lost", "TemplateNotFound").await?;
    until_stalled(&namespace, "missing", "ParameterMissing").await?;
    until_stalled(&namespace, "invalid", "Invalid").await?;
    until_stalled(&namespace, "taken", "ChildNotOwned").await?;

    let log = AuditLog::from_now()?;
    sleep_until(Instant::now() + Duration::from_secs(20)).await;
    for controller in [DEPLOYMENTS, REPLICA_SETS] {
        let requests = log.by(controller, &namespace.name)?;
        let tally = Tally::of(&requests);
        println!("{}: {tally:?}", controller.name());
        // Four mistakes, each retried after 5, 10, 20, … s: a read or a write, and an Event.
        assert!(requests.len() <= 16, "{} asks too often: {tally:?}", controller.name());
    }
    let pods = namespace.api::<Pod>().list(&ListParams::default()).await?;
    assert!(pods.iter().all(|pod| pod.name_any().starts_with("taken-")), "{:?}", e2e::names(&pods.items));
    Ok(())
}

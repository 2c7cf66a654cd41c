//! kubectl catena why names the root of a problem, and the remedy.

use anyhow::{Context, Result};
use catena_api::{BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef};
use e2e::{
    CHAIN, Cluster, Namespace, REPLICA_SETS, Release, WAIT_TIMEOUT, deployment, eventually, explained,
    replica_set, succeeds, until_root_cause,
};
use k8s_openapi::api::{
    admissionregistration::v1::{
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
    },
    core::v1::ConfigMap,
};
use kube::{ResourceExt, api::PostParams};
use serde_json::{Value, json};

/// Waits until new objects are younger than a command by the API server's clock.
async fn until_another_second(namespace: &Namespace, command: &str) -> Result<()> {
    let created = namespace.api::<BasicDeploymentRestart>().get(command).await?.creation_timestamp();
    let created = created.context("creationTimestamp")?.0;
    eventually("a second has passed", WAIT_TIMEOUT, async || {
        let age = jiff::Timestamp::now().duration_since(created);
        if age.as_secs() >= 1 { Ok(()) } else { Err(age) }
    })
    .await;
    Ok(())
}

#[tokio::test]
async fn why_names_the_pod_that_blocks_and_what_to_do() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-pod").await?;
    let mut image = deployment("image", 3);
    image.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    let mut large = deployment("large", 2);
    large.spec.parameters.insert("cpu".into(), "100000".into());
    namespace.create(&image).await?;
    namespace.create(&large).await?;

    let answer = until_root_cause(&namespace.name, "image", "ImagePullBackOff").await;
    assert_eq!(answer["rootCause"]["object"]["kind"], "Pod");
    let evidence: Vec<_> =
        answer["evidence"].as_array().context("evidence")?.iter().map(|one| &one["kind"]).collect();
    assert_eq!(evidence, ["Pod", "BasicReplicaSet", "BasicDeployment"]);
    let text = explained(&namespace.name, &["image"]).await?.out;
    assert!(text.starts_with("BasicDeployment/image is not ready: Pod/image-"), "{text}");
    assert!(text.contains("What to do: correct the image"), "{text}");
    assert!(!text.contains('\u{1b}'), "colours without a terminal: {text}");

    let answer = until_root_cause(&namespace.name, "large", "Unschedulable").await;
    assert!(answer["rootCause"]["message"].to_string().contains("Insufficient cpu"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn why_names_each_mistake_where_it_was_made() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-mistakes").await?;
    let mut lost = deployment("lost", 1);
    lost.spec.template = "lost".into();
    let mut missing = deployment("missing", 1);
    missing.spec.parameters.clear();
    let mut invalid = deployment("invalid", 1);
    invalid.spec.parameters.insert("memory".into(), "plenty".into());
    namespace.create(&replica_set("taken", 1)).await?;
    for deployment in [&lost, &missing, &invalid, &deployment("taken", 2)] {
        namespace.create(deployment).await?;
    }
    for (name, reason, kind) in [
        ("lost", "TemplateNotFound", "BasicDeployment"),
        ("missing", "ParameterMissing", "BasicReplicaSet"),
        ("invalid", "Invalid", "BasicReplicaSet"),
        ("taken", "ChildNotOwned", "BasicDeployment"),
    ] {
        let answer = until_root_cause(&namespace.name, name, reason).await;
        assert_eq!(answer["rootCause"]["object"]["kind"], kind, "{answer}");
        assert!(answer["rootCause"]["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn why_names_a_used_up_quota() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-quota").await?;
    namespace.limit("two-pods", json!({"pods": "2"})).await?;
    namespace.create(&deployment("web", 5)).await?;
    let answer = until_root_cause(&namespace.name, "web", "QuotaExceeded").await;
    assert!(answer["sentence"].to_string().contains("ResourceQuota (two-pods)"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn why_names_a_finalizer_and_who_holds_it() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-held").await?;
    let map: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "kept", "finalizers": ["example.com/cleanup"]}}))?;
    let params = PostParams { field_manager: Some("example-operator".into()), ..PostParams::default() };
    namespace.api::<ConfigMap>().create(&params, &map).await?;
    namespace.delete::<ConfigMap>("kept").await?;

    let answer = until_root_cause(&namespace.name, "configmap/kept", "HeldByFinalizer").await;
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("example.com/cleanup") && sentence.contains("example-operator"), "{sentence}");
    let tree = succeeds(&namespace.name, &["tree", "configmap", "kept"]).await?.out;
    assert!(tree.contains("finalizer example.com/cleanup (held by example-operator)"), "{tree}");
    namespace.merge::<ConfigMap>("kept", json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

#[tokio::test]
async fn why_names_a_controller_that_does_not_run() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing(&CHAIN).await?;
    let namespace = cluster.namespace("why-alone").await?;
    let process = REPLICA_SETS.until_ready(&cluster).await;
    let release = Release::upgrade(&cluster, REPLICA_SETS, &json!({"replicas": 0})).await?;
    eventually("it has ended", WAIT_TIMEOUT, async || match process.resident() {
        Err(_) => Ok(()),
        Ok(_) => Err("it still runs"),
    })
    .await;
    namespace.create(&deployment("web", 1)).await?;
    let answer = until_root_cause(&namespace.name, "web", "ControllerNotRunning").await;
    assert_eq!(answer["rootCause"]["object"]["kind"], "BasicReplicaSet", "{answer}");
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("no basic-replicaset-controller is running"), "{sentence}");
    release.restore().await?;
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn why_and_tree_show_commands_that_wait() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-command").await?;
    let spec = BasicDeploymentRestartSpec {
        target_ref: TargetRef { name: "nobody".into(), namespace: None },
        ..BasicDeploymentRestartSpec::default()
    };
    namespace.create(&BasicDeploymentRestart::new("lost", spec)).await?;
    let answer = until_root_cause(&namespace.name, "basicdeploymentrestart/lost", "TargetNotFound").await;
    assert!(answer["sentence"].to_string().contains("BasicDeployment/nobody"), "{answer}");

    let mut web = deployment("web", 2);
    web.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    namespace.create(&web).await?;
    until_root_cause(&namespace.name, "web", "ImagePullBackOff").await;
    succeeds(&namespace.name, &["restart", "web", "--name", "first"]).await?;
    let blocked = until_root_cause(&namespace.name, "basicdeploymentrestart/first", "ImagePullBackOff").await;
    assert_eq!(blocked["rootCause"]["object"]["kind"], "Pod", "{blocked}");
    // Objects of the same second are ordered only by their uids.
    until_another_second(&namespace, "first").await?;
    succeeds(&namespace.name, &["restart", "web", "--name", "second"]).await?;
    // The obstacle of the older command is the one of this command, too, and the way to it is shown.
    let queued = until_root_cause(&namespace.name, "basicdeploymentrestart/second", "ImagePullBackOff").await;
    assert!(queued["sentence"].to_string().contains("is not finished: Pod/web-"), "{queued}");
    assert!(queued["evidence"].to_string().contains("\"first\""), "{queued}");
    let tree = succeeds(&namespace.name, &["tree", "web"]).await?.out;
    assert!(
        tree.contains("BasicDeploymentRestart/first") && tree.contains("BasicDeploymentRestart/second"),
        "{tree}"
    );
    Ok(())
}

/// The pods of one namespace, for admission.
fn pods_of(namespace: &Namespace) -> Value {
    json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace.name}},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    })
}

async fn until_pods_are_refused(namespace: &Namespace) {
    // Within the Pod Security level of the namespace, so that nothing else refuses it.
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"},
        "spec": {
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "main", "image": "probe",
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    });
    let create = ["create", "--namespace", &namespace.name, "--dry-run=server", "--filename", "-"];
    eventually("admission knows", WAIT_TIMEOUT, async || {
        match e2e::kubectl_with_input(&create, &pod.to_string()).await {
            Ok((false, said)) if said.contains("e2e-explains") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn why_names_a_policy_that_refuses_the_pods() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-policy").await?;
    let name = format!("e2e-explains-{}", namespace.name);
    let all = pods_of(&namespace);
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": namespace.owns(&name),
        "spec": {
            "matchConstraints": {"resourceRules": all["rules"]},
            "validations": [{"expression": "false", "message": "no pod is good enough"}],
        },
    }))?;
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": namespace.owns(&name),
        "spec": {
            "policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": all["namespaceSelector"]},
        },
    }))?;
    cluster.all().create(&PostParams::default(), &policy).await?;
    cluster.all().create(&PostParams::default(), &binding).await?;
    until_pods_are_refused(&namespace).await;
    namespace.create(&deployment("web", 1)).await?;
    // The API server answers as for an invalid object.
    let answer = until_root_cause(&namespace.name, "web", "Invalid").await;
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("ValidatingAdmissionPolicy") && sentence.contains(&name), "{sentence}");
    Ok(())
}

#[tokio::test]
async fn why_names_a_webhook_that_does_not_answer() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-webhook").await?;
    let name = format!("e2e-explains-{}", namespace.name);
    let mut webhook = pods_of(&namespace);
    webhook["name"] = "images.e2e-explains.dev".into();
    webhook["clientConfig"] = json!({"url": "https://127.0.0.1:1/"});
    webhook["admissionReviewVersions"] = json!(["v1"]);
    webhook["sideEffects"] = "None".into();
    let configuration: ValidatingWebhookConfiguration =
        serde_json::from_value(json!({"metadata": namespace.owns(&name), "webhooks": [webhook]}))?;
    cluster.all().create(&PostParams::default(), &configuration).await?;
    until_pods_are_refused(&namespace).await;
    namespace.create(&deployment("web", 1)).await?;
    let answer = until_root_cause(&namespace.name, "web", "WriteFailed").await;
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("webhook does not answer (images.e2e-explains.dev)"), "{sentence}");
    Ok(())
}

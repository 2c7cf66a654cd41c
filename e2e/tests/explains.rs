//! kubectl catena says why something does not go on, shows the chain, and issues commands whose end it tells.

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef};
use e2e::{
    BACKUP_BY, Cluster, Namespace, PATIENCE, REPLICA_SETS, Release, Said, catena, catena_as, deployment,
    eventually, protect, replica_set, texts,
};
use k8s_openapi::api::{
    admissionregistration::v1::{
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
    },
    core::v1::{ConfigMap, ResourceQuota},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::{Value, json};

/// Waits until `why` names a reason as the root cause, and gives the answer.
async fn until_explained(namespace: &Namespace, object: &str, reason: &str) -> Value {
    eventually(&format!("why {object} is explained by {reason}"), PATIENCE, async || {
        let said = catena(&namespace.name, &["why", object, "-o", "json"]).await;
        let answer = said.and_then(|said| said.json()).map_err(|error| json!(format!("{error:#}")))?;
        if answer["rootCause"]["reason"] == reason { Ok(answer) } else { Err(answer) }
    })
    .await
}

/// Waits until what is created now is younger than a command, as the API server counts.
async fn until_another_second(namespace: &Namespace, command: &str) -> Result<()> {
    let created = namespace.api::<BasicDeploymentRestart>().get(command).await?.creation_timestamp();
    let created = created.context("creationTimestamp")?.0;
    eventually("a second has passed", PATIENCE, async || {
        let age = jiff::Timestamp::now().duration_since(created);
        if age.as_secs() >= 1 { Ok(()) } else { Err(age) }
    })
    .await;
    Ok(())
}

async fn succeeds(namespace: &Namespace, arguments: &[&str]) -> Result<Said> {
    let said = catena(&namespace.name, arguments).await?;
    ensure!(said.code == 0, "{arguments:?}: {said:?}");
    Ok(said)
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

    let answer = until_explained(&namespace, "image", "ImagePullBackOff").await;
    assert_eq!(answer["rootCause"]["object"]["kind"], "Pod");
    let evidence: Vec<_> =
        answer["evidence"].as_array().context("evidence")?.iter().map(|one| &one["kind"]).collect();
    assert_eq!(evidence, ["Pod", "BasicReplicaSet", "BasicDeployment"]);
    let text = succeeds(&namespace, &["why", "image"]).await?.out;
    assert!(text.starts_with("BasicDeployment/image is not ready: Pod/image-"), "{text}");
    assert!(text.contains("What to do: correct the image"), "{text}");
    assert!(!text.contains('\u{1b}'), "colours without a terminal: {text}");

    let answer = until_explained(&namespace, "large", "Unschedulable").await;
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
        let answer = until_explained(&namespace, name, reason).await;
        assert_eq!(answer["rootCause"]["object"]["kind"], kind, "{answer}");
        assert!(answer["rootCause"]["advice"].as_str().is_some_and(|advice| !advice.is_empty()), "{answer}");
    }
    Ok(())
}

#[tokio::test]
async fn why_names_a_used_up_quota() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("why-quota").await?;
    let quota: ResourceQuota =
        serde_json::from_value(json!({"metadata": {"name": "two-pods"}, "spec": {"hard": {"pods": "2"}}}))?;
    namespace.create(&quota).await?;
    namespace
        .until("two-pods", "is counted", |quota: &ResourceQuota| {
            quota.status.as_ref().is_some_and(|status| status.hard.is_some())
        })
        .await;
    namespace.create(&deployment("web", 5)).await?;
    let answer = until_explained(&namespace, "web", "QuotaExceeded").await;
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

    let answer = until_explained(&namespace, "configmap/kept", "HeldByFinalizer").await;
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("example.com/cleanup") && sentence.contains("example-operator"), "{sentence}");
    let tree = succeeds(&namespace, &["tree", "configmap", "kept"]).await?.out;
    assert!(tree.contains("finalizer example.com/cleanup (held by example-operator)"), "{tree}");
    namespace.merge::<ConfigMap>("kept", json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

#[tokio::test]
async fn why_names_a_controller_that_does_not_run() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::alone().await?;
    let namespace = cluster.namespace("why-alone").await?;
    let process = REPLICA_SETS.until_ready(&cluster).await;
    let release = Release::upgrade(&cluster, REPLICA_SETS, &json!({"replicas": 0})).await?;
    eventually("it has ended", PATIENCE, async || match process.resident() {
        Err(_) => Ok(()),
        Ok(_) => Err("it still runs"),
    })
    .await;
    namespace.create(&deployment("web", 1)).await?;
    let answer = until_explained(&namespace, "web", "ControllerNotRunning").await;
    assert_eq!(answer["rootCause"]["object"]["kind"], "BasicReplicaSet", "{answer}");
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("no basic-replicaset-controller runs"), "{sentence}");
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
    let answer = until_explained(&namespace, "basicdeploymentrestart/lost", "TargetNotFound").await;
    assert!(answer["sentence"].to_string().contains("BasicDeployment/nobody"), "{answer}");

    let mut web = deployment("web", 2);
    web.spec.parameters.insert("image".into(), "registry.invalid/missing:1".into());
    namespace.create(&web).await?;
    until_explained(&namespace, "web", "ImagePullBackOff").await;
    succeeds(&namespace, &["restart", "web", "--name", "first"]).await?;
    let blocked = until_explained(&namespace, "basicdeploymentrestart/first", "ImagePullBackOff").await;
    assert_eq!(blocked["rootCause"]["object"]["kind"], "Pod", "{blocked}");
    // Those that were created in the same second have no order but that of their uids.
    until_another_second(&namespace, "first").await?;
    succeeds(&namespace, &["restart", "web", "--name", "second"]).await?;
    let queued = until_explained(&namespace, "basicdeploymentrestart/second", "Queued").await;
    assert!(queued["sentence"].to_string().contains("BasicDeploymentRestart/first"), "{queued}");
    let tree = succeeds(&namespace, &["tree", "web"]).await?.out;
    assert!(
        tree.contains("BasicDeploymentRestart/first") && tree.contains("BasicDeploymentRestart/second"),
        "{tree}"
    );
    Ok(())
}

#[tokio::test]
async fn a_tree_shows_the_whole_chain_from_any_of_its_objects() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("tree").await?;
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    let pods = namespace.until_ready_pods(3).await;

    let tree = succeeds(&namespace, &["tree", "web"]).await?.out;
    assert!(tree.contains("3 × Pod"), "{tree}");
    let asked = format!("pod/{}", pods[0].name_any());
    let from_below = succeeds(&namespace, &["tree", &asked]).await?.out;
    assert!(from_below.starts_with("OBJECT") && from_below.contains("BasicDeployment/web"), "{from_below}");
    assert!(
        from_below.contains(&format!("Pod/{} ◀", pods[0].name_any())) && from_below.contains("2 × Pod"),
        "{from_below}"
    );
    let alone = succeeds(&namespace, &["tree", &asked, "--below"]).await?.out;
    assert!(!alone.contains("BasicDeployment"), "{alone}");

    let json = succeeds(&namespace, &["tree", "web", "-o", "json"]).await?.json()?;
    let set = &json["tree"]["children"][0];
    assert_eq!(
        (&json["tree"]["state"], &set["kind"]),
        (&json!("Ready"), &json!("BasicReplicaSet")),
        "{json}"
    );
    assert_eq!(set["children"].as_array().map(Vec::len), Some(3), "{json}");
    Ok(())
}

#[tokio::test]
async fn a_command_that_is_waited_for_tells_its_end_by_the_exit_code() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("waits").await?;
    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    let before = e2e::uids(&namespace.until_ready_pods(2).await);

    let said = succeeds(&namespace, &["restart", "web", "--wait", "--timeout", "60s"]).await?;
    assert!(said.out.starts_with("BasicDeploymentRestart/web-restart-"), "{said:?}");
    assert!(said.err.contains("succeeded"), "{said:?}");
    let after = e2e::uids(&namespace.until_ready_pods(2).await);
    assert!(before.is_disjoint(&after), "pods stayed");

    let failed = catena(&namespace.name, &["rollback", "web", "--to-revision", "99", "--wait"]).await?;
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(failed.err.contains("RevisionNotFound"), "{failed:?}");

    let image = json!({"spec": {"parameters": {"image": "registry.invalid/missing:1"}}});
    namespace.merge::<BasicDeployment>("web", image).await?;
    until_explained(&namespace, "web", "ImagePullBackOff").await;
    let late = catena(&namespace.name, &["restart", "web", "--wait", "--timeout", "15s"]).await?;
    assert_eq!(late.code, 2, "{late:?}");
    assert!(late.err.contains("cannot pull its image"), "{late:?}");
    Ok(())
}

#[tokio::test]
async fn a_dry_run_shows_the_command_and_issues_none() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("dry").await?;
    namespace.create(&deployment("web", 1)).await?;
    for place in ["client", "server"] {
        let said =
            succeeds(&namespace, &["rollback", "web", "--to-revision", "3", "--dry-run", place]).await?;
        for part in ["kind: BasicDeploymentRollback", "toRevision: 3", "name: web"] {
            assert!(said.out.contains(part), "{part} is not in: {}", said.out);
        }
    }
    let said =
        succeeds(&namespace, &["run", "bdrestart", "web", "--dry-run", "server", "-o", "json"]).await?;
    assert_eq!(said.json()?["spec"]["targetRef"]["name"], "web");
    let refused =
        catena(&namespace.name, &["run", "bdrestart", "web", "--set", "nonsense=1", "--dry-run", "server"])
            .await?;
    assert!(refused.code == 1 && refused.err.contains("spec.nonsense"), "{refused:?}");
    let kept = namespace.api::<BasicDeploymentRestart>().list(&kube::api::ListParams::default()).await?;
    assert!(kept.items.is_empty(), "{kept:?}");
    Ok(())
}

#[tokio::test]
async fn the_history_shows_what_a_revision_changed() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("history").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"env.NEW": "1"}}})).await?;
    namespace
        .until("web", "is on revision 2", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| status.revision == Some(2) && status.ready)
        })
        .await;
    let table = succeeds(&namespace, &["history", "web"]).await?.out;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(table.lines().nth(2).is_some_and(|line| line.ends_with("current")), "{table}");
    let diff = succeeds(&namespace, &["history", "web", "--revision", "2"]).await?.out;
    assert!(diff.lines().any(|line| line.starts_with('+') && line.contains("env.NEW")), "{diff}");
    Ok(())
}

#[tokio::test]
async fn what_waits_for_its_backup_is_listed_and_let_go_with_a_reason() -> Result<()> {
    let cluster = Cluster::shared().await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("held").await?;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("precious".into());
    map.metadata.labels = Some(texts! { BACKUP_BY => "fails" });
    namespace.create(&map).await?;
    namespace.until("precious", "is protected", |map: &ConfigMap| !map.finalizers().is_empty()).await;
    let early = catena(&namespace.name, &["release", "configmap/precious", "--reason", "none"]).await?;
    assert!(early.code == 1 && early.err.contains("delete it first"), "{early:?}");
    namespace.delete::<ConfigMap>("precious").await?;

    let held = eventually("the failed backup is listed", 2 * PATIENCE, async || {
        let said = catena(&namespace.name, &["held", "-o", "json"]).await.and_then(|said| said.json());
        let said = said.map_err(|error| json!(format!("{error:#}")))?;
        if said["items"][0]["reason"] == "BackupFailed" { Ok(said) } else { Err(said) }
    })
    .await;
    assert_eq!(held["items"][0]["name"], "precious", "{held}");
    let why = until_explained(&namespace, "configmap/precious", "BackupFailed").await;
    assert!(why["rootCause"]["advice"].to_string().contains("release configmap/precious"), "{why}");
    succeeds(&namespace, &["release", "configmap/precious", "--reason", "a test"]).await?;
    namespace.until_gone::<ConfigMap>("precious").await;
    Ok(())
}

#[tokio::test]
async fn a_kind_is_checked_against_the_replica_contract() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("contract").await?;
    succeeds(&namespace, &["contract", "check", "basicreplicasets.catena.dev"]).await?;
    let other = catena(&namespace.name, &["contract", "check", "deployments.apps", "-o", "json"]).await?;
    assert_eq!(other.code, 1, "{other:?}");
    let fields = other.json()?;
    let active =
        fields["fields"].as_array().context("fields")?.iter().find(|field| field["name"] == "active");
    assert!(active.context("active")?["note"].to_string().contains("status.readyReplicas"), "{fields}");
    succeeds(&namespace, &["contract", "check", "deployments.apps", "--path", "active=status.readyReplicas"])
        .await?;
    Ok(())
}

#[tokio::test]
async fn each_mistake_of_a_user_is_answered_with_what_to_do() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("mistakes").await?;
    namespace.create(&deployment("web", 1)).await?;
    for (arguments, answer) in [
        (&["why", "wbe"][..], "did you mean \"web\"?"),
        (&["tree", "basicdeplyment/web"], "did you mean basicdeployments"),
        (&["status", "--context", "nowhere"], "there is no context \"nowhere\" in the kubeconfig; it has: "),
        (&["status", "--kubeconfig", "/nowhere"], "set KUBECONFIG or --kubeconfig"),
        (&["restart", "pod/web"], "is no BasicDeployment"),
        (&["rollback", "nobody"], "there is no BasicDeployment \"nobody\""),
    ] {
        let said = catena(&namespace.name, arguments).await?;
        assert!(said.code == 1 && said.err.contains(answer), "{arguments:?}: {answer} is not in: {said:?}");
    }
    Ok(())
}

#[tokio::test]
async fn who_may_not_look_is_told_which_right_is_missing() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("rights").await?;
    namespace.create(&deployment("web", 1)).await?;
    let directory = std::env::temp_dir().join(&namespace.name);
    std::fs::create_dir_all(&directory)?;
    let path = directory.join("kubeconfig");
    let whole = e2e::kubectl(&["config", "view", "--raw", "--minify", "--flatten", "-o", "json"]).await?;
    let mut kubeconfig: Value = serde_json::from_str(&whole)?;
    e2e::kubectl(&["--namespace", &namespace.name, "create", "serviceaccount", "nobody"]).await?;
    let token = e2e::kubectl(&["--namespace", &namespace.name, "create", "token", "nobody"]).await?;
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    std::fs::write(&path, kubeconfig.to_string())?;

    let in_namespace = ["--namespace", namespace.name.as_str()];
    let said = catena_as(&path, &[&in_namespace[..], &["status"]].concat()).await?;
    assert!(said.code == 1 && said.err.contains("you may not list basicdeployments"), "{said:?}");
    let binding = ["create", "rolebinding", "viewer", "--clusterrole=view"];
    let account = format!("--serviceaccount={}:nobody", namespace.name);
    e2e::kubectl(&[&in_namespace[..], &binding, &[&account]].concat()).await?;
    // What may not be read is told, and the rest is shown.
    eventually("a viewer sees the tree", PATIENCE, async || {
        let said = catena_as(&path, &[&in_namespace[..], &["why", "web"]].concat())
            .await
            .map_err(|error| error.to_string())?;
        let is_told = said.code == 0 && said.out.contains("the controllers of Catena (no permission)");
        if is_told { Ok(()) } else { Err(format!("{said:?}")) }
    })
    .await;
    std::fs::remove_dir_all(directory)?;
    namespace.api::<BasicDeployment>().delete("web", &DeleteParams::default()).await?;
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
    // What the namespace's Pod Security level takes, so that nobody else refuses it.
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
    eventually("admission knows", PATIENCE, async || {
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
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {"resourceRules": all["rules"]},
            "validations": [{"expression": "false", "message": "no pod is good enough"}],
        },
    }))?;
    let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "policyName": name, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": all["namespaceSelector"]},
        },
    }))?;
    cluster.all().create(&PostParams::default(), &policy).await?;
    cluster.all().create(&PostParams::default(), &binding).await?;
    until_pods_are_refused(&namespace).await;
    namespace.create(&deployment("web", 1)).await?;
    // The API server answers as for an object that is not valid.
    let answer = until_explained(&namespace, "web", "Invalid").await;
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("ValidatingAdmissionPolicy") && sentence.contains(&name), "{sentence}");
    let params = DeleteParams::default();
    cluster.all::<ValidatingAdmissionPolicyBinding>().delete(&name, &params).await?;
    cluster.all::<ValidatingAdmissionPolicy>().delete(&name, &params).await?;
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
        serde_json::from_value(json!({"metadata": {"name": name}, "webhooks": [webhook]}))?;
    cluster.all().create(&PostParams::default(), &configuration).await?;
    until_pods_are_refused(&namespace).await;
    namespace.create(&deployment("web", 1)).await?;
    let answer = until_explained(&namespace, "web", "WriteFailed").await;
    let sentence = answer["sentence"].to_string();
    assert!(sentence.contains("webhook does not answer (images.e2e-explains.dev)"), "{sentence}");
    cluster.all::<ValidatingWebhookConfiguration>().delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

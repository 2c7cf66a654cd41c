//! An object that no client can fully decode affects no other.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::keys;
use e2e::{
    AuditLog, BACKUP_BY, BACKUPS, BINDER, CHAIN, Cluster, DEPLOYMENTS, Namespace, Pace, Request,
    WAIT_TIMEOUT, deployment, eventually, is_protected, kubectl, kubectl_apply, open_kind, protect, succeeds,
    texts,
};
use k8s_openapi::{
    api::{core::v1::ConfigMap, rbac::v1::ClusterRole},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, api::PostParams};
use serde_json::{Value, json};

/// Deeper than Rust's JSON parsers read, and less deep than the API server's limit.
const DEPTH: usize = 300;

/// Sets all times in `managedFields` to one that the API server accepts, and most clients do not.
async fn confuse(namespace: &Namespace, resource: &str, name: &str) -> Result<()> {
    let of = ["--namespace", &namespace.name, resource, name];
    let object = kubectl(&[&["get", "--show-managed-fields", "--output=json"], &of[..]].concat()).await?;
    let object: Value = serde_json::from_str(&object)?;
    let managers = object["metadata"]["managedFields"].as_array().context("nobody manages it")?.len();
    let set = |number| {
        json!({
            "op": "replace", "path": format!("/metadata/managedFields/{number}/time"), "value": "9999-12-31T23:59:59Z",
        })
    };
    // The API server ignores a change of these times alone.
    let changes = match &object["metadata"]["annotations"] {
        Value::Null => {
            json!({"op": "add", "path": "/metadata/annotations", "value": {"example.com/odd": "times"}})
        }
        _ => json!({"op": "add", "path": "/metadata/annotations/example.com~1odd", "value": "times"}),
    };
    let patch = (0..managers).map(set).chain([changes]).collect::<Value>().to_string();
    let patch = format!("--patch={patch}");
    kubectl(&[&["patch", "--type=json", "--field-manager=other", &patch], &of[..]].concat()).await?;
    Ok(())
}

#[tokio::test]
async fn people_are_shown_an_object_with_times_that_no_client_reads_like_all_others() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("odd-shown").await?;
    for name in ["odd", "web"] {
        namespace.create(&deployment(name, 1)).await?;
    }
    for name in ["odd", "web"] {
        namespace.until_ready(name).await;
    }
    let of = ["--namespace", &namespace.name];
    let names = ["get", "controllerrevisions", "--output=jsonpath={.items[*].metadata.name}"];
    for revision in kubectl(&[&names[..], &of].concat()).await?.split_whitespace() {
        confuse(&namespace, "controllerrevisions", revision).await?;
    }
    confuse(&namespace, "basicdeployments", "odd").await?;
    // Of a kind that backup-controller does not protect.
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "odd-held", "finalizers": [keys::BACKUP_FINALIZER]},
    });
    kubectl_apply(&namespace.name, &role.to_string()).await?;
    confuse(&namespace, "roles", "odd-held").await?;
    kubectl(&[&["delete", "role", "odd-held", "--wait=false"], &of[..]].concat()).await?;

    for (arguments, expected) in [
        (&["tree", "odd"][..], "BasicReplicaSet/"),
        (&["history", "odd"], "current"),
        (&["why", "odd"], "BasicDeployment/odd is ready"),
        (&["held", "--all-kinds"], "Role/odd-held"),
    ] {
        let said = succeeds(&namespace.name, arguments).await?;
        ensure!(said.out.contains(expected) && said.err.is_empty(), "{arguments:?}: {said:?}");
    }
    let let_go = json!([{"op": "remove", "path": "/metadata/finalizers"}]).to_string();
    let let_go = format!("--patch={let_go}");
    kubectl(&[&["patch", "role", "odd-held", "--type=json", &let_go], &of[..]].concat()).await?;
    Ok(())
}

/// A field of an object, also of one that this client cannot decode.
async fn field(namespace: &Namespace, resource: &str, name: &str, path: &str) -> Result<String> {
    let output = format!("--output=jsonpath={{{path}}}");
    kubectl(&["get", "--namespace", &namespace.name, resource, name, &output]).await
}

#[tokio::test]
async fn a_basic_deployment_with_times_that_no_client_reads_is_served_like_all_others() -> Result<()> {
    let cluster = Cluster::changing_one_of(&CHAIN, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("odd-times").await?;
    namespace.create(&deployment("odd", 1)).await?;
    namespace.until_ready("odd").await;
    confuse(&namespace, "basicdeployments", "odd").await?;

    // Its first list contains the object.
    let before = DEPLOYMENTS.until_ready(&cluster).await;
    before.kill()?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let scale = ["scale", "basicdeployment/odd", "--replicas=2", "--namespace", &namespace.name];
    kubectl(&scale).await?;
    eventually("the odd one is served too", WAIT_TIMEOUT, async || {
        match field(&namespace, "basicdeployments", "odd", ".status.active").await {
            Ok(active) if active == "2" => Ok(()),
            other => Err(other),
        }
    })
    .await;
    let after = DEPLOYMENTS.until_ready(&cluster).await;
    ensure!(after.pid != before.pid, "it was not restarted");
    Ok(())
}

#[tokio::test]
async fn a_protected_object_with_times_that_no_client_reads_is_backed_up_like_all_others() -> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("odd-held").await?;
    let create = async |name: &str| {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.into());
        map.metadata.labels = Some(texts! { BACKUP_BY => "manifest" });
        namespace.create(&map).await
    };
    create("odd").await?;
    namespace.until("odd", "is protected", |map: &ConfigMap| is_protected(map)).await;
    confuse(&namespace, "configmaps", "odd").await?;

    BACKUPS.until_ready(&cluster).await.kill()?;
    create("web").await?;
    namespace.until("web", "is protected", |map: &ConfigMap| is_protected(map)).await;
    kubectl(&["delete", "configmap", "odd", "--wait=false", "--namespace", &namespace.name]).await?;
    namespace.until_gone::<ConfigMap>("odd").await;
    BACKUPS.until_ready(&cluster).await;
    Ok(())
}

/// The definition of a kind whose objects may contain anything, with this metadata.
fn definition(kind: &str, metadata: &Value) -> Result<CustomResourceDefinition> {
    let mut definition = open_kind("e2e.catena.dev", kind, &["v1"]);
    definition["metadata"] = metadata.clone();
    Ok(serde_json::from_value(definition)?)
}

/// Creates an object of such a kind as soon as it is served, and returns the time.
async fn arrive(namespace: &Namespace, object: &Value) {
    let text = object.to_string();
    eventually("the kind is served", WAIT_TIMEOUT, async || {
        kubectl_apply(&namespace.name, &text).await.map_err(|error| error.to_string())
    })
    .await;
}

/// A value nested deeper than any parser reads.
fn deep() -> Value {
    (0..DEPTH).fold(json!(1), |inner, _| json!({"in": inner}))
}

async fn until_protected(namespace: &Namespace, resource: &str, name: &str) {
    eventually(&format!("{name} is protected"), WAIT_TIMEOUT, async || {
        match field(namespace, resource, name, ".metadata.finalizers").await {
            Ok(finalizers) if finalizers.contains(keys::BACKUP_FINALIZER) => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

#[tokio::test]
async fn a_command_that_is_nested_too_deep_is_told_and_all_others_are_bound() -> Result<()> {
    let cluster = Cluster::changing(&[BINDER]).await?;
    let namespace = cluster.namespace("deep").await?;
    let mut metadata = namespace.owns("dives.e2e.catena.dev");
    metadata["labels"] = json!({keys::COMMAND_KIND: "true"});
    let binding =
        "target: {name: object.spec.map, kinds: [{version: v1, resource: configmaps, kind: ConfigMap}]}";
    metadata["annotations"] = json!({keys::BINDING: binding});
    let mut role = namespace.owns(&namespace.name);
    role["labels"] = json!({"catena.dev/aggregate-to-command-binder": "true"});
    let role: ClusterRole = serde_json::from_value(json!({
        "metadata": role,
        "rules": [
            {"apiGroups": ["e2e.catena.dev"], "resources": ["dives"], "verbs": ["list", "watch", "patch", "delete"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]},
        ],
    }))?;
    cluster.all::<ClusterRole>().create(&PostParams::default(), &role).await?;
    let kinds = cluster.all::<CustomResourceDefinition>();
    kinds.create(&PostParams::default(), &definition("Dive", &metadata)?).await?;
    let mut target = ConfigMap::default();
    target.metadata.name = Some("target".into());
    namespace.create(&target).await?;

    let dive = |name: &str, more: Value| {
        json!({
            "apiVersion": "e2e.catena.dev/v1", "kind": "Dive", "metadata": {"name": name},
            "spec": {"map": "target", "more": more},
        })
    };
    arrive(&namespace, &dive("deep", deep())).await;
    BINDER.until_ready(&cluster).await.kill()?;
    kubectl_apply(&namespace.name, &dive("web", json!(1)).to_string()).await?;
    eventually("web is bound", WAIT_TIMEOUT, async || {
        match field(&namespace, "dives.e2e.catena.dev", "web", ".metadata.ownerReferences[0].name").await {
            Ok(owner) if owner == "target" => Ok(()),
            other => Err(other),
        }
    })
    .await;
    let told = namespace.until_event("deep", "Unreadable").await;
    ensure!(told.contains("recursion limit"), "{told}");
    // The output names the object that is not shown.
    let said = succeeds(&namespace.name, &["tree", "configmap", "target"]).await?;
    ensure!(said.out.contains("Dive/web") && !said.out.contains("Dive/deep"), "{said:?}");
    ensure!(said.err.contains("dives/deep in namespace") && said.err.contains("cannot be read"), "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_protected_object_that_is_too_deep_for_a_backup_is_held_and_can_be_let_go() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("too-deep").await?;
    let kind = "depths.e2e.catena.dev";
    let definition = definition("Depth", &namespace.owns(kind))?;
    cluster.all::<CustomResourceDefinition>().create(&PostParams::default(), &definition).await?;
    let depth = |name: &str, more: Value| {
        json!({
            "apiVersion": "e2e.catena.dev/v1", "kind": "Depth",
            "metadata": {"name": name, "labels": {BACKUP_BY: "manifest"}}, "spec": more,
        })
    };
    arrive(&namespace, &depth("deep", deep())).await;
    arrive(&namespace, &depth("web", json!({"in": 1}))).await;
    for name in ["deep", "web"] {
        until_protected(&namespace, kind, name).await;
        kubectl(&["delete", kind, name, "--wait=false", "--namespace", &namespace.name]).await?;
    }
    let until_gone = async |name: &str| {
        eventually(&format!("{name} is gone"), WAIT_TIMEOUT, async || {
            match field(&namespace, kind, name, ".metadata.name").await {
                Err(gone) if gone.to_string().contains("NotFound") => Ok(()),
                other => Err(other),
            }
        })
        .await;
    };
    until_gone("web").await;
    let said = namespace.until_event("deep", "Unreadable").await;
    ensure!(said.contains("cannot be read completely"), "{said}");
    let uid = field(&namespace, kind, "deep", ".metadata.uid").await?;
    let release = format!("{}={uid} it is not needed", keys::FORCE_RELEASE);
    kubectl(&["annotate", kind, "deep", &release, "--namespace", &namespace.name]).await?;
    until_gone("deep").await;
    Ok(())
}

#[tokio::test]
async fn a_definition_that_is_created_again_is_protected_within_seconds() -> Result<()> {
    /// At the pace of the cluster; it was 11 to 20 seconds.
    const SOON: Duration = Duration::from_secs(6);
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("again-served").await?;
    let name = "relics.e2e.catena.dev";
    let definition = definition("Relic", &namespace.owns(name))?;
    let kinds: Api<CustomResourceDefinition> = cluster.all();
    let relic = |name: &str| {
        json!({
            "apiVersion": "e2e.catena.dev/v1", "kind": "Relic",
            "metadata": {"name": name, "labels": {BACKUP_BY: "manifest"}},
        })
    };
    kinds.create(&PostParams::default(), &definition).await?;
    arrive(&namespace, &relic("first")).await;
    until_protected(&namespace, name, "first").await;
    let log = AuditLog::from_now()?;
    kubectl(&["delete", "crd", name, "--timeout=60s"]).await?;
    let in_vain = |request: &Request| {
        request.user == BACKUPS.user() && request.resource == "relics" && request.code == 404
    };
    log.until_logged(4, in_vain).await;
    kinds.create(&PostParams::default(), &definition).await?;
    arrive(&namespace, &relic("second")).await;
    let pace = Pace::start(&namespace).await?;
    until_protected(&namespace, name, "second").await;
    let took = pace.elapsed();
    ensure!(took < SOON, "it was protected after {took:?}");
    kubectl(&["delete", "crd", name, "--timeout=60s"]).await?;
    Ok(())
}

//! Behaviour that only a real kubelet shows: probes, processes that end, nodes that restart. On a cluster with fake nodes
//! these tests report that they were skipped.

use std::{process::Command, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use catena_api::BasicDeployment;
use e2e::{
    BACKUP_BY, BACKUPS, CHAIN, Cluster, Pace, Release, WAIT_TIMEOUT, alive, backup_example, deployment,
    eventually, is_protected, is_ready, restarts, uids,
};
use k8s_openapi::api::core::v1::{ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod};
use kube::{ResourceExt, api::ListParams};
use serde_json::{Value, json};

/// The workload answers on this port.
const PORT: &str = "8080";

/// Longer than a kubelet takes to update a changed ConfigMap in its pods.
const SYNCED: Duration = Duration::from_secs(150);

/// A `BasicDeployment` whose pods serve a few seconds after their start.
fn serving(replicas: i32, after: u32) -> BasicDeployment {
    let mut web = deployment("web", replicas);
    web.spec.parameters.insert("port".into(), PORT.into());
    web.spec.parameters.insert("env.LISTEN_AFTER".into(), after.to_string());
    web
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

#[tokio::test]
async fn a_probe_that_fails_keeps_a_running_pod_from_counting() -> Result<()> {
    e2e::needs!(RealNodes);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("probe").await?;
    // Longer than one pod may start after the other.
    namespace.create(&serving(2, 45)).await?;
    namespace.until_pods("run, both", |pods| pods.iter().filter(|pod| is_running(pod)).count() == 2).await;
    let web = namespace.api::<BasicDeployment>().get("web").await?;
    let status = web.status.context("status")?;
    assert!(!status.ready && status.active == 0, "{status:?}");
    assert!(!namespace.pods().await?.iter().any(is_ready), "nobody listens yet");
    namespace.until_ready_within(2 * WAIT_TIMEOUT, "web").await;
    // A probe that a busy machine answers late takes readiness back for a moment.
    namespace.until_pods("are ready", |pods| pods.iter().all(is_ready)).await;
    Ok(())
}

#[tokio::test]
async fn a_pod_ends_within_its_grace_period_when_it_is_asked_to() -> Result<()> {
    e2e::needs!(RealNodes);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("grace").await?;
    namespace.create(&serving(3, 0)).await?;
    namespace.until_ready("web").await;
    let pace = Pace::start(&namespace).await?;
    namespace.delete::<BasicDeployment>("web").await?;
    namespace.until_pods("are gone", <[Pod]>::is_empty).await;
    ensure!(pace.elapsed() < Duration::from_secs(25), "the pods took {:?}", pace.elapsed());
    Ok(())
}

/// Values of backup-controller: a Job writes the manifest of the deleted object to a volume.
fn stored(image: &str, namespace: &str) -> Result<Value> {
    let job = backup_example("job")?["backups"]["dump"].clone();
    let template = format!(
        r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: {{{{ "store-" ~ suffix }}}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      securityContext: {{runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {{type: RuntimeDefault}}}}
      containers:
        - name: store
          image: {image}
          imagePullPolicy: Never
          args: [store, {{{{ "/data/" ~ object.data.file }}}}]
          env: [{{name: CONTENT, value: {{{{ manifest }}}}}}]
          volumeMounts: [{{name: data, mountPath: /data}}]
          securityContext: {{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {{drop: [ALL]}}}}
      volumes: [{{name: data, persistentVolumeClaim: {{claimName: backups}}}}]
"#
    );
    Ok(json!({
        "kinds": {"stored": {
            "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "backup": "store",
            "selector": {"matchLabels": {BACKUP_BY: "stored"}},
        }},
        "backups": {"store": {
            "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "namespace": namespace, "template": template,
            "succeeded": job["succeeded"], "failed": job["failed"],
        }},
    }))
}

/// The file on a claim's volume, read on its node.
async fn read(cluster: &Cluster, claim: &PersistentVolumeClaim, file: &str) -> Result<String> {
    let spec = claim.spec.as_ref().context("a claim without spec")?;
    let volume = spec.volume_name.as_deref().context("the claim is not bound")?;
    let volume = cluster.all::<PersistentVolume>().get(volume).await?;
    let source = serde_json::to_value(&volume.spec)?;
    let path = source.pointer("/hostPath/path").or_else(|| source.pointer("/local/path"));
    let path = path.and_then(Value::as_str).context("the volume has no path")?;
    for node in cluster.all::<Node>().list(&ListParams::default()).await? {
        let cat = ["exec", &node.name_any(), "cat", &format!("{path}/{file}")];
        let output = Command::new("docker").args(cat).output()?;
        if output.status.success() {
            return Ok(String::from_utf8(output.stdout)?);
        }
    }
    bail!("no node has {path}/{file}")
}

#[tokio::test]
async fn a_job_stores_a_manifest_on_a_volume_before_its_object_goes() -> Result<()> {
    e2e::needs!(RealNodes);
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    let (namespace, backups) = (cluster.namespace("stored").await?, cluster.namespace("backups").await?);
    let image = std::env::var("CATENA_WORKLOAD_IMAGE")?;
    let release = Release::upgrade(&cluster, BACKUPS, &stored(&image, &backups.name)?).await?;
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "backups"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }))?;
    backups.create(&claim).await?;
    // The kubelet expands `$(NAME)` and `$$` in arguments and variables: each byte of a value has to get through.
    let file = "$(KUBERNETES_SERVICE_HOST)$$(PATH)$$$.json";
    let data = json!({"file": file, "key": "$(KUBERNETES_SERVICE_HOST) $$(KUBERNETES_SERVICE_HOST) $$$(KUBERNETES_SERVICE_HOST) $(NONE) $( $) $$ $"});
    let map = json!({"metadata": {"name": "web", "labels": {BACKUP_BY: "stored"}}, "data": data});
    namespace.create::<ConfigMap>(&serde_json::from_value(map)?).await?;
    // Settings take effect only after the kubelet's next sync.
    namespace.until_within(SYNCED, "web", "is protected", |map: &ConfigMap| is_protected(map)).await;
    namespace.delete::<ConfigMap>("web").await?;
    namespace.until_gone::<ConfigMap>("web").await;

    let claim = backups.api::<PersistentVolumeClaim>().get("backups").await?;
    let manifest: Value = serde_json::from_str(&read(&cluster, &claim, file).await?)?;
    assert_eq!(manifest["data"], data);
    release.restore().await
}

mod alone {
    use super::{
        Cluster, Command, Context, Duration, ResourceExt, Result, alive, ensure, eventually, is_ready,
        restarts, serving, uids,
    };

    #[tokio::test]
    async fn pods_serve_again_after_their_node_was_restarted() -> Result<()> {
        e2e::needs!(RealNodes);
        let cluster = Cluster::alone().await?;
        let namespace = cluster.namespace("node").await?;
        namespace.create(&serving(4, 0)).await?;
        namespace.until_ready("web").await;
        let before = alive(namespace.pods().await?);
        let node = before
            .iter()
            .filter_map(|pod| pod.spec.as_ref()?.node_name.clone())
            .find(|node| node.contains("worker"))
            .context("no pod is on a worker")?;
        let restarted = Command::new("docker").args(["restart", &node]).output()?;
        ensure!(restarted.status.success(), "{}", String::from_utf8_lossy(&restarted.stderr));
        eventually("the pods of the node are ready again", Duration::from_secs(180), async || {
            let pods = alive(namespace.pods().await.map_err(|error| error.to_string())?);
            let back = pods.iter().filter(|pod| is_ready(pod) && restarts(pod) > 0).count();
            if back > 0 && pods.iter().all(is_ready) { Ok(()) } else { Err(format!("{back} came back")) }
        })
        .await;
        namespace.until_ready("web").await;
        let after = alive(namespace.pods().await?);
        assert_eq!(
            uids(&after),
            uids(&before),
            "a restart of a node replaces no pod: {:?}",
            after.iter().map(ResourceExt::name_any).collect::<Vec<_>>()
        );
        Ok(())
    }
}

//! The protection by backup-controller in the suite.

use std::{fmt::Debug, path::Path};

use anyhow::{Context, Result};
use catena_api::{
    BasicDeployment,
    keys::{BACKUP_FINALIZER, FORCE_RELEASE},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Resource, ResourceExt, api::ListParams, core::PartialObjectMeta};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::{BACKUPS, Cluster, Release, WAIT_TIMEOUT, cluster::path_from, eventually};

/// The label whose value selects the kind of backup for an object of the suite.
pub const BACKUP_BY: &str = "e2e.catena.dev/backup-by";

/// The values of an example under examples/backups, such as `manifest`.
pub fn backup_example(name: &str) -> Result<Value> {
    let charts = path_from("CATENA_CHARTS")?;
    let examples = charts.parent().unwrap_or(Path::new(".")).join("examples/backups");
    let text = std::fs::read_to_string(examples.join(format!("{name}.yaml")))?;
    serde_saphyr::from_str(&text).with_context(|| format!("the example {name}"))
}

/// Whether an object is protected.
pub fn is_protected(object: &impl ResourceExt) -> bool {
    object.finalizers().iter().any(|finalizer| finalizer == BACKUP_FINALIZER)
}

/// The change of an object that releases it without a backup.
pub fn force_release(object: &impl ResourceExt) -> Value {
    let release = format!("{} it is only a test", object.uid().unwrap_or_default());
    json!({"metadata": {"annotations": {FORCE_RELEASE: release}}})
}

/// Makes backup-controller protect the objects that the suite labels with [`BACKUP_BY`], until another test changes
/// that, which has to be [changing](Cluster::changing) the controller.
pub async fn protect(cluster: &Cluster) -> Result<()> {
    static IN_TURN: Mutex<()> = Mutex::const_new(());
    let _turn = IN_TURN.lock().await;
    let wanted = protecting()?;
    let now = Release::values(BACKUPS).await?;
    if ["kinds", "backups"].iter().any(|key| now[key] != wanted[key]) {
        Release::set(BACKUPS, &wanted).await?;
        BACKUPS.until_ready(cluster).await;
    }
    Ok(())
}

/// Waits until no protected object of another test is left. Its test may have ended, but its namespace remains for that
/// long, and if that test left it held, until that is noticed and the object is released.
pub async fn until_nothing_is_protected(cluster: &Cluster) {
    eventually("nothing is protected", 3 * WAIT_TIMEOUT, async || {
        let mut left = labelled::<ConfigMap>(cluster).await.map_err(|error| vec![error.to_string()])?;
        left.extend(labelled::<BasicDeployment>(cluster).await.map_err(|error| vec![error.to_string()])?);
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
}

/// The objects of a kind that the suite has labelled for protection.
async fn labelled<K>(cluster: &Cluster) -> kube::Result<Vec<String>>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let all = Api::<K>::all(cluster.client.clone());
    let found = all.list_metadata(&ListParams::default().labels(BACKUP_BY)).await?;
    let title = |object: &PartialObjectMeta<K>| {
        format!("{} {}/{}", K::kind(&()), object.namespace().unwrap_or_default(), object.name_any())
    };
    Ok(found.iter().map(title).collect())
}

/// The values.
pub fn protecting() -> Result<Value> {
    let entry = |api_version: &str, kind: &str, resource: &str, backup: &str| {
        json!({
            "apiVersion": api_version, "kind": kind, "resource": resource, "backup": backup,
            "selector": {"matchLabels": {BACKUP_BY: backup}}, "retryAfter": "2s",
        })
    };
    let of_config_maps = |backup: &str| entry("v1", "ConfigMap", "configmaps", backup);
    let mut released = of_config_maps("released");
    released["backup"] = "fails".into();
    released["onFailure"] = "Release".into();
    released["tries"] = 2.into();
    let mut slow = of_config_maps("slow");
    slow["deadline"] = "3s".into();
    let mut slow_released = slow.clone();
    slow_released["selector"] = json!({"matchLabels": {BACKUP_BY: "slow-released"}});
    slow_released["onFailure"] = "Release".into();
    slow_released["tries"] = 2.into();
    slow_released["retryAfter"] = "1s".into();
    let mut elsewhere = of_config_maps("elsewhere");
    elsewhere["backup"] = "manifest".into();
    elsewhere["namespaceSelector"] = json!({"matchLabels": {BACKUP_BY: "elsewhere"}});
    let manifest = manifest_backup();
    let mut beside = manifest.clone();
    beside["namespace"] = "".into();
    Ok(json!({
        "kinds": {
            "by-manifest": of_config_maps("manifest"),
            "by-job": of_config_maps("succeeds"),
            "by-failing-job": of_config_maps("fails"),
            "by-manifest-beside": of_config_maps("beside"),
            "by-chance": released,
            "by-slow-backup": slow,
            "by-slow-chance": slow_released,
            "by-namespace": elsewhere,
            "basicdeployments": entry("catena.dev/v1alpha1", "BasicDeployment", "basicdeployments", "manifest"),
            "priorityclasses": entry("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "manifest"),
            "gadgets": entry("e2e.catena.dev/v1", "Gadget", "gadgets", "manifest"),
            "relics": entry("e2e.catena.dev/v1", "Relic", "relics", "manifest"),
            "leftovers": entry("e2e.catena.dev/v1", "Leftover", "leftovers", "manifest"),
            "shades": entry("e2e.catena.dev/v1", "Shade", "shades", "fails"),
            "depths": entry("e2e.catena.dev/v1", "Depth", "depths", "manifest"),
        },
        "backups": {
            "manifest": manifest,
            "beside": beside,
            "slow": slow_backup(),
            "succeeds": job("--version"),
            "fails": job("--no-such-option"),
        },
    }))
}

/// A Secret with the manifest as text, which is complete at once.
fn manifest_backup() -> Value {
    let template = r#"
apiVersion: v1
kind: Secret
metadata:
  name: {{ "backup-" ~ suffix }}
type: Opaque
immutable: true
stringData:
  manifest.json: {{ manifest }}
"#;
    json!({
        "apiVersion": "v1", "kind": "Secret", "resource": "secrets", "namespace": "catena-system", "template": template,
        "succeeded": "has(object.data) && 'manifest.json' in object.data",
    })
}

/// A backup that ends when a test ends it.
fn slow_backup() -> Value {
    let template =
        r#"{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ "slow-" ~ suffix }}}, data: {done: "no"}}"#;
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "resource": "configmaps", "namespace": "catena-system",
        "template": template, "succeeded": "object.data.done == 'yes'",
    })
}

/// A Job that runs the controller's own image, with an argument with which it ends at once, successfully or not.
fn job(argument: &str) -> Value {
    let example = backup_example("job").unwrap_or_default();
    let image = std::env::var("CATENA_JOB_IMAGE").unwrap_or_else(|_| "catena/backup-controller:0.1.0".into());
    // If there are fake nodes, only the host runner's node runs it.
    let is_local = std::env::var("CATENA_ON").is_ok_and(|on| on == "local");
    let selector = if is_local { r#"{catena.dev/host-runner: "true"}"# } else { "{}" };
    let template = format!(
        r#"
apiVersion: batch/v1
kind: Job
metadata:
  name: {{{{ "backup-" ~ suffix }}}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      automountServiceAccountToken: false
      nodeSelector: {selector}
      tolerations: [{{key: catena.dev/host-runner, operator: Exists}}]
      securityContext: {{runAsNonRoot: true, runAsUser: 65532, seccompProfile: {{type: RuntimeDefault}}}}
      containers:
        - name: main
          image: {image}
          args: ["{argument}"]
          securityContext: {{allowPrivilegeEscalation: false, capabilities: {{drop: [ALL]}}}}
"#
    );
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "resource": "jobs", "namespace": "catena-system", "template": template,
        "succeeded": example["backups"]["dump"]["succeeded"], "failed": example["backups"]["dump"]["failed"],
    })
}

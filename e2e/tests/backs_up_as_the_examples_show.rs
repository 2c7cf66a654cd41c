//! Each file under examples/backups protects and backs up the objects that it names, with the rights that the chart derives from it.

use anyhow::{Context, Result, ensure};
use catena_api::keys::BACKUP_STATUS;
use e2e::{
    BACKUPS, BINDER, Cluster, ForeignKinds, Namespace, Release, WAIT_TIMEOUT, backup_example, eventually,
    is_protected,
};
use k8s_openapi::api::{
    apps::v1::ControllerRevision,
    batch::v1::Job,
    core::v1::{PersistentVolume, PersistentVolumeClaim},
};
use kube::{
    Api, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
};
use serde_json::{Value, json};

fn api(cluster: &Cluster, namespace: &str, api_version: &str, kind: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(cluster.client.clone(), namespace, &resource)
}

/// An object of the kind of the example's only entry, which its selector matches.
struct Protected {
    api: Api<DynamicObject>,
    name: &'static str,
}

impl Protected {
    /// Installs the example as it stands, creates an object, and waits until it is protected.
    async fn by(
        example: &str,
        cluster: &Cluster,
        namespace: &Namespace,
        release: &Release,
        rest: Value,
    ) -> Result<Self> {
        let values = backup_example(example)?;
        release.change(&values).await?;
        let kinds = values["kinds"].as_object().context("kinds")?;
        ensure!(kinds.len() == 1, "{example} protects {} kinds", kinds.len());
        let kind = kinds.values().next().context("a kind")?;
        let text = |field: &str| kind[field].as_str().unwrap_or_default().to_owned();
        let (name, labels) = ("db", kind["selector"]["matchLabels"].clone());
        let api = api(cluster, &namespace.name, &text("apiVersion"), &text("kind"));
        let mut object = json!({
            "apiVersion": text("apiVersion"), "kind": text("kind"), "metadata": {"name": name, "labels": labels},
        });
        for (field, value) in rest.as_object().context("fields")? {
            object[field] = value.clone();
        }
        let object: DynamicObject = serde_json::from_value(object)?;
        eventually("the kind is served", WAIT_TIMEOUT, async || {
            api.create(&PostParams::default(), &object).await.map_err(|error| error.to_string())
        })
        .await;
        // Settings take effect only after some seconds.
        eventually(&format!("an object is protected by {example}"), 3 * WAIT_TIMEOUT, async || {
            let found = api.get(name).await.map_err(|error| error.to_string())?;
            if is_protected(&found) { Ok(()) } else { Err(e2e::yaml(&found)) }
        })
        .await;
        Ok(Self { api, name })
    }

    async fn delete(&self) -> Result<()> {
        self.api.delete(self.name, &DeleteParams::background()).await?;
        Ok(())
    }

    /// Waits until the object reports that its backup runs.
    async fn until_backing_up(&self) {
        eventually("it says that the backup runs", WAIT_TIMEOUT, async || {
            let held = self.api.get(self.name).await.map_err(|error| error.to_string())?;
            let status = held.annotations().get(BACKUP_STATUS).cloned().unwrap_or_default();
            if status.contains("BackupRunning") { Ok(()) } else { Err(e2e::yaml(&held)) }
        })
        .await;
    }

    async fn until_gone(&self) {
        eventually("it is gone", WAIT_TIMEOUT, async || match self.api.get_opt(self.name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}

/// The only backup.
async fn until_made(backups: &Api<DynamicObject>) -> DynamicObject {
    eventually("there is a backup", WAIT_TIMEOUT, async || {
        let mut found = backups.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        if found.len() == 1 { Ok(found.remove(0)) } else { Err(format!("{} backups", found.len())) }
    })
    .await
}

/// Writes a status in place of the controller of a kind of backups.
async fn say(backups: &Api<DynamicObject>, backup: &DynamicObject, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    backups.patch_status(&backup.name_any(), &PatchParams::default(), &patch).await?;
    Ok(())
}

/// The stored objects of a namespace.
async fn kept(cluster: &Cluster, namespace: &Namespace) -> Result<Vec<Value>> {
    let backups = Api::<ControllerRevision>::namespaced(cluster.client.clone(), "catena-system");
    let found = backups.list(&ListParams::default()).await?.items;
    let objects = found.into_iter().map(|backup| backup.data.0["object"].clone());
    Ok(objects.filter(|object| object["metadata"]["namespace"] == namespace.name).collect())
}

/// The claim of a `StatefulSet`'s first pod, bound to a volume of this node.
async fn claim(cluster: &Cluster, namespace: &Namespace) -> Result<()> {
    let volume: PersistentVolume = serde_json::from_value(json!({
        "metadata": {"name": namespace.name},
        "spec": {
            "capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "hostPath": {"path": "/tmp"},
            "claimRef": {"namespace": namespace.name, "name": "data-db-0"},
        },
    }))?;
    cluster.all::<PersistentVolume>().create(&PostParams::default(), &volume).await?;
    let claim: PersistentVolumeClaim = serde_json::from_value(json!({
        "metadata": {"name": "data-db-0"},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": namespace.name,
            "resources": {"requests": {"storage": "1Mi"}},
        },
    }))?;
    namespace.create(&claim).await?;
    Ok(())
}

/// A `StatefulSet` without pods.
fn stateful() -> Value {
    let labels = json!({"app": "db"});
    json!({"spec": {
        "replicas": 0, "serviceName": "db", "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "db", "image": "db:1"}]}},
    }})
}

#[tokio::test]
async fn a_snapshot_is_waited_for_until_it_can_be_used() -> Result<()> {
    e2e::needs!(NoKindsOfOthers, NobodyElse);
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    let _kinds = ForeignKinds::install(&["volume-snapshot"]).await?;
    let release = Release::upgrade(&cluster, BACKUPS, &backup_example("volume-snapshot")?).await?;
    let namespace = cluster.namespace("snapshot").await?;
    let set = Protected::by("volume-snapshot", &cluster, &namespace, &release, stateful()).await?;
    set.delete().await?;
    let snapshots = api(&cluster, &namespace.name, "snapshot.storage.k8s.io/v1", "VolumeSnapshot");
    let snapshot = until_made(&snapshots).await;
    assert_eq!(snapshot.data["spec"], json!({"source": {"persistentVolumeClaimName": "data-db-0"}}));
    for status in [
        json!({"boundVolumeSnapshotContentName": "content", "readyToUse": false}),
        json!({"error": {"message": "the driver is busy", "time": "2026-01-01T00:00:00Z"}}),
    ] {
        say(&snapshots, &snapshot, status).await?;
        set.until_backing_up().await;
    }
    say(&snapshots, &snapshot, json!({"error": null, "readyToUse": true})).await?;
    set.until_gone().await;
    release.restore().await
}

/// With the definitions of `CloudNativePG`, and without its controller.
#[tokio::test]
async fn a_foreign_backup_is_waited_for_whatever_it_says_until_it_says_completed() -> Result<()> {
    e2e::needs!(NoKindsOfOthers);
    // The tests of the binder use the same foreign kinds.
    let cluster = Cluster::changing(&[BACKUPS, BINDER]).await?;
    let _kinds = ForeignKinds::install(&["cloudnative-pg"]).await?;
    let release = Release::upgrade(&cluster, BACKUPS, &backup_example("foreign-backup")?).await?;
    let namespace = cluster.namespace("postgres").await?;
    let to = json!({"barmanObjectStore": {"destinationPath": "s3://backups"}});
    let spec = json!({"spec": {"instances": 1, "backup": to}});
    let postgres = Protected::by("foreign-backup", &cluster, &namespace, &release, spec).await?;
    postgres.delete().await?;
    let backups = api(&cluster, &namespace.name, "postgresql.cnpg.io/v1", "Backup");
    let backup = until_made(&backups).await;
    assert_eq!(backup.data["spec"], json!({"cluster": {"name": "db"}, "method": "barmanObjectStore"}));
    for phase in ["pending", "running", "walArchivingFailing", "no-such-phase"] {
        say(&backups, &backup, json!({"phase": phase})).await?;
        postgres.until_backing_up().await;
    }
    say(&backups, &backup, json!({"phase": "completed"})).await?;
    postgres.until_gone().await;
    release.restore().await
}

/// On fake nodes, where every program succeeds.
#[tokio::test]
async fn a_job_that_mounts_the_volume_is_waited_for() -> Result<()> {
    e2e::needs!(FakeNodes);
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    let release = Release::upgrade(&cluster, BACKUPS, &backup_example("job")?).await?;
    let namespace = cluster.namespace("dump").await?;
    let set = Protected::by("job", &cluster, &namespace, &release, stateful()).await?;
    set.delete().await?;
    // Its pod waits for the claim.
    set.until_backing_up().await;
    claim(&cluster, &namespace).await?;
    set.until_gone().await;
    let jobs = namespace.api::<Job>().list(&ListParams::default()).await?.items;
    // Where a pod of the set has the volume, another node may not mount it.
    let job = serde_json::to_value(&jobs)?;
    let affinity = job.pointer("/0/spec/template/spec/affinity/podAffinity").context("it goes anywhere")?;
    let term = &affinity["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
    let pod = json!({"matchLabels": {"statefulset.kubernetes.io/pod-name": "db-0"}});
    assert_eq!((&term["labelSelector"], &term["topologyKey"]), (&pod, &json!("kubernetes.io/hostname")));
    let succeeded = jobs.iter().filter_map(|job| job.status.as_ref()?.succeeded).sum::<i32>();
    assert_eq!((jobs.len(), succeeded), (1, 1));
    cluster.all::<PersistentVolume>().delete(&namespace.name, &DeleteParams::default()).await?;
    release.restore().await
}

mod alone {
    use super::{BACKUPS, Cluster, Protected, Release, Result, backup_example, json, kept};

    #[tokio::test]
    async fn manifests_are_kept_at_once() -> Result<()> {
        e2e::needs!(NobodyElse);
        let cluster = Cluster::alone().await?;
        // One of the examples protects every BasicDeployment.

        let release = Release::upgrade(&cluster, BACKUPS, &backup_example("manifest")?).await?;
        // As large as a ConfigMap may be, and full of quotes, which a text in JSON would escape.
        let large = r#"{"a": "b"},"#.repeat(90_000);
        for (example, rest) in [
            ("manifest", json!({"data": {"key": large}})),
            ("basicdeployments", json!({"spec": {"replicas": 0, "parameters": {"image": "db:1"}}})),
        ] {
            let namespace = cluster.namespace(example).await?;
            let object = Protected::by(example, &cluster, &namespace, &release, rest.clone()).await?;
            object.delete().await?;
            object.until_gone().await;
            let kept = kept(&cluster, &namespace).await?;
            assert_eq!(kept.len(), 1, "{kept:?}");
            let field = if example == "manifest" { "/data/key" } else { "/spec/parameters/image" };
            assert_eq!(kept[0].pointer(field), rest.pointer(field));
        }
        release.restore().await
    }
}

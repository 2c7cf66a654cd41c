//! kubectl catena backup and restore: everything is deleted, definitions too, and comes back under new uids; no pod is replaced, and
//! nothing runs twice.

use std::{collections::BTreeMap, path::Path, process::Stdio};

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicDeploymentRollback, BasicReplicaSet, keys};
use e2e::{
    BINDER, Cluster, DEPLOYMENTS, IssuingOperator, Namespace, Release, WAIT_TIMEOUT, catena, catena_as,
    catena_process,
    commands::{has_outcome, restart, rollback, until_outcome, until_restarted},
    deployment, eventually, inject_sidecar, kubectl, orphan_child, orphan_pods, replica_set, succeeds, uids,
    until_the_garbage_collector_knows_sets,
};
use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::ControllerRevision,
        core::v1::{ConfigMap, PersistentVolume, PersistentVolumeClaim, Pod, Secret},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::{Value, json};

/// The definitions of the kinds of the project.
const DEFINITIONS: [&str; 4] = [
    "basicdeployments.catena.dev",
    "basicreplicasets.catena.dev",
    "basicdeploymentrestarts.catena.dev",
    "basicdeploymentrollbacks.catena.dev",
];

/// A folder that is removed when this is dropped.
struct Folder(String);

impl Folder {
    fn of(namespace: &Namespace) -> Self {
        Self(std::env::temp_dir().join(format!("catena-backup-{}", namespace.name)).display().to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The hashes and marks of the revisions, by number.
async fn revisions(namespace: &Namespace) -> Result<BTreeMap<i64, (String, Value)>> {
    let listed = namespace.api::<ControllerRevision>().list(&ListParams::default()).await?;
    let of = |revision: ControllerRevision| {
        let hash = revision.annotations().get(keys::HASH).cloned().unwrap_or_default();
        (revision.revision.unwrap_or_default(), (hash, revision.data.0))
    };
    Ok(listed.into_iter().map(of).collect())
}

/// Restores until it is done, and ends the first try as soon as the `BasicDeployment` is there.
async fn restore_with_a_crash(namespace: &Namespace, folder: &str) -> Result<Value> {
    let mut first = catena_process(&namespace.name, &["restore", folder])?.stdout(Stdio::null()).spawn()?;
    eventually("the first object is there", WAIT_TIMEOUT, async || {
        match namespace.api::<BasicDeployment>().get_opt("web").await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err("nothing yet".to_owned()),
            // Its definition may not be there yet.
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    first.start_kill()?;
    first.wait().await?;
    succeeds(&namespace.name, &["restore", folder, "-o", "json"]).await?.json()
}

/// Waits until the garbage collector has collected an object whose owner is gone.
async fn until_garbage_is_collected(namespace: &Namespace, gone: &BasicDeployment) -> Result<()> {
    let garbage: ConfigMap = serde_json::from_value(json!({
        "metadata": {"name": "garbage-of-the-end", "ownerReferences": [{
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": gone.name_any(), "uid": gone.uid(),
        }]},
    }))?;
    namespace.create(&garbage).await?;
    namespace.until_collected::<ConfigMap>("garbage-of-the-end").await;
    Ok(())
}

#[tokio::test]
async fn what_is_there_is_left_alone_unless_told() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("restore-live").await?;
    let folder = Folder::of(&namespace);
    namespace.create(&deployment("web", 1)).await?;
    let web = namespace.until_ready("web").await;
    namespace.create(&restart(&web, "again")).await?;
    until_restarted(&namespace, "again").await;
    succeeds(&namespace.name, &["backup", &folder.0]).await?;
    // Its token is later than that of the backup, and only increases.
    namespace.create(&restart(&web, "later")).await?;
    until_restarted(&namespace, "later").await;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 2}})).await?;
    namespace.delete::<BasicDeploymentRestart>("again").await?;
    namespace.until_gone::<BasicDeploymentRestart>("again").await;
    let pods = namespace.until_ready_pods(2).await;

    let said = catena(&namespace.name, &["restore", &folder.0, "-o", "json"]).await?;
    let restored = said.json()?;
    assert_eq!((said.code, &restored["restored"]), (1, &json!([])), "{restored}");
    assert_eq!(restored["differing"][0]["object"]["kind"], "BasicDeployment", "{restored}");
    assert!(restored["differing"][0]["why"].to_string().contains("spec.replicas"), "{restored}");
    assert_eq!(restored["leftOut"][0]["object"]["name"], "again", "{restored}");
    assert!(restored["leftOut"][0]["why"].to_string().contains("it has ended"), "{restored}");
    assert_eq!(namespace.api::<BasicDeployment>().get("web").await?.spec.replicas, 2);
    assert_eq!(uids(&namespace.until_ready_pods(2).await), uids(&pods));
    succeeds(&namespace.name, &["restore", &folder.0, "--overwrite"]).await?;
    namespace.until_ready_pods(1).await;
    Ok(())
}

/// The data of all Secrets, by their names.
async fn secrets(namespace: &Namespace) -> Result<BTreeMap<String, Option<BTreeMap<String, ByteString>>>> {
    let secrets = namespace.api::<Secret>().list(&ListParams::default()).await?;
    Ok(secrets.into_iter().map(|secret| (secret.name_any(), secret.data)).collect())
}

/// Deletes all objects of these kinds.
async fn delete_all(namespace: &Namespace, kinds: &str) -> Result<()> {
    kubectl(&["delete", kinds, "--all", "--namespace", &namespace.name]).await?;
    Ok(())
}

#[tokio::test]
async fn an_operator_that_runs_finds_all_keys_and_issues_none_anew() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("restore-keys").await?;
    let folder = Folder::of(&namespace);
    let operator = IssuingOperator::install(&cluster, &namespace).await?;
    let running = operator.start();
    operator.create("Issuer", "ca", &json!({})).await?;
    for name in ["a", "b", "c", "d", "e"] {
        let spec = json!({"secretName": name, "issuerRef": {"name": "ca"}});
        operator.create("Certificate", name, &spec).await?;
    }
    operator.until_all_are_issued().await;
    let (before, group) = (secrets(&namespace).await?, &operator.group);
    let [certificates, issuers] = ["certificates", "issuers"].map(|plural| format!("{plural}.{group}"));
    let kinds = ["--kind", &certificates, "--kind", &issuers, "--kind", "secrets"];
    succeeds(&namespace.name, &[&["backup", &folder.0][..], &kinds].concat()).await?;
    drop(running);
    delete_all(&namespace, &format!("{certificates},{issuers},requests.{group},secrets")).await?;

    let done = operator.done();
    let _running = operator.start();
    succeeds(&namespace.name, &["restore", &folder.0]).await?;
    operator.until_all_are_issued().await;
    let anew = operator.done().split_off(done.len());
    assert_eq!(anew, Vec::<String>::new());
    assert_eq!(secrets(&namespace).await?, before);

    // One that was issued anew all the same is no success.
    namespace.merge::<Secret>("a", json!({"stringData": {"key": "another"}})).await?;
    let said = catena(&namespace.name, &["restore", &folder.0, "-o", "json"]).await?;
    let differing = said.json()?["differing"].clone();
    assert_eq!((said.code, differing.as_array().map(Vec::len)), (1, Some(1)), "{said:?}");
    assert!(differing[0]["why"].to_string().contains("data.key"), "{differing}");
    succeeds(&namespace.name, &["restore", &folder.0, "--overwrite"]).await?;
    assert_eq!(secrets(&namespace).await?, before);
    Ok(())
}

#[tokio::test]
async fn an_operator_that_runs_carries_out_nothing_twice() -> Result<()> {
    let cluster = Cluster::changing(&[BINDER]).await?;
    let namespace = cluster.namespace("restore-orders").await?;
    let (folder, chosen) = (Folder::of(&namespace), Folder(format!("{}-chosen", Folder::of(&namespace).0)));
    let operator = IssuingOperator::install(&cluster, &namespace).await?;
    let group = &operator.group;
    let certificate =
        json!({"group": group, "version": "v1", "resource": "certificates", "kind": "Certificate"});
    let aborts = json!({
        "id": "aborts", "group": group, "version": "v1", "resource": "aborts", "kind": "Abort",
        "target": {"name": "object.spec.certificate", "kinds": [certificate]},
    });
    let release = Release::upgrade(&cluster, BINDER, &json!({"kinds": [aborts]})).await?;
    let _running = operator.start();
    operator.create("Issuer", "ca", &json!({})).await?;
    operator.create("Certificate", "a", &json!({"secretName": "a", "issuerRef": {"name": "ca"}})).await?;
    operator.create("Abort", "bound", &json!({"certificate": "a"})).await?;
    operator.create("Abort", "waiting", &json!({"certificate": "later"})).await?;
    eventually("the Abort is bound, and each order is carried out", WAIT_TIMEOUT, async || {
        let bound = operator.api("Abort").get("bound").await.map_err(|error| error.to_string())?;
        let done = operator.done();
        let is_so = !bound.owner_references().is_empty() && done.len() == 4;
        if is_so { Ok(()) } else { Err(format!("{done:?} {bound:?}")) }
    })
    .await;
    let kind = ["certificates", "aborts"].map(|plural| format!("{plural}.{group}"));
    let saved = succeeds(&namespace.name, &["backup", &folder.0, "--kind", &kind[0], "-o", "json"]).await?;
    let saved = saved.json()?;
    assert_eq!(saved["leftOut"][0]["kind"], kind[1], "{saved}");
    let backup = ["backup", &chosen.0, "--kind", &kind[0], "--kind", &kind[1]];
    succeeds(&namespace.name, &backup).await?;
    delete_all(&namespace, &format!("{},requests.{group}", kind.join(","))).await?;

    let before = operator.done();
    let restored = succeeds(&namespace.name, &["restore", &chosen.0, "-o", "json"]).await?.json()?;
    let left_out = restored["leftOut"].as_array().context("leftOut")?;
    let kinds: Vec<_> = left_out.iter().map(|note| note["object"]["kind"].as_str()).collect();
    assert_eq!(kinds, [Some("Abort"), Some("Abort"), Some("Request")], "{restored}");
    operator.until_all_are_issued().await;
    assert_eq!(operator.done(), before);
    succeeds(&namespace.name, &["restore", &chosen.0, "--dependents"]).await?;
    eventually("the Request is carried out once more", WAIT_TIMEOUT, async || {
        let done = operator.done();
        if done.len() == before.len() + 1 && done.last().is_some_and(|deed| deed.starts_with("Request ")) {
            Ok(())
        } else {
            Err(done)
        }
    })
    .await;
    release.restore().await
}

#[tokio::test]
async fn a_pod_with_an_injected_sidecar_is_taken_back_by_the_restored_set() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("restore-sidecar").await?;
    let folder = Folder::of(&namespace);
    let gone = until_the_garbage_collector_knows_sets(&namespace).await?;
    namespace.create(&replica_set("web", 1)).await?;
    namespace.until_set_ready("web").await;
    let pods = namespace.until_ready_pods(1).await;
    succeeds(&namespace.name, &["backup", &folder.0]).await?;
    orphan_pods(&namespace, &gone).await?;
    namespace.until_collected::<BasicReplicaSet>("web").await;
    let has_owner = |pods: &[Pod]| pods.iter().any(|pod| !pod.owner_references().is_empty());
    namespace.until_pods("the pod has no owner", |pods| !has_owner(pods)).await;
    inject_sidecar(&namespace, &pods[0], false).await?;
    let injected = namespace.until_ready_pods(1).await;

    succeeds(&namespace.name, &["restore", &folder.0]).await?;
    namespace.until_set_ready("web").await;
    let after = namespace.until_pods("the pod has an owner again", has_owner).await;
    assert_eq!(uids(&after), uids(&injected));
    Ok(())
}

#[tokio::test]
async fn a_volume_and_its_claim_come_back_bound_to_each_other() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("restore-volume").await?;
    let folder = Folder::of(&namespace);
    let (name, volumes) = (namespace.name.as_str(), cluster.all::<PersistentVolume>());
    let storage = json!({"storage": "1Mi"});
    let volume = serde_json::from_value(json!({"metadata": {"name": name}, "spec": {
        "capacity": storage, "accessModes": ["ReadWriteOnce"], "storageClassName": "",
        "hostPath": {"path": "/nowhere"}, "persistentVolumeReclaimPolicy": "Retain",
    }}))?;
    volumes.create(&PostParams::default(), &volume).await?;
    let claim: PersistentVolumeClaim =
        serde_json::from_value(json!({"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": name,
            "resources": {"requests": storage},
        }}))?;
    namespace.create(&claim).await?;
    let is_bound = |claim: &PersistentVolumeClaim| {
        claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound"))
    };
    let before = namespace.until("data", "is bound", is_bound).await;
    let kinds = ["--kind", "persistentvolumes", "--kind", "persistentvolumeclaims"];
    succeeds(name, &[&["backup", &folder.0, "--all-namespaces"][..], &kinds].concat()).await?;
    // Other tests have volumes, too.
    let own = ["backup.yaml", "_cluster", name, &format!("{name}.yaml")].map(std::ffi::OsString::from);
    for place in [folder.0.clone(), format!("{}/_cluster/persistentvolumes", folder.0)] {
        let places = std::fs::read_dir(place)?.collect::<Result<Vec<_>, _>>()?;
        for other in places.iter().filter(|place| !own.contains(&place.file_name())) {
            let is_folder = other.file_type()?.is_dir();
            if is_folder {
                std::fs::remove_dir_all(other.path())?;
            } else {
                std::fs::remove_file(other.path())?;
            }
        }
    }
    namespace.delete::<PersistentVolumeClaim>("data").await?;
    namespace.until_gone::<PersistentVolumeClaim>("data").await;
    kubectl(&["delete", "persistentvolume", name]).await?;

    // Of all namespaces: volumes are in none.
    let said = catena_as(Path::new(&std::env::var("KUBECONFIG")?), &["restore", &folder.0]).await?;
    assert_eq!(said.code, 0, "{said:?}");
    let after = namespace.until("data", "is bound", is_bound).await;
    assert_ne!(after.uid(), before.uid());
    let bound_to = volumes.get(name).await?.spec.and_then(|spec| spec.claim_ref).context("claimRef")?;
    assert_eq!(bound_to.uid, after.uid());
    volumes.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

#[tokio::test]
async fn bad_input_for_a_backup_is_answered_with_what_to_do() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("restore-bad").await?;
    let folder = Folder::of(&namespace);
    std::fs::create_dir_all(&folder.0)?;
    std::fs::write(format!("{}/notes.txt", folder.0), "mine")?;
    for (arguments, told) in [
        (&["backup"][..], "DIR"),
        (&["backup", &folder.0], "is not empty, and no backup"),
        (&["backup", "/proc/nowhere"], "cannot be written"),
        (&["backup", "unused", "--kind", "basicdeploymnt"], "did you mean"),
        (&["restore", &folder.0], "is no backup"),
        (&["restore", "/nowhere"], "is no backup"),
    ] {
        let said = catena(&namespace.name, arguments).await?;
        assert!(said.code == 1 && said.err.contains(told), "{arguments:?}: {said:?}");
    }
    Ok(())
}

mod alone {
    use super::{
        Api, BasicDeployment, BasicDeploymentRestart, BasicDeploymentRollback, BasicReplicaSet, Cluster,
        Context, ControllerRevision, CustomResourceDefinition, DEFINITIONS, DEPLOYMENTS, DeleteParams,
        Folder, ListParams, Namespace, Release, ResourceExt, Result, WAIT_TIMEOUT, deployment, eventually,
        has_outcome, json, kubectl, orphan_child, orphan_pods, restart, restore_with_a_crash, revisions,
        rollback, succeeds, uids, until_garbage_is_collected, until_outcome, until_restarted,
        until_the_garbage_collector_knows_sets,
    };

    #[tokio::test]
    async fn everything_that_was_deleted_comes_back_and_no_pod_is_replaced() -> Result<()> {
        e2e::needs!(NobodyElse);
        let cluster = Cluster::alone().await?;

        let namespace = cluster.namespace("restore").await?;
        let folder = Folder::of(&namespace);
        let gone_set = until_the_garbage_collector_knows_sets(&namespace).await?;
        namespace.create(&deployment("web", 3)).await?;
        let web = namespace.until_ready("web").await;
        namespace.create(&restart(&web, "again")).await?;
        until_restarted(&namespace, "again").await;
        namespace
            .merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"env.VERSION": "2"}}}))
            .await?;
        namespace
            .until("web", "is on revision 2", |web: &BasicDeployment| {
                web.status.as_ref().is_some_and(|status| status.ready && status.revision == Some(2))
            })
            .await;
        namespace.create(&rollback(&web, "back", 1)).await?;
        until_outcome::<BasicDeploymentRollback>(&namespace, "back", "True", "Complete").await;
        let web = namespace.until_ready("web").await;
        let pods = namespace.until_ready_pods(3).await;
        namespace.until_no_pod_ends().await;
        let (before, set) = (revisions(&namespace).await?, namespace.until_set_ready("web").await);

        let saved = succeeds(&namespace.name, &["backup", &folder.0, "-o", "json"]).await?.json()?;
        assert_eq!(saved["objects"]["controllerrevisions.apps"], before.len(), "{saved}");
        assert_eq!(saved["leftOut"][0]["kind"], "pods", "{saved}");
        let text = std::fs::read_to_string(format!(
            "{}/{}/basicdeployments.catena.dev/web.yaml",
            folder.0, namespace.name
        ))?;
        assert!(!text.contains("resourceVersion") && !text.contains("status:"), "{text}");

        delete_everything(&cluster, &namespace, &gone_set).await?;
        assert_eq!(uids(&namespace.pods().await?), uids(&pods), "the pods have to outlive this");

        let restored = restore_with_a_crash(&namespace, &folder.0).await?;
        assert!(restored["failed"].is_null() && restored["leftOut"].is_null(), "{restored}");
        let back = namespace.until_ready("web").await;
        assert_ne!(back.uid(), web.uid());
        assert_eq!(back.spec, web.spec);
        let new_set = namespace.until_set_ready("web").await;
        assert_eq!(new_set.spec, set.spec);
        assert_eq!(new_set.owner_references()[0].uid, back.uid().context("uid")?);
        let new_pods = namespace.until_ready_pods(3).await;
        assert_eq!(uids(&new_pods), uids(&pods), "a pod was replaced");
        for pod in &new_pods {
            assert_eq!(pod.owner_references()[0].uid, new_set.uid().context("uid")?, "{pod:?}");
        }
        assert_eq!(revisions(&namespace).await?, before);
        let listed = namespace.api::<ControllerRevision>().list(&ListParams::default()).await?;
        assert!(
            listed
                .iter()
                .all(|revision| revision.owner_references()[0].uid == back.uid().unwrap_or_default())
        );
        let (again, rolled) = (
            namespace.api::<BasicDeploymentRestart>().get("again").await?,
            namespace.api::<BasicDeploymentRollback>().get("back").await?,
        );
        assert!(has_outcome(&again, "True", "Complete") && has_outcome(&rolled, "True", "Complete"));
        for owners in [again.owner_references(), rolled.owner_references()] {
            assert_eq!(
                owners.iter().map(|owner| &owner.uid).collect::<Vec<_>>(),
                [&back.uid().context("uid")?]
            );
        }
        let status = back.status.as_ref().context("status")?;
        assert!(e2e::is_true(&status.conditions, "RolledBack"), "{status:?}");

        until_garbage_is_collected(&namespace, &web).await?;
        // Only on request: the garbage collector has just shown that it is up to date.
        if let Some(seconds) =
            std::env::var("CATENA_WATCH_SECONDS").ok().and_then(|seconds| seconds.parse().ok())
        {
            tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
        }
        assert_eq!(uids(&namespace.pods().await?), uids(&pods), "a pod was collected or replaced");
        assert_eq!(revisions(&namespace).await?, before);
        // A field that the template drops later goes away, because its own applier manages it.
        let managers =
            new_set.managed_fields().iter().filter_map(|entry| entry.manager.clone()).collect::<Vec<_>>();
        assert!(!managers.iter().any(|manager| manager.contains("restore")), "{managers:?}");
        // Helm finds the fields of the definitions that it applied.
        Release::set(DEPLOYMENTS, &json!({})).await?;
        DEPLOYMENTS.until_ready(&cluster).await;
        let second = succeeds(&namespace.name, &["restore", &folder.0, "-o", "json"]).await?.json()?;
        assert_eq!(second["restored"], json!([]), "{second}");
        Ok(())
    }

    /// Orphans the child and the pods of "web", and deletes all else, down to the definitions.
    async fn delete_everything(
        cluster: &Cluster,
        namespace: &Namespace,
        gone_set: &BasicReplicaSet,
    ) -> Result<()> {
        orphan_child(namespace, gone_set).await?;
        namespace.until_gone::<BasicDeployment>("web").await;
        namespace
            .until("web", "has no owner", |set: &BasicReplicaSet| set.owner_references().is_empty())
            .await;
        orphan_pods(namespace, gone_set).await?;
        namespace.until_collected::<BasicReplicaSet>("web").await;
        namespace
            .until_pods("the pods have no owner", |pods| {
                pods.iter().all(|pod| pod.owner_references().is_empty())
            })
            .await;
        let everything = ["delete", "controllerrevisions.apps", "--all", "--namespace", &namespace.name];
        kubectl(&everything).await?;
        let definitions: Api<CustomResourceDefinition> = cluster.all();
        for name in DEFINITIONS {
            definitions.delete(name, &DeleteParams::background()).await?;
        }
        for name in DEFINITIONS {
            eventually("the definition is gone", WAIT_TIMEOUT, async || {
                match definitions.get_opt(name).await {
                    Ok(None) => Ok(()),
                    other => Err(format!("{name}: {}", other.is_ok())),
                }
            })
            .await;
        }
        Ok(())
    }
}

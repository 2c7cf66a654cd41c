//! A protected object is deleted only once its backup exists, and can be restored from it.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeployment, keys::BACKUP_OF};
use e2e::{
    BACKUP_BY, BACKUPS, Cluster, Namespace, WAIT_TIMEOUT, deployment, eventually, is_protected, kubectl,
    open_kind, protect, texts,
};
use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{ConfigMap, Namespace as CoreNamespace, Secret},
        scheduling::v1::PriorityClass,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
    runtime::{
        controller::Action,
        finalizer::{Event, finalizer},
    },
};
use serde_json::{Value, json};

const SYSTEM: &str = "catena-system";

fn config_map(name: &str, backup_by: &str) -> ConfigMap {
    let mut map = ConfigMap { data: Some(texts! { "key" => "value" }), ..ConfigMap::default() };
    map.metadata.name = Some(name.into());
    map.metadata.labels = Some(texts! { BACKUP_BY => backup_by });
    map
}

async fn protected(namespace: &Namespace, name: &str, backup_by: &str) -> Result<ConfigMap> {
    namespace.create(&config_map(name, backup_by)).await?;
    Ok(namespace.until(name, "is protected", |map: &ConfigMap| is_protected(map)).await)
}

/// The Secrets that hold the manifest of an object.
async fn manifests(client: &Client, uid: &str) -> Result<Vec<Value>> {
    let of = ListParams::default().labels(&format!("{BACKUP_OF}={uid}"));
    let secrets = Api::<Secret>::namespaced(client.clone(), SYSTEM).list(&of).await?;
    secrets
        .iter()
        .map(|secret| {
            ensure!(secret.owner_references().is_empty(), "a backup has an owner");
            let manifest = secret.data.as_ref().and_then(|data| data.get("manifest.json"));
            Ok(serde_json::from_slice(&manifest.context("no manifest")?.0)?)
        })
        .collect()
}

#[tokio::test]
async fn a_deleted_object_is_kept_as_a_manifest_and_comes_back_from_it() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("manifest").await?;
    let before = protected(&namespace, "web", "manifest").await?;
    let owned = json!({"metadata": {"annotations": {"example.com/note": "ä \" {{ x }}\n"}, "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "8f2a6c1e-0000-4000-8000-000000000000"}]}});
    // The garbage collector then deletes it, which is a deletion like any other.
    namespace.merge::<ConfigMap>("web", owned).await?;
    namespace.until_gone::<ConfigMap>("web").await;

    let uid = before.uid().context("uid")?;
    let manifests = manifests(&cluster.client, &uid).await?;
    assert_eq!(manifests.len(), 1, "{manifests:?}");
    let path = std::env::temp_dir().join(format!("{uid}.json"));
    std::fs::write(&path, serde_json::to_vec(&manifests[0])?)?;
    kubectl(&["create", "--filename", &path.display().to_string()]).await?;
    std::fs::remove_file(path)?;
    let after = namespace.until("web", "is protected again", |map: &ConfigMap| is_protected(map)).await;
    assert_ne!(after.uid(), before.uid());
    assert_eq!((&after.data, after.labels()), (&before.data, before.labels()));
    assert_eq!(after.annotations()["example.com/note"], "ä \" {{ x }}\n");
    assert_eq!(after.annotations().len(), 1, "{:?}", after.annotations());
    assert!(after.owner_references().is_empty());
    Ok(())
}

#[tokio::test]
async fn a_basic_deployment_and_a_cluster_wide_object_are_backed_up() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("kinds").await?;

    let mut web = deployment("web", 1);
    web.metadata.labels = Some(texts! { BACKUP_BY => "manifest" });
    namespace.create(&web).await?;
    let web = namespace.until("web", "is protected", |web: &BasicDeployment| is_protected(web)).await;
    namespace.delete::<BasicDeployment>("web").await?;
    namespace.until_gone::<BasicDeployment>("web").await;
    let kept = manifests(&cluster.client, &web.uid().context("uid")?).await?;
    assert_eq!(kept.len(), 1);
    assert_eq!((&kept[0]["kind"], &kept[0]["spec"]["replicas"]), (&json!("BasicDeployment"), &json!(1)));

    let classes = cluster.all::<PriorityClass>();
    let mut class = json!({"metadata": namespace.owns(&namespace.name), "value": 7});
    class["metadata"]["labels"] = json!({BACKUP_BY: "manifest"});
    let class: PriorityClass = serde_json::from_value(class)?;
    let class = classes.create(&PostParams::default(), &class).await?;
    eventually("the PriorityClass is protected", WAIT_TIMEOUT, async || {
        let class = classes.get(&class.name_any()).await.map_err(|error| error.to_string())?;
        if is_protected(&class) { Ok(()) } else { Err(e2e::yaml(&class)) }
    })
    .await;
    classes.delete(&class.name_any(), &DeleteParams::default()).await?;
    eventually("the PriorityClass is gone", WAIT_TIMEOUT, async || {
        match classes.get_opt(&class.name_any()).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let kept = manifests(&cluster.client, &class.uid().context("uid")?).await?;
    assert_eq!(kept.iter().map(|manifest| &manifest["value"]).collect::<Vec<_>>(), [&json!(7)]);
    Ok(())
}

#[tokio::test]
async fn an_object_that_is_too_large_for_its_backup_is_named_as_soon_as_it_is_protected() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("large").await?;
    let mut map = config_map("web", "manifest");
    map.data = Some(texts! { "key" => r#"{"a": "b"},"#.repeat(90_000) });
    namespace.create(&map).await?;
    let said = namespace.until_event("web", "BackupTooLarge").await;
    ensure!(said.contains("a Secret") && said.contains("{{ restorable }}"), "{said}");
    // Its backup would be refused, so that it is not left to be deleted.
    namespace.merge::<ConfigMap>("web", json!({"metadata": {"labels": {BACKUP_BY: null}}})).await?;
    namespace.until("web", "is not protected any more", |map: &ConfigMap| !is_protected(map)).await;
    Ok(())
}

#[tokio::test]
async fn a_backup_job_that_ends_well_lets_go() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("job").await?;
    let before = protected(&namespace, "web", "succeeds").await?;
    namespace.delete::<ConfigMap>("web").await?;
    namespace.until_gone::<ConfigMap>("web").await;
    let of = ListParams::default().labels(&format!("{BACKUP_OF}={}", before.uid().context("uid")?));
    let jobs = Api::<Job>::namespaced(cluster.client.clone(), SYSTEM).list(&of).await?;
    let succeeded: Vec<_> =
        jobs.iter().map(|job| job.status.as_ref().and_then(|status| status.succeeded)).collect();
    assert_eq!(succeeded, [Some(1)]);
    Ok(())
}

#[tokio::test]
async fn the_finalizer_follows_the_selection() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("selection").await?;
    protected(&namespace, "web", "manifest").await?;
    // Another entry of the same kind takes it over, and takes none from another entry.
    namespace.merge::<ConfigMap>("web", json!({"metadata": {"labels": {BACKUP_BY: "beside"}}})).await?;
    namespace.create(&config_map("by-namespace", "elsewhere")).await?;
    namespace.create(&config_map("plain", "nothing")).await?;
    namespace.merge::<ConfigMap>("web", json!({"metadata": {"labels": {BACKUP_BY: null}}})).await?;
    namespace.until("web", "is not protected any more", |map: &ConfigMap| !is_protected(map)).await;
    namespace.until("by-namespace", "is not protected", |map: &ConfigMap| !is_protected(map)).await;

    let labels = |value: Value| Patch::Merge(json!({"metadata": {"labels": {BACKUP_BY: value}}}));
    let namespaces = cluster.all::<CoreNamespace>();
    namespaces.patch(&namespace.name, &PatchParams::default(), &labels("elsewhere".into())).await?;
    namespace.until("by-namespace", "is protected", |map: &ConfigMap| is_protected(map)).await;
    namespaces.patch(&namespace.name, &PatchParams::default(), &labels(Value::Null)).await?;
    namespace.until("by-namespace", "is not protected any more", |map: &ConfigMap| !is_protected(map)).await;
    namespace
        .until("plain", "never was protected", |map: &ConfigMap| {
            map.metadata.managed_fields.iter().flatten().count() == 1
        })
        .await;
    Ok(())
}

#[tokio::test]
async fn a_namespace_that_is_deleted_ends_with_all_backups_elsewhere() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("ends").await?;
    let mut uids = Vec::new();
    for number in 0..20 {
        let backup_by = if number % 5 == 0 { "succeeds" } else { "manifest" };
        uids.push((backup_by, protected(&namespace, &format!("web-{number}"), backup_by).await?.uid()));
    }
    cluster.all::<CoreNamespace>().delete(&namespace.name, &DeleteParams::background()).await?;
    cluster.until_namespace_gone(&namespace.name).await;
    for (backup_by, uid) in uids {
        let uid = uid.context("uid")?;
        let kept = if backup_by == "manifest" {
            manifests(&cluster.client, &uid).await?.len()
        } else {
            // A backup that failed because a node could not start it is followed by another one.
            let of = ListParams::default().labels(&format!("{BACKUP_OF}={uid}"));
            let jobs = Api::<Job>::namespaced(cluster.client.clone(), SYSTEM).list(&of).await?;
            let has_failed = |job: &&Job| {
                job.status.as_ref().is_some_and(|status| status.failed.is_some_and(|failed| failed > 0))
            };
            jobs.iter().filter(|job| !has_failed(job)).count()
        };
        assert_eq!(kept, 1, "of {uid} by {backup_by}");
    }
    Ok(())
}

fn gadgets(client: &Client, namespace: &str) -> Api<DynamicObject> {
    let gadget = ApiResource::from_gvk(&GroupVersionKind::gvk("e2e.catena.dev", "v1", "Gadget"));
    Api::namespaced_with(client.clone(), namespace, &gadget)
}

#[tokio::test]
async fn a_kind_that_comes_late_is_protected_and_goes_with_backups_of_all() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("late").await?;
    let crds = cluster.all::<CustomResourceDefinition>();
    let crd = open_kind("e2e.catena.dev", "Gadget", &["v1"]);
    let crd: CustomResourceDefinition = serde_json::from_value(crd)?;
    // Twice, because a kind may be removed and installed again.
    for round in 0..2 {
        crds.create(&PostParams::default(), &crd).await?;
        let gadgets = gadgets(&cluster.client, &namespace.name);
        let gadget: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "e2e.catena.dev/v1", "kind": "Gadget",
            "metadata": {"name": "it", "labels": {BACKUP_BY: "manifest"}, "finalizers": ["example.com/somebody-elses"]},
            "spec": {"size": round},
        }))?;
        let created = eventually("the kind is served", WAIT_TIMEOUT, async || {
            gadgets.create(&PostParams::default(), &gadget).await.map_err(|error| error.to_string())
        })
        .await;
        eventually("the gadget is protected", 2 * WAIT_TIMEOUT, async || {
            let found = gadgets.get("it").await.map_err(|error| error.to_string())?;
            if is_protected(&found) { Ok(()) } else { Err(e2e::yaml(&found)) }
        })
        .await;
        crds.delete("gadgets.e2e.catena.dev", &DeleteParams::default()).await?;
        eventually("only the finalizer of somebody else is left", WAIT_TIMEOUT, async || {
            let found = gadgets.get("it").await.map_err(|error| error.to_string())?;
            let finalizers: Vec<_> = found
                .finalizers()
                .iter()
                .filter(|finalizer| finalizer.contains("catena.dev") || finalizer.contains("example"))
                .cloned()
                .collect();
            if finalizers == ["example.com/somebody-elses"] { Ok(()) } else { Err(e2e::yaml(&found)) }
        })
        .await;
        let kept = manifests(&cluster.client, &created.uid().context("uid")?).await?;
        assert_eq!(
            kept.iter().map(|manifest| &manifest["spec"]["size"]).collect::<Vec<_>>(),
            [&json!(round)]
        );
        let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        gadgets.patch("it", &PatchParams::default(), &free).await?;
        eventually("the kind is gone", WAIT_TIMEOUT, async || {
            match crds.get_opt("gadgets.e2e.catena.dev").await {
                Ok(None) => Ok(()),
                other => Err(format!("{:?}", other.map(|found| found.map(|found| found.status)))),
            }
        })
        .await;
    }
    Ok(())
}

/// The behaviour of kube's own helper, and why it is not used.
#[tokio::test]
async fn kubes_own_helper_takes_the_finalizer_from_an_object_that_was_made_anew_and_ours_does_not()
-> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("anew").await?;
    let maps = namespace.api::<ConfigMap>();
    let other = "example.com/other";

    // An object that its watch shows as terminating, while another one of its name already exists.
    let mut map = config_map("web", "nothing");
    map.metadata.finalizers = Some(vec![other.into()]);
    maps.create(&PostParams::default(), &map).await?;
    maps.delete("web", &DeleteParams::default()).await?;
    let stale = Arc::new(maps.get("web").await?);
    maps.patch("web", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await?;
    namespace.until_gone::<ConfigMap>("web").await;
    let anew = maps.create(&PostParams::default(), &map).await?;
    assert_ne!(anew.uid(), stale.uid());

    let clean_up = async |event: Event<ConfigMap>| {
        assert!(matches!(event, Event::Cleanup(_)));
        Ok::<_, std::io::Error>(Action::await_change())
    };
    finalizer(&maps, other, stale.clone(), clean_up).await.context("kube's helper refused")?;
    let stripped = maps.get("web").await?;
    assert_eq!(stripped.uid(), anew.uid());
    assert!(stripped.finalizers().is_empty(), "kube's helper has learned to look at the uid: {stripped:?}");

    // The request of our controller.
    maps.patch("web", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": [other]}})))
        .await?;
    let ours = json!([
        {"op": "test", "path": "/metadata/uid", "value": stale.uid()},
        {"op": "test", "path": "/metadata/finalizers/0", "value": other},
        {"op": "remove", "path": "/metadata/finalizers/0"},
    ]);
    let patch: Patch<()> = Patch::Json(serde_json::from_value(ours)?);
    let refused = maps.patch("web", &PatchParams::default(), &patch).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 422), "{refused:?}");
    assert_eq!(maps.get("web").await?.finalizers(), [other]);
    maps.patch("web", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"finalizers": null}})))
        .await?;
    Ok(())
}

/// An object that is deleted, created again and protected again, many times: each incarnation has its own backup.
#[tokio::test]
async fn each_object_of_a_name_has_its_own_backup() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("again").await?;
    let mut backups = BTreeMap::new();
    for number in 0..10 {
        let mut map = config_map("web", "manifest");
        map.data = Some(texts! { "number" => number.to_string() });
        namespace.create(&map).await?;
        let map = namespace.until("web", "is protected", |map: &ConfigMap| is_protected(map)).await;
        namespace.delete::<ConfigMap>("web").await?;
        namespace.until_gone::<ConfigMap>("web").await;
        backups.insert(number.to_string(), map.uid().context("uid")?);
    }
    for (number, uid) in backups {
        let kept = manifests(&cluster.client, &uid).await?;
        assert_eq!(
            kept.iter().map(|manifest| &manifest["data"]["number"]).collect::<Vec<_>>(),
            [&json!(number)]
        );
    }
    BACKUPS.until_ready(&cluster).await;
    Ok(())
}

//! The admission policies of backup-controller's chart, which need no webhook.

use anyhow::{Context, Result, ensure};
use catena_api::keys::{BACKUP_FINALIZER, CONFIRM_DELETE};
use e2e::{
    BACKUP_BY, BACKUPS, Cluster, Namespace, Paused, Release, WAIT_TIMEOUT, eventually, is_protected, kubectl,
    kubectl_with_input, open_kind, protecting,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace as CoreNamespace};
use kube::{
    ResourceExt,
    api::{DeleteParams, PostParams},
};
use serde_json::json;

async fn create(namespace: &Namespace, name: &str) -> Result<ConfigMap> {
    let map = json!({"metadata": {"name": name, "labels": {BACKUP_BY: "manifest"}}});
    Ok(namespace.create::<ConfigMap>(&serde_json::from_value(map)?).await?)
}

/// The policies take effect a moment after their installation.
async fn until_in_force(namespace: &Namespace) {
    let maps = namespace.api::<ConfigMap>();
    eventually("the policies are in force", WAIT_TIMEOUT, async || {
        let map = json!({"metadata": {"name": "try", "labels": {BACKUP_BY: "manifest"}}});
        let map = serde_json::from_value(map).map_err(|error| error.to_string())?;
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        let map = maps.create(&dry_run, &map).await.map_err(|error| error.to_string())?;
        if is_protected(&map) { Ok(()) } else { Err(e2e::yaml(&map)) }
    })
    .await;
    // The policies take effect one by one: a deletion of an object that stays shows whether one refuses.
    let map = json!({"metadata": {"name": "try", "labels": {BACKUP_BY: "manifest"}}});
    if let Ok(map) = serde_json::from_value::<ConfigMap>(map) {
        maps.create(&PostParams::default(), &map).await.ok();
    }
    for how in [DeleteParams::background(), DeleteParams::foreground()] {
        let how = DeleteParams { dry_run: true, ..how };
        eventually("a deletion is refused", WAIT_TIMEOUT, async || match maps.delete("try", &how).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}

/// They also outlive their removal by a moment, which must not affect the next test.
async fn until_out_of_force(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.namespace("no-policies").await?;
    let maps = namespace.api::<ConfigMap>();
    eventually("an object is made that nothing protects at once", WAIT_TIMEOUT, async || {
        let map = create(&namespace, "try").await.map_err(|error| error.to_string())?;
        if !is_protected(&map) {
            return Ok(());
        }
        let confirm = json!({"metadata": {"annotations": {CONFIRM_DELETE: map.uid()}}});
        namespace.merge::<ConfigMap>("try", confirm).await.map_err(|error| error.to_string())?;
        maps.delete("try", &DeleteParams::background()).await.map_err(|error| error.to_string())?;
        Err(e2e::yaml(&map))
    })
    .await;
    for how in [DeleteParams::background(), DeleteParams::foreground()] {
        let how = DeleteParams { dry_run: true, ..how };
        eventually("a deletion is taken", WAIT_TIMEOUT, async || {
            maps.delete("try", &how).await.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }
    Ok(())
}

async fn refused(namespace: &Namespace, name: &str, how: &DeleteParams) -> String {
    match namespace.api::<ConfigMap>().delete(name, how).await {
        Err(kube::Error::Api(status)) if status.code == 403 => status.message.clone(),
        other => panic!("it was not refused: {other:?}"),
    }
}

/// The policies apply to requests in any version of the kind.
async fn another_version_is_no_way_around(namespace: &Namespace) -> Result<()> {
    // The settings name one of its versions.
    let kind = open_kind("e2e.catena.dev", "Gadget", &["v1", "v2"]).to_string();
    let (is_made, said) = kubectl_with_input(&["apply", "--filename", "-"], &kind).await?;
    ensure!(is_made, "{said}");
    let gadget = json!({
        "apiVersion": "e2e.catena.dev/v2", "kind": "Gadget",
        "metadata": {"name": "web", "labels": {BACKUP_BY: "manifest"}},
    });
    let in_namespace = async |words: &[&str]| {
        let words = [words, &["--namespace", &namespace.name]].concat();
        kubectl_with_input(&words, &gadget.to_string()).await
    };
    let finalizer = format!("{BACKUP_FINALIZER:?}");
    let create = ["create", "--dry-run=server", "--output=json", "--filename", "-"];
    eventually("a gadget of the other version is protected when it is made", WAIT_TIMEOUT, async || {
        match in_namespace(&create).await {
            Ok((true, said)) if said.contains(&finalizer) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let (is_made, said) = in_namespace(&["create", "--filename", "-"]).await?;
    ensure!(is_made, "{said}");
    let gadgets = "gadgets.v2.e2e.catena.dev";
    let delete = ["delete", gadgets, "web", "--wait=false"];
    let (is_taken, said) = in_namespace(&delete).await?;
    ensure!(!is_taken && said.contains(CONFIRM_DELETE), "{said}");
    let (is_there, uid) = in_namespace(&["get", gadgets, "web", "--output=jsonpath={.metadata.uid}"]).await?;
    ensure!(is_there, "{uid}");
    let confirm = format!("{CONFIRM_DELETE}={uid}");
    let (is_confirmed, said) = in_namespace(&["annotate", gadgets, "web", &confirm]).await?;
    ensure!(is_confirmed, "{said}");
    let (is_taken, said) = in_namespace(&[&delete[..], &["--cascade=foreground"]].concat()).await?;
    ensure!(!is_taken && said.contains("background"), "{said}");
    let (is_taken, said) = in_namespace(&delete).await?;
    ensure!(is_taken, "{said}");
    Ok(())
}

mod alone {
    use super::{
        BACKUPS, CONFIRM_DELETE, Cluster, ConfigMap, Context, CoreNamespace, DeleteParams, Paused, Release,
        ResourceExt, Result, WAIT_TIMEOUT, another_version_is_no_way_around, create, eventually,
        is_protected, json, kubectl, protecting, refused, until_in_force, until_out_of_force,
    };

    #[tokio::test]
    async fn policies_protect_at_creation_and_ask_for_a_confirmation_and_refuse_foreground_deletion()
    -> Result<()> {
        e2e::needs!(HostProcesses);
        let cluster = Cluster::alone().await?;
        let mut values = protecting()?;
        values["policies"] = json!({
            "confirmDelete": {"enabled": true}, "refuseForeground": {"enabled": true}, "protectAtCreate": {"enabled": true},
        });
        Release::set(BACKUPS, &values).await?;
        BACKUPS.until_ready(&cluster).await;
        let namespace = cluster.namespace("policies").await?;
        until_in_force(&namespace).await;

        // Without the controller, so that it is the policy that acts.
        let paused = Paused::pause(&cluster, BACKUPS).await?;
        let web = create(&namespace, "web").await?;
        let other = create(&namespace, "other").await?;
        assert!(is_protected(&web) && is_protected(&other));
        let plain = json!({"metadata": {"name": "plain"}});
        let plain = namespace.create::<ConfigMap>(&serde_json::from_value(plain)?).await?;
        assert!(plain.finalizers().is_empty());
        namespace.api::<ConfigMap>().delete("plain", &DeleteParams::foreground()).await?;

        let why = refused(&namespace, "web", &DeleteParams::background()).await;
        let uid = web.uid().context("uid")?;
        let advice =
            format!("--namespace {} configmaps web --overwrite {CONFIRM_DELETE}={uid}", namespace.name);
        assert!(why.contains(&advice), "{why}");
        // The fields that a copy or a restored object shares with the confirmed object confirm nothing.
        for copied in ["web", &other.uid().context("uid")?] {
            let confirm = json!({"metadata": {"annotations": {CONFIRM_DELETE: copied}}});
            namespace.merge::<ConfigMap>("web", confirm).await?;
            refused(&namespace, "web", &DeleteParams::background()).await;
        }
        let advice = advice.split_whitespace().collect::<Vec<_>>();
        kubectl(&[&["annotate"], &advice[..]].concat()).await?;
        let why = refused(&namespace, "web", &DeleteParams::foreground()).await;
        assert!(why.contains("background"), "{why}");
        namespace.delete::<ConfigMap>("web").await?;
        // Once it is being deleted, no confirmation is needed again, and what it owns still has to stay.
        namespace.delete::<ConfigMap>("web").await?;
        let why = refused(&namespace, "web", &DeleteParams::foreground()).await;
        assert!(why.contains("background"), "{why}");
        another_version_is_no_way_around(&namespace).await?;
        tokio::task::spawn_blocking(move || drop(paused)).await?;
        namespace.until_gone::<ConfigMap>("web").await;
        let place = ["--namespace", &namespace.name, "--timeout=60s"];
        kubectl(&[&["wait", "--for=delete", "gadget/web"], &place[..]].concat()).await?;
        kubectl(&["delete", "crd", "gadgets.e2e.catena.dev", "--timeout=60s"]).await?;

        // A namespace is deleted without a confirmation of each object in it.
        let namespaces = cluster.all::<CoreNamespace>();
        namespaces.delete(&namespace.name, &DeleteParams::background()).await?;
        eventually("the namespace is gone", 3 * WAIT_TIMEOUT, async || {
            match namespaces.get_opt(&namespace.name).await {
                Ok(None) => Ok(()),
                other => Err(other.map(|left| e2e::yaml(&left)).map_err(|error| error.to_string())),
            }
        })
        .await;
        Release::set(BACKUPS, &protecting()?).await?;
        until_out_of_force(&cluster).await
    }
}

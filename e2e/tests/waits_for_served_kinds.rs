//! An object whose kind is not served for a while is not taken for gone: it is still stored, with the finalizer.

use anyhow::{Context, Result, ensure};
use e2e::{
    BACKUP_BY, BACKUPS, Cluster, Namespace, Release, WAIT_TIMEOUT, catena, eventually, force_release,
    is_protected, open_kind, protect, protecting, until_nothing_is_protected,
};
use k8s_openapi::{
    api::core::v1::Namespace as CoreNamespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams,
    },
};
use serde_json::json;

const GROUP: &str = "e2e.catena.dev";
const DEFINITION: &str = "shades.e2e.catena.dev";

fn shades(namespace: &Namespace) -> Api<DynamicObject> {
    namespace.api_of(&ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1", "Shade")))
}

/// Serves the kind, or stops serving it while its objects stay stored.
async fn serve(cluster: &Cluster, owner: &Namespace, is_served: bool) -> Result<()> {
    let mut definition = open_kind(GROUP, "Shade", &["v1"]);
    definition["metadata"] = owner.owns(DEFINITION);
    definition["spec"]["versions"][0]["served"] = is_served.into();
    let (definitions, params) =
        (cluster.all::<CustomResourceDefinition>(), PatchParams::apply("e2e").force());
    definitions.patch(DEFINITION, &params, &Patch::Apply(definition)).await?;
    let shades = shades(owner);
    eventually(&format!("served: {is_served}"), WAIT_TIMEOUT, async || {
        let listed = shades.list(&ListParams::default()).await.map(|_| ());
        if listed.is_ok() == is_served { Ok(()) } else { Err(format!("{listed:?}")) }
    })
    .await;
    Ok(())
}

/// Creates an object, and deletes it once it is protected, so that it is held, because its backup fails.
async fn hold(namespace: &Namespace) -> Result<()> {
    let shades = shades(namespace);
    let shade = json!({
        "apiVersion": "e2e.catena.dev/v1", "kind": "Shade",
        "metadata": {"name": "web", "labels": {BACKUP_BY: "fails"}},
    });
    shades.create(&PostParams::default(), &serde_json::from_value(shade)?).await?;
    let until = async |what: &str, is: &dyn Fn(&DynamicObject) -> bool| {
        eventually(what, 2 * WAIT_TIMEOUT, async || {
            let shade = shades.get("web").await.map_err(|error| error.to_string())?;
            if is(&shade) { Ok(()) } else { Err(e2e::yaml(&shade)) }
        })
        .await;
    };
    until("it is protected", &|shade| is_protected(shade)).await;
    shades.delete("web", &DeleteParams::default()).await?;
    until("it is held", &|shade| !shade.annotations().is_empty()).await;
    Ok(())
}

async fn force(namespace: &Namespace) -> kube::Result<DynamicObject> {
    let shades = shades(namespace);
    let forced = force_release(&shades.get("web").await?);
    shades.patch("web", &PatchParams::default(), &Patch::Merge(forced)).await
}

async fn until_gone(namespace: &Namespace) {
    let shades = shades(namespace);
    eventually("it is gone", 2 * WAIT_TIMEOUT, async || match shades.get_opt("web").await {
        Ok(None) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
}

#[tokio::test]
async fn an_object_whose_kind_is_not_served_for_a_while_is_not_taken_for_gone() -> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    protect(&cluster).await?;
    until_nothing_is_protected(&cluster).await;
    let (namespace, lost) = (cluster.namespace("hidden").await?, cluster.namespace("lost").await?);
    serve(&cluster, &namespace, true).await?;
    hold(&namespace).await?;
    hold(&lost).await?;

    serve(&cluster, &namespace, false).await?;
    let event = namespace.until_event("web", "KindNotServed").await;
    ensure!(event.contains("served: true"), "{event}");
    let held = catena(&namespace.name, &["held", "-o", "json"]).await?;
    ensure!(held.code == 1, "{held:?}");
    let held = held.json()?;
    let unseen = held["notSeen"].as_array().context("notSeen")?;
    ensure!(unseen.iter().any(|gap| gap["what"] == "Shade.e2e.catena.dev"), "{held}");
    let refused = Release::try_uninstall(&cluster, BACKUPS).await;
    ensure!(refused.is_err(), "it was uninstalled");
    BACKUPS.until_ready(&cluster).await;

    // Kubernetes deletes a namespace without the objects that it cannot see.
    let namespaces = cluster.all::<CoreNamespace>();
    namespaces.delete(&lost.name, &DeleteParams::default()).await?;
    cluster.until_namespace_gone(&lost.name).await;
    serve(&cluster, &namespace, true).await?;
    force(&namespace).await?;
    until_gone(&namespace).await;
    // Before Kubernetes 1.37, nothing can be changed in a namespace that does not exist.
    match force(&lost).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => {
            let again = serde_json::from_value(json!({"metadata": {"name": lost.name}}))?;
            namespaces.create(&PostParams::default(), &again).await?;
            force(&lost).await?;
        }
        forced => drop(forced?),
    }
    until_gone(&lost).await;

    let uninstalled = Release::uninstall(&cluster, BACKUPS).await?;
    tokio::task::spawn_blocking(move || drop(uninstalled)).await?;
    Release::set(BACKUPS, &protecting()?).await?;
    BACKUPS.until_ready(&cluster).await;
    Ok(())
}

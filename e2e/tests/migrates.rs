//! kubectl catena upgrade migrate: from version to version of a definition and back, without a webhook and without loss.

use std::process::Stdio;

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentSpec};
use e2e::{
    Cluster, OwnKind, Undo, WAIT_TIMEOUT, catena, catena_process,
    commands::{restart, until_restarted},
    deployment, eventually, kubectl, succeeds, uids,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

/// The number of objects; 500 are migrated by hand.
fn count(default: usize) -> Result<usize> {
    std::env::var("CATENA_OBJECTS").map_or(Ok(default), |count| Ok(count.parse()?))
}

fn fields(names: &[&str]) -> Value {
    names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect()
}

/// Name and spec of each object.
fn specs(objects: Vec<(String, String, Value)>) -> Vec<(String, Value)> {
    objects.into_iter().map(|(name, _, data)| (name, data["spec"].clone())).collect()
}

fn deprecated(mut version: Value) -> Value {
    version["deprecated"] = true.into();
    version["deprecationWarning"] = "use v2".into();
    version
}

#[tokio::test]
async fn objects_go_to_the_next_version_and_back_without_loss() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("migrate").await?;
    let kind = OwnKind::new(&cluster, &namespace);
    let former = kind.definition(&[OwnKind::version("v1", true, &fields(&["color", "size"]))]);
    kind.install(&former).await?;
    let count = count(40)?;
    let spec = |number| json!({"color": format!("color {number}"), "size": "7"});
    kind.create("v1", (0..count).map(spec).collect()).await?;
    let before = specs(kind.objects("v1").await?);

    // A field is added to both versions, and an old one stays.
    let all = fields(&["added", "color", "size"]);
    let both = |stored: &str| {
        kind.definition(&[
            deprecated(OwnKind::version("v1", stored == "v1", &all)),
            OwnKind::version("v2", stored == "v2", &all),
        ])
    };
    let next = kind.file("next.yaml", &both("v2"))?;
    succeeds(&namespace.name, &["upgrade", "check", &next]).await?;
    kind.install(&both("v2")).await?;
    assert_eq!(kind.stored_versions().await?, ["v1", "v2"]);
    let name = kind.name();
    // A migration that ends in the middle is continued.
    let untouched = kind.objects("v2").await?;
    let mut first =
        catena_process(&namespace.name, &["upgrade", "migrate", &name])?.stdout(Stdio::null()).spawn()?;
    eventually("an object is migrated", WAIT_TIMEOUT, async || {
        let objects = kind.objects("v2").await.map_err(|error| error.to_string())?;
        if objects == untouched { Err("none yet".to_owned()) } else { Ok(()) }
    })
    .await;
    first.start_kill()?;
    first.wait().await?;
    let done = succeeds(&namespace.name, &["upgrade", "migrate", &name, "-o", "json"]).await?.json()?;
    assert_eq!(done["storedVersions"], json!(["v2"]), "{done}");
    assert_eq!(kind.stored_versions().await?, ["v2"]);
    for version in ["v1", "v2"] {
        assert_eq!(specs(kind.objects(version).await?), before, "in {version}");
    }

    // The way back: to the former storage version, and then to the former definition.
    let too_early = kind.file("former.yaml", &former)?;
    let said = catena(&namespace.name, &["upgrade", "check", &too_early]).await?;
    assert!(said.code == 4 && said.out.contains("status.storedVersions"), "{said:?}");
    succeeds(&namespace.name, &["upgrade", "migrate", &name, "--to", "v1"]).await?;
    assert_eq!(kind.stored_versions().await?, ["v1"]);
    let said = catena(&namespace.name, &["upgrade", "check", &too_early, "-o", "json"]).await?.json()?;
    assert_eq!(said["definitions"][0]["pruned"], json!([]), "{said}");
    // The first step has taken over the list of versions from whoever applied it.
    let apply = ["apply", "--server-side", "--field-manager", "e2e", "--filename", &too_early];
    let refused = kubectl(&apply).await.unwrap_err().to_string();
    assert!(refused.contains("kubectl-catena"), "{refused}");
    kubectl(&[&apply[..], &["--force-conflicts"]].concat()).await?;
    kind.install(&former).await?;
    assert_eq!(specs(kind.objects("v1").await?), before);
    Ok(())
}

#[tokio::test]
async fn an_object_that_would_lose_a_value_is_named_and_left_until_the_loss_is_accepted() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("migrate-loss").await?;
    let kind = OwnKind::new(&cluster, &namespace);
    let v1 = |is_stored| OwnKind::version("v1", is_stored, &fields(&["color", "size"]));
    kind.install(&kind.definition(&[v1(true)])).await?;
    kind.create("v1", vec![json!({"size": "1"}), json!({"size": "2", "color": "red"})]).await?;
    let before = specs(kind.objects("v1").await?);
    kind.install(&kind.definition(&[v1(false), OwnKind::version("v2", true, &fields(&["size"]))])).await?;

    let migrate = ["upgrade", "migrate", &kind.name(), "-o", "json"].map(str::to_owned);
    let migrate: Vec<&str> = migrate.iter().map(String::as_str).collect();
    let said = catena(&namespace.name, &migrate).await?;
    assert_eq!(said.code, 4, "{said:?}");
    let left = said.json()?["left"].clone();
    let fields = json!([{"path": "spec.color", "value": "red"}]);
    assert_eq!(left, json!([{"namespace": namespace.name, "name": "gadget-1", "fields": fields}]));
    assert_eq!(specs(kind.objects("v1").await?), before, "something was lost");
    assert_eq!(kind.stored_versions().await?, ["v1", "v2"]);

    succeeds(&namespace.name, &[&migrate[..], &["--drop", "spec.color"]].concat()).await?;
    assert_eq!(kind.stored_versions().await?, ["v2"]);
    assert_eq!(specs(kind.objects("v1").await?)[1].1, json!({"size": "2"}));
    Ok(())
}

#[tokio::test]
async fn a_version_that_nobody_can_read_is_given_up_only_by_name() -> Result<()> {
    let cluster = Cluster::with(&[]).await?;
    let namespace = cluster.namespace("migrate-unread").await?;
    let kind = OwnKind::new(&cluster, &namespace);
    let version = |name, is_stored| OwnKind::version(name, is_stored, &fields(&["size"]));
    kind.install(&kind.definition(&[version("v1", true)])).await?;
    kind.create("v1", vec![json!({"size": "1"})]).await?;
    let mut unserved = version("v1", false);
    unserved["served"] = false.into();
    kind.install(&kind.definition(&[unserved, version("v2", true)])).await?;
    let name = kind.name();
    let said = catena(&namespace.name, &["upgrade", "migrate", &name]).await?;
    assert!(said.code == 1 && said.err.contains("--unread v1"), "{said:?}");
    succeeds(&namespace.name, &["upgrade", "migrate", &name, "--unread", "v1"]).await?;
    assert_eq!(kind.stored_versions().await?, ["v2"]);
    for (arguments, told) in [
        (&["upgrade", "migrate", "nonsense"][..], "the server has no kind"),
        (&["upgrade", "migrate", "pods"], "only objects of custom kinds are migrated"),
        (&["upgrade", "migrate", &name, "--to", "v9"], "does not serve a version \"v9\""),
    ] {
        let said = catena(&namespace.name, arguments).await?;
        assert!(said.code == 1 && said.err.contains(told), "{arguments:?}: {said:?}");
    }
    Ok(())
}

/// The next version of the definition of `BasicDeployments`, with an added field; the present one is deprecated.
fn next_of(definition: &CustomResourceDefinition) -> Result<Value> {
    let mut next = serde_json::to_value(&definition.spec)?;
    let mut present = next["versions"][0].clone();
    let schema = "/schema/openAPIV3Schema/properties/spec/properties";
    present.pointer_mut(schema).context("schema")?["notes"] = json!({"type": "string"});
    let mut added = present.clone();
    added["name"] = "v2".into();
    present["storage"] = false.into();
    next["versions"] = json!([added, deprecated(present)]);
    Ok(next)
}

mod alone {
    use super::{
        Api, BasicDeployment, BasicDeploymentSpec, Cluster, CustomResourceDefinition, ListParams, Patch,
        PatchParams, ResourceExt, Result, Undo, count, deployment, json, next_of, restart, succeeds, uids,
        until_restarted,
    };

    #[tokio::test]
    async fn basic_deployments_go_there_and_back_while_restarts_run() -> Result<()> {
        let cluster = Cluster::alone().await?;
        let namespace = cluster.namespace("migrate-live").await?;
        let count = count(6)?;
        for number in 0..count {
            namespace.create(&deployment(&format!("web-{number}"), 1)).await?;
        }
        let mut before = Vec::new();
        for number in 0..count {
            before.push(namespace.until_ready(&format!("web-{number}")).await);
        }
        let pods = namespace.until_ready_pods(count).await;
        let definitions: Api<CustomResourceDefinition> = cluster.all();
        let name = "basicdeployments.catena.dev";
        let former = Undo::keep(&definitions, name).await?;
        let next = next_of(&definitions.get(name).await?)?;

        // Every second one is restarted, half of them before and half of them after the upgrade.
        let restarted: Vec<&BasicDeployment> = before.iter().step_by(2).collect();
        let (early, late) = restarted.split_at(restarted.len() / 2);
        let again = |web: &BasicDeployment| format!("{}-again", web.name_any());
        for web in early {
            namespace.create(&restart(web, &again(web))).await?;
        }
        definitions.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": next}))).await?;
        let stored = async || -> Result<Vec<String>> {
            Ok(definitions
                .get(name)
                .await?
                .status
                .and_then(|status| status.stored_versions)
                .unwrap_or_default())
        };
        for web in late {
            namespace.create(&restart(web, &again(web))).await?;
        }
        succeeds(&namespace.name, &["upgrade", "migrate", name]).await?;
        assert_eq!(stored().await?, ["v2"]);
        succeeds(&namespace.name, &["upgrade", "migrate", name, "--to", "v1alpha1"]).await?;
        assert_eq!(stored().await?, ["v1alpha1"]);
        former.now(cluster.client.clone()).await?;
        for web in &restarted {
            until_restarted(&namespace, &again(web)).await;
        }
        for web in &before {
            let after = namespace.until_ready(&web.name_any()).await;
            // A restart changes one field.
            let spec =
                BasicDeploymentSpec { restarted_at: after.spec.restarted_at.clone(), ..web.spec.clone() };
            assert_eq!((after.spec, after.metadata.uid), (spec, web.metadata.uid.clone()));
        }
        let of = |web: &BasicDeployment, pods: &[k8s_openapi::api::core::v1::Pod]| {
            let own = pods.iter().filter(|pod| pod.name_any().starts_with(&format!("{}-", web.name_any())));
            uids(&own.cloned().collect::<Vec<_>>())
        };
        let after = namespace.until_ready_pods(count).await;
        for web in before.iter().skip(1).step_by(2) {
            assert_eq!(of(web, &after), of(web, &pods), "a pod of {} was replaced", web.name_any());
        }
        let listed = namespace.api::<BasicDeployment>().list(&ListParams::default()).await?;
        assert_eq!(listed.items.len(), count);
        Ok(())
    }
}

//! A field that the API server would drop in silence is refused: the object says so within seconds, with the field and the
//! template, and nothing is written. The checks before an installation find the same.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::{
    BasicDeployment, BasicReplicaSet,
    keys::{BACKUP_FINALIZER, BACKUP_OF, BACKUP_STATUS},
};
use e2e::{
    AuditLog, BACKUP_BY, BACKUPS, Cluster, Controller, DEPLOYMENTS, Namespace, REPLICA_SETS, Release, Tally,
    WAIT_TIMEOUT, backup_example, catena, condition, deployment, eventually, explained, force_release, has,
    helm, is_protected, kubectl, kubectl_apply, kubectl_with_input, open_kind, protect, replica_set,
    shipped_template,
};
use k8s_openapi::{
    api::{
        apps::v1::ControllerRevision,
        core::v1::{ConfigMap, Pod},
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{Api, ResourceExt, api::ListParams};
use serde_json::{Value, json};

/// Longest time until a mistake is told.
const TOLD_WITHIN: Duration = Duration::from_secs(10);

/// The values with a template beside the shipped one, in which a field is misspelt.
fn misspelling(controller: Controller, right: &str, wrong: &str) -> Result<Value> {
    let shipped = shipped_template(controller)?;
    let misspelt = shipped.replace(right, wrong);
    ensure!(misspelt != shipped, "the shipped template has no {right} by now");
    Ok(json!({"templates": {"default": shipped, "misspelt": misspelt}}))
}

fn is_stalled(conditions: &[Condition], field: &str) -> bool {
    condition(conditions, "Stalled").is_some_and(|stalled| {
        stalled.status == "True"
            && stalled.reason == "Invalid"
            && stalled.message.contains(field)
            && stalled.message.contains("the template \"misspelt\" sets it")
    })
}

/// `helm test` fails, because the controller names the template and the field.
async fn is_found_by_helm_test(cluster: &Cluster, controller: Controller, field: &str) -> Result<()> {
    let (status, said) = controller.until_ready(cluster).await.page("selftest").await?;
    ensure!(
        status == 503 && said.contains("template \"misspelt\"") && said.contains(field),
        "{status} {said}"
    );
    ensure!(!said.contains("template \"default\""), "{said}");
    ensure!(helm(&["test", controller.name(), "--timeout=60s"]).await.is_err(), "helm test passed");
    Ok(())
}

/// `why` names the field and the remedy.
async fn is_explained(namespace: &Namespace, object: &str, field: &str) -> Result<()> {
    let said = explained(&namespace.name, &[object]).await?.out;
    ensure!(said.contains(field) && said.contains("correct the name of the field"), "{said}");
    Ok(())
}

/// The plugin finds it in the values, and accepts them without it.
async fn is_found_in_the_values(namespace: &Namespace, values: &Value, field: &str) -> Result<()> {
    let file = std::env::temp_dir().join(format!("{}-{}.json", namespace.name, std::process::id()));
    let path = file.display().to_string();
    let check = ["templates", "check", "-f", &path, "-o", "json"];
    std::fs::write(&file, values.to_string())?;
    let said = catena(&namespace.name, &check).await?;
    ensure!(said.code == 1, "{said:?}");
    let trials = said.json()?;
    let refused: Vec<_> =
        trials.as_array().into_iter().flatten().filter(|trial| trial["outcome"] == "refused").collect();
    let [refused] = refused[..] else { anyhow::bail!("one template is misspelt: {trials}") };
    ensure!(refused["template"].as_str().is_some_and(|name| name.contains("misspelt")), "{refused}");
    ensure!(refused["note"].as_str().is_some_and(|note| note.contains(field)), "{refused}");
    let mut right = values.clone();
    for key in ["templates", "backups"] {
        if let Some(templates) = right[key].as_object_mut() {
            templates.remove("misspelt");
        }
    }
    std::fs::write(&file, right.to_string())?;
    let said = catena(&namespace.name, &check).await;
    std::fs::remove_file(&file)?;
    let said = said?;
    ensure!(said.code == 0, "{said:?}");
    Ok(())
}

#[tokio::test]
async fn a_misspelt_probe_in_a_pod_template_is_told_and_no_pod_is_made() -> Result<()> {
    let cluster = Cluster::changing(&[REPLICA_SETS]).await?;
    let namespace = cluster.namespace("probes").await?;
    let values = misspelling(REPLICA_SETS, "readinessProbe:", "readinessProb:")?;
    let field = "spec.containers[0].readinessProb";
    let release = Release::upgrade(&cluster, REPLICA_SETS, &values).await?;
    let misspelt = |name: &str| {
        let mut set = replica_set(name, 2);
        set.spec.template = "misspelt".into();
        set.spec.parameters.insert("port".into(), "8080".into());
        set
    };
    // The settings arrive after a time.
    namespace.create(&misspelt("first")).await?;
    let tells = |set: &BasicReplicaSet| {
        set.status.as_ref().is_some_and(|status| is_stalled(&status.conditions, field))
    };
    namespace.until("first", "tells the field", tells).await;

    let log = has(&[e2e::Need::AuditLog]).then(AuditLog::from_now).transpose()?;
    namespace.create(&misspelt("web")).await?;
    namespace.until_soon(TOLD_WITHIN, "web", "tells the field", tells).await?;
    ensure!(namespace.until_event("web", "Invalid").await.contains(field));
    let pods = namespace.api::<Pod>().list(&ListParams::default()).await?;
    ensure!(pods.items.is_empty(), "{:?}", e2e::names(&pods.items));
    is_explained(&namespace, "basicreplicaset/web", field).await?;
    is_found_by_helm_test(&cluster, REPLICA_SETS, field).await?;
    is_found_in_the_values(&namespace, &values, field).await?;
    if let Some(log) = log {
        let requests = log.by(REPLICA_SETS, &namespace.name)?;
        let created = requests.iter().filter(|request| request.is("create", "pods")).count();
        ensure!(created <= 16, "it is hot: {:?}", Tally::of(&requests));
    }
    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"template": "default"}})).await?;
    namespace.until_set_ready("web").await;
    release.restore().await
}

#[tokio::test]
async fn a_misspelt_field_in_the_template_of_a_child_is_told_and_no_child_is_made_or_changed() -> Result<()> {
    let cluster = Cluster::changing_one_of(&[REPLICA_SETS], DEPLOYMENTS).await?;
    let namespace = cluster.namespace("children").await?;
    let values = misspelling(DEPLOYMENTS, "parameters:", "parametres:")?;
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values).await?;
    let misspelt = |name: &str| {
        let mut deployment = deployment(name, 1);
        deployment.spec.template = "misspelt".into();
        deployment
    };
    let tells = |web: &BasicDeployment| {
        web.status.as_ref().is_some_and(|status| is_stalled(&status.conditions, "spec.parametres"))
    };
    namespace.create(&misspelt("first")).await?;
    namespace.until("first", "tells the field", tells).await;
    namespace.create(&misspelt("web")).await?;
    namespace.until_soon(TOLD_WITHIN, "web", "tells the field", tells).await?;
    ensure!(namespace.until_event("web", "Invalid").await.contains("spec.parametres"));
    let sets = namespace.api::<BasicReplicaSet>().list(&ListParams::default()).await?;
    ensure!(sets.items.is_empty(), "a child was made: {sets:?}");
    is_explained(&namespace, "basicdeployment/web", "spec.parametres").await?;
    is_found_by_helm_test(&cluster, DEPLOYMENTS, "spec.parametres").await?;
    is_found_in_the_values(&namespace, &values, "spec.parametres").await?;

    let template = |name: &str| json!({"spec": {"template": name}});
    namespace.merge::<BasicDeployment>("web", template("default")).await?;
    namespace.until_ready("web").await;
    let before = namespace.api::<BasicReplicaSet>().get("web").await?;
    namespace.merge::<BasicDeployment>("web", template("misspelt")).await?;
    namespace.until_soon(TOLD_WITHIN, "web", "tells the field", tells).await?;
    let after = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!(after.metadata.generation, before.metadata.generation, "the child was changed");
    release.restore().await
}

#[tokio::test]
async fn a_misspelt_field_in_the_template_of_a_backup_holds_the_object_and_makes_no_empty_backup()
-> Result<()> {
    let cluster = Cluster::changing(&[BACKUPS]).await?;
    let namespace = cluster.namespace("backups").await?;
    let mut values = backup_example("manifest")?;
    let backup = values["backups"]["configmap"].clone();
    let template = backup["template"].as_str().context("template")?.replace("\ndata:", "\ndatta:");
    let mut misspelt = backup.clone();
    misspelt["template"] = template.into();
    // As soon as it is there, it would be proven.
    misspelt["succeeded"] = "true".into();
    values["backups"]["misspelt"] = misspelt;
    values["kinds"]["configmaps"]["selector"]["matchLabels"] = json!({BACKUP_BY: "misspelt"});
    values["kinds"]["configmaps"]["backup"] = "misspelt".into();
    let _release = Release::upgrade(&cluster, BACKUPS, &values).await?;
    BACKUPS.until_ready(&cluster).await;
    is_found_in_the_values(&namespace, &values, "datta").await?;

    let map = json!({"metadata": {"name": "web", "labels": {BACKUP_BY: "misspelt"}}, "data": {"a": "b"}});
    namespace.create::<ConfigMap>(&serde_json::from_value(map)?).await?;
    let map = namespace.until("web", "is protected", |map: &ConfigMap| is_protected(map)).await;
    namespace.delete::<ConfigMap>("web").await?;
    let told = |map: &ConfigMap| -> Value {
        let text = map.annotations().get(BACKUP_STATUS);
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let held = namespace
        .until_soon(TOLD_WITHIN, "web", "tells the field", |map: &ConfigMap| {
            let told = told(map);
            told["state"] == "Blocked"
                && told["reason"] == "Invalid"
                && told["message"].as_str().is_some_and(|message| message.contains("datta"))
        })
        .await?;
    let message = told(&held)["message"].as_str().unwrap_or_default().to_owned();
    ensure!(message.contains("backups.misspelt.template"), "{message}");
    ensure!(is_protected(&held), "it was released");
    let made = Api::<ControllerRevision>::namespaced(cluster.client.clone(), "catena-system");
    let of = ListParams::default().labels(&format!("{}={}", BACKUP_OF, map.uid().context("uid")?));
    ensure!(made.list(&of).await?.items.is_empty(), "an empty backup was made");
    is_explained(&namespace, "configmap/web", "datta").await?;
    is_found_by_helm_test(&cluster, BACKUPS, "datta").await?;

    namespace.merge::<ConfigMap>("web", force_release(&held)).await?;
    namespace.until_gone::<ConfigMap>("web").await;
    Ok(())
}

/// Somebody else's objects may hold fields that their present definition does not have.
#[tokio::test]
async fn fields_that_others_left_in_an_object_keep_nobody_from_protecting_and_releasing_it() -> Result<()> {
    let cluster = Cluster::with(&[BACKUPS]).await?;
    protect(&cluster).await?;
    let namespace = cluster.namespace("leftovers").await?;
    let name = "leftovers.e2e.catena.dev";
    let mut definition = open_kind("e2e.catena.dev", "Leftover", &["v1"]);
    definition["metadata"] = namespace.owns(name);
    kubectl_apply(&namespace.name, &definition.to_string()).await?;
    let object = json!({
        "apiVersion": "e2e.catena.dev/v1", "kind": "Leftover", "metadata": {"name": "web"},
        "spec": {"size": 1, "former": "left"}, "former": true,
    });
    eventually("the kind is served", WAIT_TIMEOUT, async || {
        kubectl_apply(&namespace.name, &object.to_string()).await.map_err(|error| error.to_string())
    })
    .await;
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}}});
    let closed = json!({"type": "object", "properties": {"spec": spec}});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = closed;
    kubectl_apply(&namespace.name, &definition.to_string()).await?;
    eventually("the closed schema is in force", WAIT_TIMEOUT, async || {
        let unknown = json!({
            "apiVersion": "e2e.catena.dev/v1", "kind": "Leftover", "metadata": {"name": "probe"},
            "spec": {"former": "new"},
        });
        let arguments = ["create", "--namespace", &namespace.name, "--filename", "-", "--dry-run=server"];
        match kubectl_with_input(&arguments, &unknown.to_string()).await {
            Ok((false, said)) if said.contains("spec.former") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;

    let kind = "leftovers.e2e.catena.dev";
    let place = format!("--namespace={}", namespace.name);
    kubectl(&["label", kind, "web", &place, &format!("{BACKUP_BY}=manifest")]).await?;
    eventually("it is protected", WAIT_TIMEOUT, async || {
        let finalizers = ["get", kind, "web", &place, "--output=jsonpath={.metadata.finalizers}"];
        let said = kubectl(&finalizers).await.map_err(|error| error.to_string())?;
        if said.contains(BACKUP_FINALIZER) { Ok(()) } else { Err(said) }
    })
    .await;
    kubectl(&["delete", kind, "web", &place, "--timeout=60s"]).await?;
    Ok(())
}

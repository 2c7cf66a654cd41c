//! Commands for a BasicDeployment that must not or cannot be carried out report so, and hold up no other.

use anyhow::{Context, Result};
use catena_api::{BasicDeployment, BasicDeploymentRestart, BasicReplicaSet, command::SUCCEEDED};
use e2e::{
    BINDER, COMMANDED, Cluster, DEPLOYMENTS, Effects, Namespace, Release, RequestUnderWay, Undo,
    WAIT_TIMEOUT,
    commands::{
        self, condition_of, has_outcome, owned_by, queue_restarts, restart, until_restart_outcome,
        until_restarted,
    },
    deployment, eventually, kinds_without_admission,
};
use k8s_openapi::{
    api::core::v1::ConfigMap,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    discovery::ApiResource,
};
use serde_json::json;

type Restart = BasicDeploymentRestart;

#[tokio::test]
async fn a_command_that_names_another_target_is_not_run() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("others").await?;
    let web = commands::ready(&namespace, 2).await?;
    let effects = Effects::record(&namespace).await;

    let mut misdirected = restart(&web, "misdirected");
    misdirected.spec.target_ref.name = "nobody".into();
    namespace.create(&misdirected).await?;
    until_restart_outcome(&namespace, "misdirected", "Unknown", "NotTheTarget").await;

    // A younger command runs, so the others were passed over and do not just wait.
    let own = namespace.create(&restart(&web, "own")).await?;
    until_restarted(&namespace, "own").await;
    assert_eq!(effects.so_far(), [own.uid().unwrap_or_default()]);
    Ok(())
}

#[tokio::test]
async fn a_parent_that_was_made_again_is_not_touched_by_commands_that_waited() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("again").await?;
    let web = commands::ready(&namespace, 2).await?;
    let other = ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some("keeps".into()), ..Default::default() },
        ..Default::default()
    };
    let other = namespace.create(&other).await?;
    // A second owner, so that the garbage collector keeps the commands.
    let keeps = OwnerReference { controller: None, ..other.controller_owner_ref(&()).context("owner")? };
    let owners = json!({"metadata": {"ownerReferences": [owned_by(&web), keeps]}});
    for command in queue_restarts(&namespace, &web, 2).await? {
        namespace.merge::<Restart>(&command.name_any(), owners.clone()).await?;
    }
    namespace.delete::<BasicDeployment>("web").await?;
    namespace.until_gone::<BasicDeployment>("web").await;
    namespace.until_collected::<BasicReplicaSet>("web").await;

    let effects = Effects::record(&namespace).await;
    let again = commands::ready(&namespace, 2).await?;
    // The garbage collector removed the reference to the deleted owner; a comparison by name would take the command for a new one.
    for name in ["again-0", "again-1"] {
        namespace.merge::<Restart>(name, owners.clone()).await?;
    }
    let fresh = namespace.create(&restart(&again, "fresh")).await?;
    until_restarted(&namespace, "fresh").await;
    assert_eq!(effects.so_far(), [fresh.uid().unwrap_or_default()]);
    for name in ["again-0", "again-1"] {
        let waiting = namespace.api::<Restart>().get(name).await?;
        assert!(
            condition_of(&waiting, SUCCEEDED).is_some_and(|said| said.status == "Unknown"),
            "{name} ended"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_malformed_command_or_one_from_elsewhere_does_not_run_and_blocks_nobody() -> Result<()> {
    let cluster = Cluster::changing(&COMMANDED).await?;
    let namespace = cluster.namespace("malformed").await?;
    let web = commands::ready(&namespace, 2).await?;
    let release = Release::upgrade(&cluster, BINDER, &json!({"kinds": kinds_without_admission()?})).await?;
    let definitions = cluster.all::<CustomResourceDefinition>();
    let definition = "basicdeploymentrestarts.catena.dev";
    let undo = Undo::keep(&definitions, definition).await?;
    let open = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    let open = Patch::Json::<()>(serde_json::from_value(open)?);
    // Controllers still see commands with the defaults of the former definition, which the API server shows no more.
    let under_way = RequestUnderWay::of(&Restart::url_path(&(), Some(&namespace.name))).await?;
    definitions.patch(definition, &PatchParams::default(), &open).await?;
    let kind = ApiResource::erase::<Restart>(&());
    let anything: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &namespace.name, &kind);
    let malformed = DynamicObject::new("malformed", &kind).data(json!({"spec": {"targetRef": "web"}}));
    let malformed = DynamicObject {
        metadata: kube::api::ObjectMeta {
            owner_references: Some(vec![owned_by(&web)]),
            ..malformed.metadata
        },
        ..malformed
    };
    eventually("the API server takes it", WAIT_TIMEOUT, async || {
        anything.create(&PostParams::default(), &malformed).await.map_err(|error| error.to_string())
    })
    .await;

    let elsewhere = cluster.namespace("elsewhere").await?;
    let mut foreign = restart(&web, "foreign");
    foreign.spec.target_ref.namespace = Some(namespace.name.clone());
    elsewhere.create(&foreign).await?;
    let effects = Effects::record(&namespace).await;

    let good = namespace.create(&restart(&web, "good")).await?;
    until_restarted(&namespace, "good").await;
    under_way.end().await?;
    assert_eq!(effects.so_far(), [good.uid().unwrap_or_default()]);
    eventually("it says that it is malformed", WAIT_TIMEOUT, async || {
        let object = anything.get("malformed").await.map_err(|error| error.to_string())?;
        let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is_told = |condition: &serde_json::Value| {
            condition["type"] == SUCCEEDED
                && condition["status"] == "False"
                && condition["reason"] == "Malformed"
                && condition["message"].as_str().is_some_and(|message| message.contains("spec"))
        };
        if conditions.iter().any(is_told) { Ok(()) } else { Err(format!("{:?}", object.data["status"])) }
    })
    .await;
    undo.now(cluster.client.clone()).await?;
    namespace.create(&restart(&web, "after")).await?;
    until_restarted(&namespace, "after").await;
    // Its namespace goes later: until then, `upgrade check` would refuse it in another test.
    anything.delete("malformed", &DeleteParams::background()).await?;
    release.restore().await
}

#[tokio::test]
async fn deleting_a_command_that_waits_cancels_it() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("cancel").await?;
    let web = commands::ready(&namespace, 2).await?;
    let effects = Effects::record(&namespace).await;
    namespace.merge::<BasicDeployment>("web", commands::never_ready()).await?;
    let first = namespace.create(&restart(&web, "first")).await?;
    until_restart_outcome(&namespace, "first", "Unknown", "Running").await;
    namespace.create(&restart(&web, "second")).await?;
    until_restart_outcome(&namespace, "second", "Unknown", "Queued").await;
    namespace.delete::<Restart>("second").await?;
    let third = namespace.create(&restart(&web, "third")).await?;

    let good = deployment("web", 2).spec.parameters;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": good}})).await?;
    until_restarted(&namespace, "third").await;
    assert_eq!(effects.so_far(), [&first, &third].map(|command| command.uid().unwrap_or_default()));
    Ok(())
}

#[tokio::test]
async fn a_child_that_cannot_be_restarted_says_so() -> Result<()> {
    let cluster = Cluster::changing_one_of(&COMMANDED, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("tokenless").await?;
    let web = commands::ready(&namespace, 1).await?;
    let values = json!({"children": [{
        "apiVersion": "catena.dev/v1alpha1", "kind": "BasicReplicaSet", "resource": "basicreplicasets",
        "contract": {"restartedAt": ""},
    }]});
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values).await?;
    until_a_restart_says(&namespace, &web, "False", "ChildHasNoRestart").await;
    release.restore().await?;
    until_a_restart_says(&namespace, &web, "True", "Complete").await;
    Ok(())
}

/// Retries restarts until one ends in this way: settings take effect only after some seconds.
async fn until_a_restart_says(namespace: &Namespace, web: &BasicDeployment, status: &str, reason: &str) {
    eventually(&format!("a restart says {status}, {reason}"), 3 * WAIT_TIMEOUT, async || {
        let restarts = namespace.api::<Restart>();
        let made = restarts.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let name = format!("try-{}", made.items.len());
        namespace.create(&restart(web, &name)).await.map_err(|error| error.to_string())?;
        let has_ended =
            |restart: &Restart| condition_of(restart, SUCCEEDED).is_some_and(|said| said.status != "Unknown");
        let ended = namespace.until(&name, "has ended", has_ended).await;
        if has_outcome(&ended, status, reason) { Ok(()) } else { Err(e2e::yaml(&ended)) }
    })
    .await;
}

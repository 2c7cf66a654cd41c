//! Every rendering of a BasicDeployment is a revision for rollbacks, and a rejected rendering does
//! not return by itself.

use anyhow::{Context, Result};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRollback, BasicReplicaSet, command::SUCCEEDED,
    keys,
};
use e2e::{
    AuditLog, COMMANDED, Cluster, DEPLOYMENTS, Namespace, Release, WAIT_TIMEOUT, another_image,
    commands::{
        condition_of, next_second, owned_by, restart, rollback, until_outcome, until_restart_outcome,
    },
    condition, deployment, eventually, example, is_true, kubectl, kubectl_create, shipped_template, uids,
};
use k8s_openapi::api::{apps::v1::ControllerRevision, core::v1::Pod};
use kube::{ResourceExt, api::ListParams};
use serde_json::json;

type Rollback = BasicDeploymentRollback;

/// A version whose pods never become ready.
const BAD: &str = "registry.invalid/missing:1";

/// The numbers of the revisions, from the oldest to the live one.
async fn numbers(namespace: &Namespace) -> kube::Result<Vec<i64>> {
    let revisions = namespace.api::<ControllerRevision>().list(&ListParams::default()).await?;
    let mut numbers: Vec<_> = revisions.iter().filter_map(|revision| revision.revision).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

async fn until_numbers(namespace: &Namespace, wanted: &[i64]) {
    eventually(&format!("the revisions are {wanted:?}"), WAIT_TIMEOUT, async || {
        match numbers(namespace).await {
            Ok(numbers) if numbers == wanted => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

async fn until_on(namespace: &Namespace, revision: i64) -> BasicDeployment {
    namespace
        .until("web", &format!("is ready on revision {revision}"), |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| status.ready && status.revision == Some(revision))
        })
        .await
}

async fn until_ended(namespace: &Namespace, name: &str, status: &str, reason: &str) -> Rollback {
    until_outcome(namespace, name, status, reason).await
}

async fn version(namespace: &Namespace, version: &str) -> Result<()> {
    let patch = json!({"spec": {"parameters": {"env.VERSION": version}}});
    namespace.merge::<BasicDeployment>("web", patch).await?;
    Ok(())
}

async fn image(namespace: &Namespace, image: &str) -> Result<()> {
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"image": image}}})).await?;
    Ok(())
}

async fn until_blocked(namespace: &Namespace) -> BasicDeployment {
    namespace
        .until("web", "names a pod that blocks", |web: &BasicDeployment| {
            let blocker = web.status.as_ref().and_then(|status| status.blocked_by.as_ref());
            blocker.is_some_and(|blocker| blocker.reason == "ImagePullBackOff")
        })
        .await
}

fn images(pods: &[Pod]) -> Vec<&str> {
    let containers = pods.iter().filter_map(|pod| pod.spec.as_ref()).flat_map(|spec| &spec.containers);
    containers.filter_map(|container| container.image.as_deref()).collect()
}

fn is_rolled_back(web: &BasicDeployment) -> bool {
    web.status.as_ref().is_some_and(|status| is_true(&status.conditions, "RolledBack"))
}

/// A `BasicDeployment` whose second revision never becomes ready.
async fn on_a_bad_version(namespace: &Namespace) -> Result<BasicDeployment> {
    namespace.create(&deployment("web", 2)).await?;
    until_on(namespace, 1).await;
    image(namespace, BAD).await?;
    Ok(until_blocked(namespace).await)
}

#[tokio::test]
async fn each_rendering_is_a_revision_and_scaling_is_none() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("history").await?;
    let log = AuditLog::from_now()?;
    let web = namespace.create(&deployment("web", 2)).await?;
    until_on(&namespace, 1).await;
    let requests = log.by(DEPLOYMENTS, &namespace.name)?;
    let place = |verb, resource| requests.iter().position(|request| request.is(verb, resource));
    let stored = place("create", "controllerrevisions").context("no revision was created")?;
    assert!(Some(stored) < place("patch", "basicreplicasets"), "the child came before its revision");

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 3}})).await?;
    namespace.until_ready_pods(3).await;
    version(&namespace, "2").await?;
    until_on(&namespace, 2).await;
    let revisions = namespace.api::<ControllerRevision>().list(&ListParams::default()).await?;
    assert_eq!(revisions.items.len(), 2);
    for revision in &revisions {
        let owners: Vec<_> = revision.owner_references().iter().map(|owner| owner.uid.clone()).collect();
        assert_eq!(Some(owners), web.uid().map(|uid| vec![uid]));
    }

    // Back to the former rendering: the same revision, with a new number.
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": {"env.VERSION": null}}})).await?;
    until_on(&namespace, 3).await;
    until_numbers(&namespace, &[2, 3]).await;
    Ok(())
}

#[tokio::test]
async fn only_so_many_old_revisions_are_kept() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("limit").await?;
    let mut web = deployment("web", 1);
    web.spec.revision_history_limit = 2;
    namespace.create(&web).await?;
    until_on(&namespace, 1).await;
    for number in 2..=5 {
        version(&namespace, &number.to_string()).await?;
        until_on(&namespace, number).await;
    }
    until_numbers(&namespace, &[3, 4, 5]).await;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"revisionHistoryLimit": 0}})).await?;
    until_numbers(&namespace, &[5]).await;
    Ok(())
}

#[tokio::test]
async fn the_example_takes_a_bad_version_back_and_what_comes_next_is_followed() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("rollback").await?;
    let mut hello = deployment("hello", 3);
    hello.spec.progress_deadline_seconds = 600;
    namespace.create(&hello).await?;
    namespace.until_ready("hello").await;
    let before = namespace.until_ready_pods(3).await;
    namespace.merge::<BasicDeployment>("hello", json!({"spec": {"parameters": {"image": BAD}}})).await?;
    let blocked = namespace
        .until("hello", "is blocked", |hello: &BasicDeployment| {
            hello.status.as_ref().is_some_and(|status| status.blocked_by.is_some())
        })
        .await;

    let made = kubectl_create(&namespace.name, &example("rollback.yaml")?).await?;
    let name = made.rsplit('/').next().context("kubectl names nothing")?;
    namespace.merge::<Rollback>(name, json!({"metadata": {"ownerReferences": [owned_by(&blocked)]}})).await?;
    let waits = ["wait", "--for=condition=Succeeded", &made, "--timeout=60s"];
    kubectl(&[&waits[..], &["--namespace", &namespace.name]].concat()).await?;

    let after = namespace.until("hello", "is ready and says why", |hello: &BasicDeployment| {
        is_rolled_back(hello) && hello.status.as_ref().is_some_and(|status| status.ready)
    });
    let after = after.await;
    assert_eq!(after.metadata.generation, blocked.metadata.generation, "the parent's spec was changed");
    assert_eq!(after.spec, blocked.spec);
    let pods = namespace.until_ready_pods(3).await;
    assert!(!images(&pods).contains(&BAD));
    assert!(!uids(&pods).is_disjoint(&uids(&before)), "good pods were replaced in vain");

    // Scaling creates no new rendering, so the rollback stays in force.
    namespace.merge::<BasicDeployment>("hello", json!({"spec": {"replicas": 4}})).await?;
    let pods = namespace.until_ready_pods(4).await;
    assert!(!images(&pods).contains(&BAD));
    // The next rendering is followed.
    let good = json!({"spec": {"parameters": {"image": another_image()}}});
    namespace.merge::<BasicDeployment>("hello", good).await?;
    let followed = namespace.until("hello", "follows its spec again", |hello: &BasicDeployment| {
        !is_rolled_back(hello)
            && hello
                .status
                .as_ref()
                .is_some_and(|status| status.ready && status.observed_generation == hello.metadata.generation)
    });
    assert_eq!(followed.await.status.and_then(|status| status.revision), Some(4));
    assert_eq!(images(&namespace.until_ready_pods(4).await), vec![another_image(); 4]);
    Ok(())
}

#[tokio::test]
async fn a_rolled_back_child_that_somebody_deletes_comes_back_as_it_was() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("deleted").await?;
    let web = on_a_bad_version(&namespace).await?;
    namespace.create(&rollback(&web, "undo", 0)).await?;
    until_ended(&namespace, "undo", "True", "Complete").await;
    until_numbers(&namespace, &[2, 3]).await;

    let child = namespace.api::<BasicReplicaSet>().get("web").await?;
    namespace.delete::<BasicReplicaSet>("web").await?;
    namespace.until("web", "is there again", |again: &BasicReplicaSet| again.uid() != child.uid()).await;
    let web = until_on(&namespace, 3).await;
    assert!(is_rolled_back(&web));
    assert!(!images(&namespace.until_ready_pods(2).await).contains(&BAD));
    let again = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!(again.annotations().get(keys::HASH), child.annotations().get(keys::HASH));
    Ok(())
}

#[tokio::test]
async fn a_copy_of_a_rolled_back_object_follows_its_spec() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("copied").await?;
    let web = on_a_bad_version(&namespace).await?;
    namespace.create(&rollback(&web, "undo", 0)).await?;
    until_ended(&namespace, "undo", "True", "Complete").await;
    let pinned = until_on(&namespace, 3).await;
    let listed = pinned.status.clone().context("status")?.revisions;
    assert_eq!(listed.iter().map(|one| one.number).collect::<Vec<_>>(), [2, 3]);

    let mut copy = deployment("copy", 1);
    (copy.metadata.annotations, copy.spec) = (pinned.metadata.annotations.clone(), pinned.spec.clone());
    namespace.create(&copy).await?;
    let is_unpinned = |copy: &BasicDeployment| !copy.annotations().contains_key(keys::PINNED_REVISION);
    namespace.until("copy", "has no pin", is_unpinned).await;
    let is_blocked = |copy: &BasicDeployment| {
        copy.status.as_ref().is_some_and(|status| status.blocked_by.is_some() && !is_rolled_back(copy))
    };
    namespace.until("copy", "serves the bad version", is_blocked).await;
    assert!(is_rolled_back(&namespace.api::<BasicDeployment>().get("web").await?));
    Ok(())
}

#[tokio::test]
async fn a_rollback_goes_to_the_number_that_it_names_and_fails_for_one_that_is_not_there() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("numbers").await?;
    namespace.create(&deployment("web", 1)).await?;
    let web = until_on(&namespace, 1).await;
    let first = namespace.api::<BasicReplicaSet>().get("web").await?;
    for number in [2, 3] {
        version(&namespace, &number.to_string()).await?;
        until_on(&namespace, number).await;
    }
    namespace.create(&rollback(&web, "lost", 9)).await?;
    let lost = until_ended(&namespace, "lost", "False", "RevisionNotFound").await;
    let conditions = lost.status.context("status")?.conditions;
    let message = &condition(&conditions, SUCCEEDED).context("Succeeded")?.message;
    assert!(message.contains("no revision 9") && message.contains("1, 2, 3"), "{message}");

    namespace.create(&rollback(&web, "first", 1)).await?;
    until_ended(&namespace, "first", "True", "Complete").await;
    until_on(&namespace, 4).await;
    let child = namespace.api::<BasicReplicaSet>().get("web").await?;
    assert_eq!(child.spec.parameters, first.spec.parameters);
    until_numbers(&namespace, &[2, 3, 4]).await;

    // The previous revision is the present rendering, so nothing is rejected any longer.
    next_second().await;
    namespace.create(&rollback(&web, "back", 0)).await?;
    until_ended(&namespace, "back", "True", "Complete").await;
    assert!(!is_rolled_back(&until_on(&namespace, 5).await));
    Ok(())
}

#[tokio::test]
async fn a_rollback_that_is_overtaken_by_another_version_is_superseded() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("overtaken").await?;
    let mut web = deployment("web", 2);
    web.spec.parameters.insert("image".into(), BAD.into());
    namespace.create(&web).await?;
    until_blocked(&namespace).await;
    version(&namespace, "2").await?;
    until_numbers(&namespace, &[1, 2]).await;
    let web = namespace.api::<BasicDeployment>().get("web").await?;
    // The previous version is bad too, so that the rollback does not finish until something else happens.
    namespace.create(&rollback(&web, "undo", 0)).await?;
    until_ended(&namespace, "undo", "Unknown", "Running").await;
    let good = deployment("web", 2).spec.parameters;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": good}})).await?;
    until_ended(&namespace, "undo", "False", "Superseded").await;
    namespace.until_ready_pods(2).await;
    Ok(())
}

#[tokio::test]
async fn a_rollback_does_not_wait_for_a_restart_that_is_stuck() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("stuck").await?;
    let web = on_a_bad_version(&namespace).await?;
    namespace.create(&restart(&web, "stuck")).await?;
    until_restart_outcome(&namespace, "stuck", "Unknown", "Running").await;
    namespace.create(&rollback(&web, "undo", 0)).await?;

    let stuck = until_restart_outcome(&namespace, "stuck", "False", "Superseded").await;
    let message = &condition_of(&stuck, SUCCEEDED).context("Succeeded")?.message;
    assert!(message.contains("\"undo\""), "{message}");
    until_ended(&namespace, "undo", "True", "Complete").await;
    assert!(!images(&namespace.until_ready_pods(2).await).contains(&BAD));
    let still = namespace.api::<BasicDeploymentRestart>().get("stuck").await?;
    assert_eq!(still.status, stuck.status);
    Ok(())
}

#[tokio::test]
async fn a_rollback_does_not_wait_for_one_to_a_bad_revision() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("worse").await?;
    let web = on_a_bad_version(&namespace).await?;
    image(&namespace, &another_image()).await?;
    until_on(&namespace, 3).await;
    namespace.create(&rollback(&web, "worse", 2)).await?;
    until_ended(&namespace, "worse", "Unknown", "Running").await;
    next_second().await;
    namespace.create(&rollback(&web, "way-out", 3)).await?;
    until_ended(&namespace, "way-out", "True", "Complete").await;
    until_ended(&namespace, "worse", "False", "Superseded").await;
    assert!(!images(&namespace.until_ready_pods(2).await).contains(&BAD));
    Ok(())
}

#[tokio::test]
async fn a_bad_template_is_rolled_back_until_the_template_moves_on() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing_one_of(&COMMANDED, DEPLOYMENTS).await?;
    let namespace = cluster.namespace("template").await?;
    namespace.create(&deployment("web", 2)).await?;
    let web = until_on(&namespace, 1).await;

    let with_image = |image: &str| -> Result<serde_json::Value> {
        let fixed = format!("parameters: {{image: {image}}}");
        let template = shipped_template(DEPLOYMENTS)?.replace("parameters: {{ parameters }}", &fixed);
        Ok(json!({"templates": {"default": template}}))
    };
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &with_image(BAD)?).await?;
    until_blocked(&namespace).await;
    namespace.create(&rollback(&web, "undo", 0)).await?;
    until_ended(&namespace, "undo", "True", "Complete").await;
    assert!(is_rolled_back(&until_on(&namespace, 3).await));
    // The controller restarts and still knows.
    let process = DEPLOYMENTS.process(&cluster).await?;
    process.kill()?;
    process.until_replaced(&cluster).await;
    DEPLOYMENTS.until_ready(&cluster).await;
    assert!(is_rolled_back(&until_on(&namespace, 3).await));

    release.change(&with_image(&another_image())?).await?;
    let web = until_on(&namespace, 4).await;
    assert!(!is_rolled_back(&web));
    assert_eq!(images(&namespace.until_ready_pods(2).await), vec![another_image(); 2]);
    release.restore().await?;
    until_on(&namespace, 5).await;
    Ok(())
}

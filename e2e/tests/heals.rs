//! Damage by others is repaired.

use std::time::Duration;

use anyhow::{Context, Error, Result, ensure};
use catena_api::{BasicDeployment, BasicDeploymentStatus, BasicReplicaSet, keys};
use e2e::{
    AuditLog, CHAIN, Cluster, DEPLOYMENTS, GROUP_VERSION, Namespace, Namespaced, REPLICA_SETS, Request,
    WAIT_TIMEOUT, condition, deployment, eventually_every, is_true, kubectl, replica_set, uids,
};
use futures::future::try_join_all;
use k8s_openapi::{
    api::{apps::v1::ControllerRevision, core::v1::Pod},
    apimachinery::pkg::util::intstr::IntOrString,
};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// For so long a fight goes on after it was told.
const STILL: Duration = Duration::from_secs(20);

async fn with_three_pods(namespace: &Namespace) -> Result<Vec<Pod>> {
    namespace.create(&deployment("web", 3)).await?;
    namespace.until_ready("web").await;
    Ok(namespace.until_ready_pods(3).await)
}

#[tokio::test]
async fn a_deleted_pod_is_replaced_and_the_others_stay() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("pod").await?;
    let pods = with_three_pods(&namespace).await?;

    namespace.delete::<Pod>(&pods[1].name_any()).await?;
    let mut staying = uids(&pods);
    staying.remove(&pods[1].uid().context("uid")?);
    namespace
        .until_pods("three pods serve, two of them the ones that were not deleted", |now| {
            now.len() == 3 && now.iter().all(e2e::is_ready) && {
                let now = uids(now);
                now.is_superset(&staying) && now.intersection(&uids(&pods)).count() == 2
            }
        })
        .await;
    namespace.until_ready("web").await;
    Ok(())
}

#[tokio::test]
async fn a_deleted_child_is_created_again_with_its_pods() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("child").await?;
    let before = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    namespace.delete::<BasicReplicaSet>("web").await?;
    namespace
        .until("web", "runs another child and is ready", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| {
                status.ready
                    && status.child.as_ref().is_some_and(|now| Some(&now.uid) != child.uid().as_ref())
            })
        })
        .await;
    let after = namespace.until_ready_pods(3).await;
    assert!(uids(&before).is_disjoint(&uids(&after)), "the old pods went with their owner");
    Ok(())
}

#[tokio::test]
async fn what_the_template_says_about_the_child_is_restored_and_the_rest_is_left() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("edit").await?;
    with_three_pods(&namespace).await?;

    let edit = json!({"spec": {"parameters": {"image": "registry.invalid/missing:1"}, "maxSurge": 2}});
    namespace.merge::<BasicReplicaSet>("web", edit).await?;
    let image = |set: &BasicReplicaSet| set.spec.parameters.get("image").cloned();
    let original = deployment("web", 3).spec.parameters.get("image").cloned();
    let set = namespace
        .until("web", "has the image of the BasicDeployment again", |set| image(set) == original)
        .await;
    assert_eq!(set.spec.max_surge, IntOrString::Int(2), "the template does not speak of it");

    namespace.merge::<BasicReplicaSet>("web", json!({"spec": {"replicas": 5}})).await?;
    let set = namespace
        .until("web", "has the replicas of the BasicDeployment again", |set: &BasicReplicaSet| {
            set.spec.replicas == 3
        })
        .await;
    assert_eq!(set.spec.max_surge, IntOrString::Int(2));
    namespace.until_ready("web").await;
    namespace.until_ready_pods(3).await;
    Ok(())
}

#[tokio::test]
async fn a_parameter_that_somebody_adds_to_the_child_is_taken_away() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("added").await?;
    with_three_pods(&namespace).await?;
    let before = namespace.until_set_ready("web").await;

    let edit = json!({"spec": {"parameters": {"env.EVIL": "yes"}, "maxSurge": 2}});
    namespace.merge::<BasicReplicaSet>("web", edit).await?;
    let is_clean = |set: &BasicReplicaSet| set.spec.parameters == before.spec.parameters;
    let set = namespace.until("web", "has the parameters of the BasicDeployment again", is_clean).await;
    assert_eq!(set.spec.max_surge, IntOrString::Int(2), "the template does not speak of it");
    let has_it = |pod: &Pod| {
        let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
        containers.flat_map(|main| main.env.iter().flatten()).any(|env| env.name == "EVIL")
    };
    let are_clean =
        |pods: &[Pod]| pods.len() == 3 && pods.iter().all(e2e::is_ready) && !pods.iter().any(has_it);
    namespace.until_pods("three pods serve, and none has it", are_clean).await;
    namespace.until_ready("web").await;
    Ok(())
}

/// Somebody who makes the same change of a child at an interval.
struct Rival<'n> {
    namespace: &'n Namespace,
    child: &'static str,
    interval: Duration,
    change: Value,
}

impl Rival<'_> {
    fn manager(&self) -> String {
        format!("rival-of-{}", self.child)
    }

    /// Makes the change, and returns the status of the BasicDeployment.
    async fn meddle(&self) -> Result<BasicDeploymentStatus, String> {
        let by = PatchParams { field_manager: Some(self.manager()), ..PatchParams::default() };
        let (sets, parents) =
            (self.namespace.api::<BasicReplicaSet>(), self.namespace.api::<BasicDeployment>());
        let changed = sets.patch(self.child, &by, &Patch::Merge(&self.change)).await;
        changed.map_err(|error| error.to_string())?;
        let parent = parents.get(self.child).await.map_err(|error| error.to_string())?;
        Ok(parent.status.unwrap_or_default())
    }

    /// Goes on until the BasicDeployment tells of it, and for a while after that. The result is what it tells.
    async fn fight(&self) -> Result<String> {
        let told = eventually_every(
            self.interval,
            "it is told that the child is changed",
            3 * WAIT_TIMEOUT,
            async || match condition(&self.meddle().await?.conditions, "Ready") {
                Some(told) if told.reason == "RepeatedWrites" => Ok(told.message.clone()),
                other => Err(format!("{other:?}")),
            },
        );
        let told = told.await;
        let (until, mut ticks) = (Instant::now() + STILL, tokio::time::interval(self.interval));
        while ticks.tick().await < until {
            let status = self.meddle().await.map_err(Error::msg)?;
            ensure!(!status.ready && !is_true(&status.conditions, "Stalled"), "{status:?}");
        }
        Ok(told)
    }

    /// Goes on until a change of the BasicDeployment itself has reached the child.
    async fn lose(&self) -> Result<()> {
        let wish = json!({"spec": {"parameters": {"env.WISH": "granted"}}});
        self.namespace.merge::<BasicDeployment>(self.child, wish).await?;
        let is_granted = "a change of the BasicDeployment itself does not wait for the end of the fight";
        eventually_every(self.interval, is_granted, WAIT_TIMEOUT, async || {
            self.meddle().await?;
            let child = self.namespace.api::<BasicReplicaSet>().get(self.child).await;
            let parameters = child.map_err(|error| error.to_string())?.spec.parameters;
            if parameters.contains_key("env.WISH") { Ok(()) } else { Err(format!("{parameters:?}")) }
        })
        .await;
        Ok(())
    }
}

mod long {
    use super::*;

    #[tokio::test]
    async fn whoever_keeps_changing_the_child_is_named_and_answered_once_a_minute_until_it_stops()
    -> Result<()> {
        e2e::needs!(AuditLog);
        let cluster = Cluster::with(&CHAIN).await?;
        let namespace = cluster.namespace("fight").await?;
        let rival = |child, milliseconds, change| {
            let interval = Duration::from_millis(milliseconds);
            Rival { namespace: &namespace, child, interval, change }
        };
        let scales = json!({"spec": {"replicas": 2}});
        let rivals = [
            rival("fast", 100, scales.clone()),
            rival("slow", 5_000, scales),
            rival("disowned", 700, json!({"metadata": {"ownerReferences": null}})),
        ];
        for Rival { child, .. } in &rivals {
            namespace.create(&deployment(child, 1)).await?;
            namespace.until_ready(child).await;
        }
        let (log, began) = (AuditLog::from_now()?, Instant::now());
        try_join_all(rivals.iter().map(async |rival| {
            let told = rival.fight().await?;
            if rival.child == "disowned" {
                // What somebody has removed names nobody.
                ensure!(told.contains("somebody else keeps changing metadata.ownerReferences of"), "{told}");
                return Ok(());
            }
            ensure!(told.contains("spec.replicas") && told.contains(&rival.manager()), "{told}");
            rival.lose().await
        }))
        .await?;
        // Five in quick succession and the one that is told, the wish, and the repair that it allows at once.
        let most = 8 + usize::try_from(began.elapsed().as_secs() / 60)?;
        let requests = log.by(DEPLOYMENTS, &namespace.name)?;
        for Rival { child, .. } in &rivals {
            let is_undone =
                |request: &&Request| request.is("patch", "basicreplicasets") && request.name == *child;
            let undone = requests.iter().filter(is_undone).count();
            assert!((6..=most).contains(&undone), "{child}: {undone} writes in {:?}", began.elapsed());
            namespace.until_event(child, "RepeatedWrites").await;
        }

        namespace.merge::<BasicDeployment>("slow", json!({"spec": {"replicas": 3}})).await?;
        namespace.until_ready("slow").await;
        for child in ["fast", "disowned"] {
            namespace.until_ready_within(3 * WAIT_TIMEOUT, child).await;
        }
        namespace.until_ready_pods(5).await;
        Ok(())
    }
}

#[tokio::test]
async fn a_child_without_our_label_is_found_and_labelled_again() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("label").await?;
    let pods = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    let edit = json!({"metadata": {"labels": {keys::DEPLOYMENT_UID: null}}});
    namespace.merge::<BasicReplicaSet>("web", edit).await?;
    let healed = namespace
        .until("web", "has the label again", |set: &BasicReplicaSet| {
            set.labels().contains_key(keys::DEPLOYMENT_UID)
        })
        .await;
    assert_eq!(healed.uid(), child.uid(), "it is the same child");
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&pods));
    Ok(())
}

/// Waits until the revision with this name is reported as one that is not known, and returns the message.
async fn until_unknown(namespace: &Namespace, name: &str) -> Result<String> {
    let taken = |web: &BasicDeployment| {
        let status = web.status.as_ref();
        let told = status.and_then(|status| condition(&status.conditions, "Ready"))?.clone();
        (told.reason == "RevisionNameTaken" && told.message.contains(name)).then_some(told.message)
    };
    let web = namespace.until("web", "names the revision", |web| taken(web).is_some()).await;
    taken(&web).context("it is told")
}

#[tokio::test]
async fn a_revision_without_our_label_or_our_hash_is_named_with_the_commands_that_restore_both() -> Result<()>
{
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("revision").await?;
    namespace.create(&deployment("web", 1)).await?;
    namespace.until_ready("web").await;
    let revision = namespace.api::<ControllerRevision>().list(&ListParams::default()).await?.items.remove(0);
    let name = revision.name_any();
    let unlabelled = json!({"metadata": {"labels": {keys::DEPLOYMENT_UID: null}}});
    for edit in [&unlabelled, &json!({"metadata": {"annotations": {keys::HASH: null}}})] {
        namespace.merge::<ControllerRevision>(&name, edit.clone()).await?;
        let told = until_unknown(&namespace, &name).await?;
        namespace.until_event("web", "RevisionNameTaken").await;
        let commands = told.split_once("restore them (").context("no command")?.1;
        for command in commands.split_once(')').context("no end")?.0.split("; ") {
            let words: Vec<_> = command.split_whitespace().collect();
            ensure!(words[0] == "kubectl", "{command}");
            kubectl(&words[1..]).await?;
        }
        namespace.until_ready_within(2 * WAIT_TIMEOUT, "web").await;
    }
    namespace.merge::<ControllerRevision>(&name, unlabelled).await?;
    until_unknown(&namespace, &name).await?;
    namespace.delete::<ControllerRevision>(&name).await?;
    namespace.until_ready_within(2 * WAIT_TIMEOUT, "web").await;
    let again = namespace.api::<ControllerRevision>().get(&name).await?;
    assert_ne!(again.uid(), revision.uid(), "it is stored again");
    Ok(())
}

#[tokio::test]
async fn what_is_in_another_namespace_is_never_a_child() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let (namespace, elsewhere) = (cluster.namespace("shop").await?, cluster.namespace("lab").await?);
    namespace.create(&deployment("web", 1)).await?;
    let web = namespace.until_ready("web").await;
    // It has another rendering; the finalizer keeps it from the garbage collector.
    let mut forged = replica_set("web", 0);
    forged.metadata = serde_json::from_value(json!({
        "name": "web",
        "finalizers": ["e2e.catena.dev/forged"],
        "labels": {keys::DEPLOYMENT_UID: web.metadata.uid},
        "annotations": {keys::HASH: "another"},
        "ownerReferences": [{
            "apiVersion": "catena.dev/v1alpha1", "kind": "BasicDeployment", "name": "web", "uid": web.metadata.uid,
            "controller": true,
        }],
    }))?;
    elsewhere.create(&forged).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"replicas": 2}})).await?;
    let again = namespace.until_ready("web").await;
    let status = again.status.context("status")?;
    assert_eq!(status.former_children, [], "{status:?}");
    elsewhere.merge::<BasicReplicaSet>("web", json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

/// Names the owner of an object in a version that is not served, as after the end of that version, and waits until it is named in
/// the present one: the garbage collector would not find it.
async fn outdate_owner<K: Namespaced + Send + 'static>(namespace: &Namespace, object: &K) -> Result<()> {
    let version = |object: &K| object.resource_version().and_then(|version| version.parse::<u64>().ok());
    let mut owners = json!(object.owner_references());
    owners[0]["apiVersion"] = "catena.dev/v1alpha0".into();
    let edit = json!({"metadata": {"ownerReferences": owners}});
    let outdated = version(&namespace.merge::<K>(&object.name_any(), edit).await?);
    let is_refreshed =
        |object: &K| version(object) > outdated && object.owner_references()[0].api_version == GROUP_VERSION;
    namespace.until(&object.name_any(), "names its owner in the present version", is_refreshed).await;
    Ok(())
}

#[tokio::test]
async fn an_owner_reference_in_a_version_that_has_ended_is_refreshed() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("outdated").await?;
    let pods = with_three_pods(&namespace).await?;
    let revision = namespace.api::<ControllerRevision>().list(&ListParams::default()).await?.items.remove(0);
    outdate_owner(&namespace, &namespace.until_set_ready("web").await).await?;
    outdate_owner(&namespace, &revision).await?;
    outdate_owner(&namespace, &pods[0]).await?;
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&pods));
    Ok(())
}

#[tokio::test]
async fn a_child_without_our_hash_gets_it_again_and_keeps_its_pods() -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("hash").await?;
    let pods = with_three_pods(&namespace).await?;
    let child = namespace.until_set_ready("web").await;

    let edit = json!({"metadata": {"annotations": {keys::HASH: null}}});
    namespace.merge::<BasicReplicaSet>("web", edit).await?;
    let healed = namespace
        .until("web", "has the hash again", |set: &BasicReplicaSet| {
            set.annotations().contains_key(keys::HASH)
        })
        .await;
    assert_eq!(healed.annotations()[keys::HASH], child.annotations()[keys::HASH]);
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&pods));
    Ok(())
}

#[tokio::test]
async fn a_pod_without_our_label_is_labelled_again_and_no_other_is_made() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&CHAIN).await?;
    let namespace = cluster.namespace("strip").await?;
    let pods = with_three_pods(&namespace).await?;
    let log = AuditLog::from_now()?;

    let name = pods[0].name_any();
    let edit = json!({"metadata": {"labels": {keys::REPLICA_SET_UID: null}}});
    namespace.merge::<Pod>(&name, edit).await?;
    namespace
        .until(&name, "has the label again", |pod: &Pod| pod.labels().contains_key(keys::REPLICA_SET_UID))
        .await;
    namespace.until_ready("web").await;
    assert_eq!(uids(&namespace.until_ready_pods(3).await), uids(&pods));
    let requests = log.by(REPLICA_SETS, &namespace.name)?;
    let created = requests.iter().filter(|request| request.is("create", "pods") && request.code == 201);
    assert_eq!(created.count(), 0, "{requests:#?}");
    Ok(())
}

//! Commands for a BasicDeployment: each is carried out once, the oldest first, one at a time, and only for its own
//! parent; and each says how it ended.

use std::{collections::BTreeSet, pin::pin, time::Duration};

use anyhow::{Context, Result};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, BasicReplicaSet, TargetRef,
    command::{ACCEPTED, SUCCEEDED},
    keys,
};
use e2e::{
    Cluster, DEPLOYMENTS, Namespace, PATIENCE, Release, Undo, condition, deployment, eventually, kubectl,
    kubectl_apply, uids,
};
use futures::StreamExt;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference},
};
use kube::{
    Api, Resource, ResourceExt,
    api::{DynamicObject, ListParams, Patch, PatchParams, PostParams},
    discovery::ApiResource,
    runtime::watcher::{self, Event, watcher},
};
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

type Restart = BasicDeploymentRestart;

const EXAMPLES: [&str; 2] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/basicdeployment.yaml"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/restart.yaml"),
];

/// What was carried out on a child, in order: told by a watch, so that nothing between two looks is missed.
struct Effects {
    seen: watch::Receiver<Vec<String>>,
    watch: JoinHandle<()>,
}

impl Effects {
    /// Records the commands that the children of a namespace bear from now on.
    async fn record(namespace: &Namespace) -> Self {
        let (sender, mut seen) = watch::channel(Vec::new());
        let children = namespace.api::<BasicReplicaSet>();
        let watch = tokio::spawn(async move {
            let mut events = pin!(watcher(children, watcher::Config::default()));
            while let Some(event) = events.next().await {
                let borne = match event {
                    Ok(Event::Apply(child) | Event::InitApply(child)) => {
                        child.annotations().get(keys::LAST_COMMAND).cloned()
                    }
                    _ => None,
                };
                sender.send_modify(|seen: &mut Vec<String>| {
                    if borne.is_some() && seen.last() != borne.as_ref() {
                        seen.extend(borne);
                    }
                });
            }
        });
        seen.changed().await.ok();
        Self { seen, watch }
    }

    /// Waits until so many commands have been carried out.
    async fn until(&self, count: usize) {
        let mut seen = self.seen.clone();
        let came = timeout(PATIENCE, seen.wait_for(|seen| seen.len() >= count)).await.is_ok();
        assert!(came, "not {count} commands within {PATIENCE:?}: {:?}", self.so_far());
    }

    fn so_far(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }
}

impl Drop for Effects {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

/// A reference as command-binder sets it.
fn owner(parent: &BasicDeployment) -> OwnerReference {
    OwnerReference { controller: None, ..parent.controller_owner_ref(&()).unwrap_or_default() }
}

/// A restart that is bound to its target from the start, with or without command-binder.
fn restart(parent: &BasicDeployment, name: &str) -> Restart {
    let target_ref = TargetRef { name: parent.name_any(), namespace: None };
    let spec = BasicDeploymentRestartSpec { target_ref, ..BasicDeploymentRestartSpec::default() };
    let mut restart = Restart::new(name, spec);
    restart.metadata.owner_references = Some(vec![owner(parent)]);
    restart.metadata.annotations = Some(e2e::texts! { keys::BOUND_TO => parent.uid().unwrap_or_default() });
    restart
}

fn said<'r>(restart: &'r Restart, r#type: &str) -> Option<&'r Condition> {
    condition(&restart.status.as_ref()?.conditions, r#type)
}

fn is(restart: &Restart, status: &str, reason: &str) -> bool {
    said(restart, SUCCEEDED).is_some_and(|said| said.status == status && said.reason == reason)
}

async fn until_said(namespace: &Namespace, name: &str, status: &str, reason: &str) -> Restart {
    namespace.until(name, &format!("says {status}, {reason}"), |restart| is(restart, status, reason)).await
}

async fn until_complete(namespace: &Namespace, name: &str) -> Restart {
    until_said(namespace, name, "True", "Complete").await
}

/// The order in which commands run: by the time of creation, then by uid.
fn in_order(mut restarts: Vec<Restart>) -> Vec<String> {
    restarts.sort_by_key(|restart| (restart.creation_timestamp(), restart.uid()));
    restarts.iter().filter_map(ResourceExt::uid).collect()
}

async fn merge(namespace: &Namespace, patch: serde_json::Value) -> Result<()> {
    namespace.merge::<BasicDeployment>("web", patch).await?;
    Ok(())
}

/// The version that the pods never get ready with.
fn bad() -> serde_json::Value {
    json!({"spec": {"parameters": {"image": "registry.invalid/missing:1"}}})
}

async fn ready(namespace: &Namespace, replicas: i32) -> Result<BasicDeployment> {
    namespace.create(&deployment("web", replicas)).await?;
    Ok(namespace.until_ready("web").await)
}

/// Makes restarts while the parent is paused, so that all of them wait before the first may begin.
async fn queue(namespace: &Namespace, web: &BasicDeployment, count: usize) -> Result<Vec<Restart>> {
    merge(namespace, json!({"spec": {"paused": true}})).await?;
    let mut made = Vec::new();
    for number in 0..count {
        made.push(namespace.create(&restart(web, &format!("again-{number}"))).await?);
    }
    for command in &made {
        namespace
            .until(&command.name_any(), "is told to wait", |restart: &Restart| {
                is(restart, "Unknown", "Paused") || is(restart, "Unknown", "Queued")
            })
            .await;
    }
    Ok(made)
}

#[tokio::test]
async fn the_example_replaces_every_pod_and_can_be_waited_for() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("restart").await?;
    let [parent, command] = EXAMPLES;
    kubectl_apply(&namespace.name, &std::fs::read_to_string(parent)?).await?;
    let before = namespace.until_ready_pods(3).await;
    let hello = namespace.until_ready("hello").await;

    let made = kubectl(&["create", "--namespace", &namespace.name, "-f", command, "-o", "name"]).await?;
    let name = made.trim().rsplit('/').next().context("kubectl names nothing")?;
    namespace.merge::<Restart>(name, json!({"metadata": {"ownerReferences": [owner(&hello)]}})).await?;
    let waits = ["wait", "--for=condition=Succeeded", made.trim(), "--timeout=60s"];
    kubectl(&[&waits[..], &["--namespace", &namespace.name]].concat()).await?;

    let restart = namespace.api::<Restart>().get(name).await?;
    let pods = namespace.until_ready_pods(3).await;
    assert!(uids(&before).is_disjoint(&uids(&pods)), "a pod was kept");
    for pod in &pods {
        assert!(pod.creation_timestamp() >= restart.creation_timestamp(), "{} is older", pod.name_any());
    }
    let after = namespace.api::<BasicDeployment>().get("hello").await?;
    assert_eq!((after.metadata.generation, &after.spec), (hello.metadata.generation, &hello.spec));
    let accepted = said(&restart, ACCEPTED).context("Accepted")?;
    assert_eq!(accepted.status, "True");
    let status = restart.status.context("status")?;
    assert_eq!((status.progress.as_deref(), status.observed_generation), (Some("3/3"), Some(1)));
    assert!(status.start_time.is_some() && status.start_time <= status.completion_time);
    Ok(())
}

#[tokio::test]
async fn commands_run_one_at_a_time_and_the_oldest_first() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("order").await?;
    let web = ready(&namespace, 3).await?;
    let effects = Effects::record(&namespace).await;
    let made = queue(&namespace, &web, 8).await?;

    merge(&namespace, json!({"spec": {"paused": false}})).await?;
    let mut ended = Vec::new();
    for command in &made {
        ended.push(until_complete(&namespace, &command.name_any()).await);
    }
    assert_eq!(effects.so_far(), in_order(made));
    ended.sort_by_key(|restart| (restart.creation_timestamp(), restart.uid()));
    for pair in ended.windows(2) {
        let [first, second] = [&pair[0], &pair[1]].map(|restart| restart.status.clone().unwrap_or_default());
        assert!(first.completion_time <= second.start_time, "{first:?} and {second:?} ran together");
    }
    Ok(())
}

#[tokio::test]
async fn a_command_that_names_another_target_or_is_elsewhere_is_not_run() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("others").await?;
    let elsewhere = cluster.namespace("elsewhere").await?;
    let web = ready(&namespace, 2).await?;
    let effects = Effects::record(&namespace).await;

    let mut misdirected = restart(&web, "misdirected");
    misdirected.spec.target_ref.name = "nobody".into();
    namespace.create(&misdirected).await?;
    let mut foreign = restart(&web, "foreign");
    foreign.spec.target_ref.namespace = Some(namespace.name.clone());
    elsewhere.create(&foreign).await?;
    until_said(&namespace, "misdirected", "Unknown", "NotTheTarget").await;

    // One that is younger runs, so that the others were passed over and do not just wait.
    let own = namespace.create(&restart(&web, "own")).await?;
    until_complete(&namespace, "own").await;
    assert_eq!(effects.so_far(), [own.uid().unwrap_or_default()]);
    Ok(())
}

#[tokio::test]
async fn a_parent_that_was_made_again_is_not_touched_by_commands_that_waited() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("again").await?;
    let web = ready(&namespace, 2).await?;
    let other = ConfigMap {
        metadata: kube::api::ObjectMeta { name: Some("keeps".into()), ..Default::default() },
        ..Default::default()
    };
    let other = namespace.create(&other).await?;
    // A second owner, so that the garbage collector leaves the commands.
    let keeps = OwnerReference { controller: None, ..other.controller_owner_ref(&()).context("owner")? };
    let owners = json!({"metadata": {"ownerReferences": [owner(&web), keeps]}});
    for command in queue(&namespace, &web, 2).await? {
        namespace.merge::<Restart>(&command.name_any(), owners.clone()).await?;
    }
    namespace.delete::<BasicDeployment>("web").await?;
    namespace.until_gone::<BasicDeployment>("web").await;
    namespace.until_gone::<BasicReplicaSet>("web").await;

    let effects = Effects::record(&namespace).await;
    let again = ready(&namespace, 2).await?;
    // The garbage collector took the reference to the one that is gone; whoever compares names sees it anew.
    for name in ["again-0", "again-1"] {
        namespace.merge::<Restart>(name, owners.clone()).await?;
    }
    let fresh = namespace.create(&restart(&again, "fresh")).await?;
    until_complete(&namespace, "fresh").await;
    assert_eq!(effects.so_far(), [fresh.uid().unwrap_or_default()]);
    for name in ["again-0", "again-1"] {
        let waiting = namespace.api::<Restart>().get(name).await?;
        assert!(said(&waiting, SUCCEEDED).is_some_and(|said| said.status == "Unknown"), "{name} ended");
    }
    Ok(())
}

#[tokio::test]
async fn a_malformed_command_says_so_and_blocks_nobody() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let namespace = cluster.namespace("malformed").await?;
    let web = ready(&namespace, 2).await?;
    let definitions = cluster.all::<CustomResourceDefinition>();
    let definition = "basicdeploymentrestarts.catena.dev";
    let undo = Undo::keep(&definitions, definition).await?;
    let open = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
        "value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]);
    let open = Patch::Json::<()>(serde_json::from_value(open)?);
    definitions.patch(definition, &PatchParams::default(), &open).await?;
    let kind = ApiResource::erase::<Restart>(&());
    let anything: Api<DynamicObject> = Api::namespaced_with(cluster.client.clone(), &namespace.name, &kind);
    let malformed = DynamicObject::new("malformed", &kind).data(json!({"spec": {"targetRef": "web"}}));
    let malformed = DynamicObject {
        metadata: kube::api::ObjectMeta { owner_references: Some(vec![owner(&web)]), ..malformed.metadata },
        ..malformed
    };
    eventually("the API server takes it", PATIENCE, async || {
        anything.create(&PostParams::default(), &malformed).await.map_err(|error| error.to_string())
    })
    .await;

    namespace.create(&restart(&web, "good")).await?;
    until_complete(&namespace, "good").await;
    eventually("it says that it is malformed", PATIENCE, async || {
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
    until_complete(&namespace, "after").await;
    Ok(())
}

#[tokio::test]
async fn killed_at_any_moment_the_controller_carries_out_each_command_once() -> Result<()> {
    let cluster = Cluster::alone().await?;
    DEPLOYMENTS.until_ready(&cluster).await;
    let namespace = cluster.namespace("killed").await?;
    let web = ready(&namespace, 4).await?;
    let child = namespace.until_set_ready("web").await;
    let effects = Effects::record(&namespace).await;
    let made = queue(&namespace, &web, 6).await?;
    merge(&namespace, json!({"spec": {"paused": false}})).await?;

    for count in [1, 3, 5] {
        effects.until(count).await;
        let process = DEPLOYMENTS.process(&cluster).await?;
        process.kill()?;
        process.until_replaced(&cluster).await;
    }
    for command in &made {
        until_complete(&namespace, &command.name_any()).await;
    }
    assert_eq!(effects.so_far(), in_order(made.clone()));
    // Two that were created within the same second ask for the same token: pods are replaced once for both.
    let tokens: BTreeSet<_> = made.iter().map(ResourceExt::creation_timestamp).collect();
    let after = namespace.until_set_ready("web").await;
    let changed = after.metadata.generation.unwrap_or(0) - child.metadata.generation.unwrap_or(0);
    assert_eq!(usize::try_from(changed)?, tokens.len(), "the child was changed more often than asked for");
    DEPLOYMENTS.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn a_deadline_ends_a_command_that_runs_and_one_that_waits() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("deadline").await?;
    let web = ready(&namespace, 2).await?;
    let effects = Effects::record(&namespace).await;
    merge(&namespace, bad()).await?;
    namespace
        .until("web", "is blocked", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| status.blocked_by.is_some())
        })
        .await;

    let mut runs = restart(&web, "runs");
    runs.spec.active_deadline_seconds = Some(6);
    let runs = namespace.create(&runs).await?;
    let running = until_said(&namespace, "runs", "Unknown", "Running").await;
    assert!(
        running.status.and_then(|status| status.progress).is_some_and(|progress| progress.ends_with("/2"))
    );
    let mut waits = restart(&web, "waits");
    waits.spec.active_deadline_seconds = Some(1);
    namespace.create(&waits).await?;
    until_said(&namespace, "waits", "False", "DeadlineExceeded").await;
    assert_eq!(effects.so_far(), [runs.uid().unwrap_or_default()], "one that waited was carried out");
    let ended = until_said(&namespace, "runs", "False", "DeadlineExceeded").await;

    // The next one is not held up, and what has ended stays as it was.
    let next = namespace.create(&restart(&web, "next")).await?;
    until_said(&namespace, "next", "Unknown", "Running").await;
    let good = deployment("web", 2).spec.parameters;
    merge(&namespace, json!({"spec": {"parameters": good}})).await?;
    until_complete(&namespace, "next").await;
    assert_eq!(effects.so_far(), [&runs, &next].map(|command| command.uid().unwrap_or_default()));
    let still = namespace.api::<Restart>().get("runs").await?;
    assert_eq!(still.status, ended.status);
    Ok(())
}

#[tokio::test]
async fn deleting_a_command_that_waits_cancels_it() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("cancel").await?;
    let web = ready(&namespace, 2).await?;
    let effects = Effects::record(&namespace).await;
    merge(&namespace, bad()).await?;
    let first = namespace.create(&restart(&web, "first")).await?;
    until_said(&namespace, "first", "Unknown", "Running").await;
    namespace.create(&restart(&web, "second")).await?;
    until_said(&namespace, "second", "Unknown", "Queued").await;
    namespace.delete::<Restart>("second").await?;
    let third = namespace.create(&restart(&web, "third")).await?;

    let good = deployment("web", 2).spec.parameters;
    merge(&namespace, json!({"spec": {"parameters": good}})).await?;
    until_complete(&namespace, "third").await;
    assert_eq!(effects.so_far(), [&first, &third].map(|command| command.uid().unwrap_or_default()));
    Ok(())
}

#[tokio::test]
async fn a_child_that_cannot_be_restarted_says_so() -> Result<()> {
    let cluster = Cluster::alone().await?;
    let namespace = cluster.namespace("tokenless").await?;
    let web = ready(&namespace, 1).await?;
    let values = json!({"child": {"contract": {"restartedAt": ""}}});
    let release = Release::upgrade(&cluster, DEPLOYMENTS, &values).await?;
    until_a_restart_says(&namespace, &web, "False", "ChildHasNoRestart").await;
    release.restore().await?;
    until_a_restart_says(&namespace, &web, "True", "Complete").await;
    Ok(())
}

/// Tries restarts until one ends in this way: settings follow their values only after seconds.
async fn until_a_restart_says(namespace: &Namespace, web: &BasicDeployment, status: &str, reason: &str) {
    eventually(&format!("a restart says {status}, {reason}"), 3 * PATIENCE, async || {
        let restarts = namespace.api::<Restart>();
        let made = restarts.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let name = format!("try-{}", made.items.len());
        namespace.create(&restart(web, &name)).await.map_err(|error| error.to_string())?;
        let has_ended =
            |restart: &Restart| said(restart, SUCCEEDED).is_some_and(|said| said.status != "Unknown");
        let ended = namespace.until(&name, "has ended", has_ended).await;
        if is(&ended, status, reason) { Ok(()) } else { Err(e2e::yaml(&ended)) }
    })
    .await;
}

#[tokio::test]
async fn finished_commands_cost_nothing_and_pods_stay() -> Result<()> {
    let cluster = Cluster::shared().await?;
    let namespace = cluster.namespace("quiet").await?;
    let log = e2e::AuditLog::from_now()?;
    let web = ready(&namespace, 2).await?;
    namespace.create(&restart(&web, "once")).await?;
    until_complete(&namespace, "once").await;
    let pods: Vec<Pod> = namespace.until_ready_pods(2).await;
    let quiet = Duration::from_secs(21);
    let written = log.until_quiet(quiet, 4 * quiet, |request| request.namespace == namespace.name).await;
    let told = written.iter().filter(|request| request.is("patch", "basicdeploymentrestarts/status")).count();
    assert!(told <= 2, "{told} writes of the status: {:?}", e2e::Tally::of(&written));
    assert_eq!(uids(&pods), uids(&namespace.until_ready_pods(2).await));
    Ok(())
}

//! Commands for workloads of Kubernetes itself are carried out by a description alone: once, in order, and one at a time.

use std::time::Duration;

use anyhow::{Context, Result};
use catena_api::{command::RecentCommands, keys};
use e2e::{
    AuditLog, BINDER, Cluster, ForeignKinds, Namespace, RUNNER, Request, eventually, pod_template, yaml,
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::GroupVersionKind,
    discovery::ApiResource,
};
use serde_json::{Value, json};
use tokio::time::sleep;

/// Longer than the API server takes to know new kinds as owners.
const LIMIT: Duration = Duration::from_secs(90);
/// Longer than a pass that would carry out a command again.
const SETTLED: Duration = Duration::from_secs(8);

const DEFINITIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/commands/rollout-restarts.yaml");

fn api(namespace: &Namespace, group: &str, kind: &str) -> Api<DynamicObject> {
    namespace.api_of(&ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind)))
}

fn restarts(namespace: &Namespace) -> Api<DynamicObject> {
    api(namespace, "ops.example.com", "RolloutRestart")
}

fn workload(kind: &str, name: &str) -> Value {
    let mut made = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": pod_template(name),
        },
    });
    match kind {
        "DaemonSet" => {}
        "StatefulSet" => {
            made["spec"]["replicas"] = json!(2);
            made["spec"]["serviceName"] = json!(name);
        }
        _ => made["spec"]["replicas"] = json!(2),
    }
    made
}

async fn create(api: &Api<DynamicObject>, object: Value) -> Result<DynamicObject> {
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}

fn restart(name: &str, kind: &str, target: &str) -> Value {
    json!({
        "apiVersion": "ops.example.com/v1", "kind": "RolloutRestart", "metadata": {"name": name},
        "spec": {"targetRef": {"kind": kind, "name": target}},
    })
}

async fn until(
    api: &Api<DynamicObject>,
    name: &str,
    what: &str,
    is: impl Fn(&DynamicObject) -> bool,
) -> DynamicObject {
    eventually(&format!("{name} {what}"), LIMIT, async || {
        let object = api.get(name).await.map_err(|error| error.to_string())?;
        if is(&object) { Ok(object) } else { Err(yaml(&object)) }
    })
    .await
}

/// Whether a command says that it has this outcome.
pub(crate) fn has_outcome(command: &DynamicObject, status: &str, reason: &str) -> bool {
    let conditions = command.data["status"]["conditions"].as_array().into_iter().flatten();
    let mut outcomes = conditions.filter(|condition| condition["type"] == "Succeeded");
    outcomes.any(|outcome| outcome["status"] == status && outcome["reason"] == reason)
}

async fn until_outcome(namespace: &Namespace, name: &str, status: &str, reason: &str) -> DynamicObject {
    let what = format!("says {status} {reason}");
    until(&restarts(namespace), name, &what, |command| has_outcome(command, status, reason)).await
}

/// The uids of the commands that ran on a workload, the last eight in their order.
fn ran(workload: &DynamicObject) -> Vec<String> {
    RecentCommands::on(&workload.metadata).iter().map(|command| command.uid.clone()).collect()
}

/// The patches of a Deployment by command-runner that were accepted.
fn patches(log: &AuditLog, namespace: &Namespace, name: &str) -> Result<Vec<Request>> {
    let is_one = |request: &Request| {
        (&*request.verb, &*request.resource, &*request.namespace, &*request.name)
            == ("patch", "deployments", &*namespace.name, name)
            && request.user.ends_with(&format!(":{}", RUNNER.name()))
            && request.code < 300
    };
    Ok(log.requests()?.into_iter().filter(is_one).collect())
}

#[tokio::test]
async fn workloads_of_kubernetes_are_restarted_once_in_order_and_one_at_a_time() -> Result<()> {
    e2e::needs!(NoKindsOfOthers, AuditLog);
    let cluster = Cluster::with(&[BINDER, RUNNER]).await?;
    let kinds = ForeignKinds::of(vec![DEFINITIONS.to_owned()]).await?;
    let namespace = cluster.namespace("foreign").await?;
    every_kind_is_restarted(&namespace).await?;
    a_queue_runs_in_order(&namespace).await?;
    what_was_wiped_is_not_repeated(&namespace).await?;
    one_that_loses_its_owner_still_holds_up_the_next(&namespace).await?;
    a_command_for_another_object_does_not_run(&namespace).await?;
    a_new_target_runs_no_old_command(&namespace).await?;
    kinds.remove().await
}

async fn every_kind_is_restarted(namespace: &Namespace) -> Result<()> {
    for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
        let (name, workloads) = (kind.to_lowercase(), api(namespace, "apps", kind));
        create(&workloads, workload(kind, &name)).await?;
        let command = create(&restarts(namespace), restart(&name, kind, &name)).await?;
        let ended = until_outcome(namespace, &name, "True", "Complete").await;
        let target = workloads.get(&name).await?;
        assert_eq!(ran(&target), [command.uid().context("no uid")?], "{kind}");
        let token =
            &target.data["spec"]["template"]["metadata"]["annotations"]["ops.example.com/restartedAt"];
        let created = command.creation_timestamp().context("no time")?.0.to_string();
        assert_eq!(token, &created, "{kind}");
        let status = &ended.data["status"];
        assert!(status["startTime"].is_string() && status["completionTime"].is_string(), "{status}");
    }
    Ok(())
}

async fn a_queue_runs_in_order(namespace: &Namespace) -> Result<()> {
    let deployments = api(namespace, "apps", "Deployment");
    let mut queued = workload("Deployment", "queued");
    queued["spec"]["paused"] = json!(true);
    create(&deployments, queued).await?;
    let log = AuditLog::from_now()?;
    let mut made = Vec::new();
    for number in 0..5 {
        let name = format!("queued-{number}");
        made.push(create(&restarts(namespace), restart(&name, "Deployment", "queued")).await?);
    }
    made.sort_by_key(|command| (command.creation_timestamp(), command.uid()));
    until_outcome(namespace, &made[0].name_any(), "Unknown", "Paused").await;
    assert_eq!(patches(&log, namespace, "queued")?.len(), 0, "one ran on a paused target");
    let resumed = Patch::Merge(json!({"spec": {"paused": false}}));
    deployments.patch("queued", &PatchParams::default(), &resumed).await?;

    let mut ended = Vec::new();
    for command in &made {
        ended.push(until_outcome(namespace, &command.name_any(), "True", "Complete").await);
    }
    let uids: Vec<_> = made.iter().filter_map(ResourceExt::uid).collect();
    assert_eq!(ran(&deployments.get("queued").await?), uids);
    assert_eq!(patches(&log, namespace, "queued")?.len(), uids.len(), "one ran twice");
    for pair in ended.windows(2) {
        let [first, second] = [&pair[0].data["status"], &pair[1].data["status"]];
        // Both are times of whole seconds in one form.
        assert!(first["completionTime"].as_str() <= second["startTime"].as_str(), "{first} and {second}");
    }
    Ok(())
}

/// The proof on the target, then the status of the command, then both: each alone is enough, and who has seen one needs none.
async fn what_was_wiped_is_not_repeated(namespace: &Namespace) -> Result<()> {
    let deployments = api(namespace, "apps", "Deployment");
    let log = AuditLog::from_now()?;
    let merge = PatchParams::default();
    let before = restarts(namespace).get("deployment").await?;
    let without_proof = Patch::Merge(json!({"metadata": {"annotations": {(keys::COMMANDS): null}}}));
    let proven = deployments.get("deployment").await?.annotations()[keys::COMMANDS].clone();
    deployments.patch("deployment", &merge, &without_proof).await?;
    sleep(SETTLED).await;
    assert_eq!(restarts(namespace).get("deployment").await?.data["status"], before.data["status"]);

    let put_back = Patch::Merge(json!({"metadata": {"annotations": {(keys::COMMANDS): proven}}}));
    deployments.patch("deployment", &merge, &put_back).await?;
    let without_status = Patch::Merge(json!({"status": null}));
    restarts(namespace).patch_status("deployment", &merge, &without_status).await?;
    until_outcome(namespace, "deployment", "True", "Complete").await;

    deployments.patch("deployment", &merge, &without_proof).await?;
    restarts(namespace).patch_status("deployment", &merge, &without_status).await?;
    until_outcome(namespace, "deployment", "True", "Complete").await;
    assert_eq!(patches(&log, namespace, "deployment")?.len(), 0, "it ran again");
    Ok(())
}

/// `kubectl replace` of a command removes its owner, until it is bound again.
async fn one_that_loses_its_owner_still_holds_up_the_next(namespace: &Namespace) -> Result<()> {
    let mut slow = workload("Deployment", "slow");
    slow["spec"]["minReadySeconds"] = json!(3600);
    slow["spec"]["progressDeadlineSeconds"] = json!(7200);
    create(&api(namespace, "apps", "Deployment"), slow).await?;
    let log = AuditLog::from_now()?;
    for (name, reason) in [("running", "Running"), ("waiting", "Queued")] {
        create(&restarts(namespace), restart(name, "Deployment", "slow")).await?;
        until_outcome(namespace, name, "Unknown", reason).await;
    }
    let bare = Patch::Merge(json!({"metadata": {"ownerReferences": null}}));
    restarts(namespace).patch("running", &PatchParams::default(), &bare).await?;
    let is_bound = |command: &DynamicObject| !command.owner_references().is_empty();
    until(&restarts(namespace), "running", "is bound again", is_bound).await;
    sleep(SETTLED).await;
    assert_eq!(patches(&log, namespace, "slow")?.len(), 1, "the next one ran beside it");
    Ok(())
}

/// Somebody who may create commands makes one that is owned by a Deployment that it does not name.
async fn a_command_for_another_object_does_not_run(namespace: &Namespace) -> Result<()> {
    let log = AuditLog::from_now()?;
    let victim = api(namespace, "apps", "Deployment").get("queued").await?;
    let mut forged = restart("forged", "Deployment", "absent");
    forged["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "queued", "uid": victim.uid(),
    }]);
    create(&restarts(namespace), forged).await?;
    until_outcome(namespace, "forged", "Unknown", "NotTheTarget").await;
    assert_eq!(patches(&log, namespace, "queued")?.len(), 0);
    Ok(())
}

async fn a_new_target_runs_no_old_command(namespace: &Namespace) -> Result<()> {
    let deployments = api(namespace, "apps", "Deployment");
    let mut paused = workload("Deployment", "again");
    paused["spec"]["paused"] = json!(true);
    let first = create(&deployments, paused.clone()).await?;
    create(&restarts(namespace), restart("for-the-first", "Deployment", "again")).await?;
    until_outcome(namespace, "for-the-first", "Unknown", "Paused").await;
    deployments.delete("again", &DeleteParams::background()).await?;
    eventually("the first one is gone", LIMIT, async || {
        let found = deployments.get_opt("again").await.map_err(|error| error.to_string())?;
        if found.as_ref().is_some_and(|found| found.uid() == first.uid()) {
            Err(yaml(&found))
        } else {
            Ok(())
        }
    })
    .await;
    let log = AuditLog::from_now()?;
    create(&deployments, workload("Deployment", "again")).await?;
    let deleted = DeleteParams::default();
    sleep(SETTLED).await;
    assert_eq!(patches(&log, namespace, "again")?.len(), 0, "the command of the first one ran");
    // The garbage collector may have deleted it.
    restarts(namespace).delete("for-the-first", &deleted).await.map(drop).or_else(|error| match error {
        kube::Error::Api(answer) if answer.code == 404 => Ok(()),
        error => Err(error),
    })?;
    Ok(())
}

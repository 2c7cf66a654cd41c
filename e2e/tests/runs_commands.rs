//! Commands for a BasicDeployment run once, one at a time, the oldest first, and each reports its
//! outcome.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, BasicDeploymentSpec, TargetRef,
    command::SUCCEEDED,
};
use e2e::{
    BINDER, COMMANDED, Cluster, Effects, Pace, REAPER, RUNNER,
    commands::{
        self, condition_of, owned_by, queue_restarts, restart, until_restart_outcome, until_restarted,
    },
    deployment, example, kubectl, kubectl_apply, kubectl_create, uids,
};
use k8s_openapi::api::core::v1::Pod;
use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;
use tokio::time::Instant;

type Restart = BasicDeploymentRestart;

/// The order in which commands run: by creation time, then by uid.
fn in_order(mut restarts: Vec<Restart>) -> Vec<String> {
    restarts.sort_by_key(|restart| (restart.creation_timestamp(), restart.uid()));
    restarts.iter().filter_map(ResourceExt::uid).collect()
}

#[tokio::test]
async fn the_example_replaces_every_pod_and_can_be_waited_for() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("restart").await?;
    kubectl_apply(&namespace.name, &example("basicdeployment.yaml")?).await?;
    let before = namespace.until_ready_pods(3).await;
    let hello = namespace.until_ready("hello").await;

    let made = kubectl_create(&namespace.name, &example("restart.yaml")?).await?;
    let name = made.rsplit('/').next().context("kubectl names nothing")?;
    namespace.merge::<Restart>(name, json!({"metadata": {"ownerReferences": [owned_by(&hello)]}})).await?;
    let waits = ["wait", "--for=condition=Succeeded", &made, "--timeout=60s"];
    kubectl(&[&waits[..], &["--namespace", &namespace.name]].concat()).await?;

    let restart = namespace.api::<Restart>().get(name).await?;
    let pods = namespace.until_ready_pods(3).await;
    assert!(uids(&before).is_disjoint(&uids(&pods)), "a pod was kept");
    for pod in &pods {
        assert!(pod.creation_timestamp() >= restart.creation_timestamp(), "{} is older", pod.name_any());
    }
    let after = namespace.api::<BasicDeployment>().get("hello").await?;
    let asked = restart.creation_timestamp().context("creation time")?.0.to_string();
    let changed = BasicDeploymentSpec { restarted_at: Some(asked), ..hello.spec };
    assert_eq!(after.spec, changed, "a restart changes one field");
    let status = restart.status.context("status")?;
    assert_eq!((status.progress.as_deref(), status.observed_generation), (Some("3/3"), Some(1)));
    assert!(status.start_time.is_some() && status.start_time <= status.completion_time);
    Ok(())
}

#[tokio::test]
async fn commands_run_one_at_a_time_and_the_oldest_first() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("order").await?;
    let web = commands::ready(&namespace, 3).await?;
    let effects = Effects::record(&namespace).await;
    let made = queue_restarts(&namespace, &web, 8).await?;

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;
    let mut ended = Vec::new();
    for command in &made {
        ended.push(until_restarted(&namespace, &command.name_any()).await);
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
async fn killed_at_any_moment_the_controller_carries_out_each_command_once() -> Result<()> {
    e2e::needs!(Processes);
    let cluster = Cluster::changing_one_of(&COMMANDED, RUNNER).await?;
    RUNNER.until_ready(&cluster).await;
    let namespace = cluster.namespace("killed").await?;
    let web = commands::ready(&namespace, 4).await?;
    let child = namespace.until_set_ready("web").await;
    let effects = Effects::record(&namespace).await;
    let made = queue_restarts(&namespace, &web, 6).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;

    for count in [1, 3, 5] {
        effects.until(count).await;
        let process = RUNNER.process(&cluster).await?;
        process.kill()?;
        process.until_replaced(&cluster).await;
    }
    for command in &made {
        until_restarted(&namespace, &command.name_any()).await;
    }
    assert_eq!(effects.so_far(), in_order(made.clone()));
    // Two commands of the same second have the same token, and pods are replaced once for both.
    let tokens: BTreeSet<_> = made.iter().map(ResourceExt::creation_timestamp).collect();
    let after = namespace.until_set_ready("web").await;
    let changed = after.metadata.generation.unwrap_or(0) - child.metadata.generation.unwrap_or(0);
    assert_eq!(usize::try_from(changed)?, tokens.len(), "the child was changed more often than asked for");
    RUNNER.until_ready(&cluster).await;
    Ok(())
}

#[tokio::test]
async fn a_deadline_ends_a_command_that_runs_and_one_that_waits() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("deadline").await?;
    let web = commands::ready(&namespace, 2).await?;
    let effects = Effects::record(&namespace).await;
    namespace.merge::<BasicDeployment>("web", commands::never_ready()).await?;
    namespace
        .until("web", "is blocked", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| status.blocked_by.is_some())
        })
        .await;

    let mut runs = restart(&web, "runs");
    runs.spec.active_deadline_seconds = Some(45);
    let runs = namespace.create(&runs).await?;
    let running = until_restart_outcome(&namespace, "runs", "Unknown", "Running").await;
    assert!(
        running.status.and_then(|status| status.progress).is_some_and(|progress| progress.ends_with("/2"))
    );
    let mut waits = restart(&web, "waits");
    waits.spec.active_deadline_seconds = Some(1);
    namespace.create(&waits).await?;
    until_restart_outcome(&namespace, "waits", "False", "DeadlineExceeded").await;
    assert_eq!(effects.so_far(), [runs.uid().unwrap_or_default()], "one that waited was carried out");
    let ended = until_restart_outcome(&namespace, "runs", "False", "DeadlineExceeded").await;

    // The next one is not held up, and the finished one stays as it was.
    let next = namespace.create(&restart(&web, "next")).await?;
    until_restart_outcome(&namespace, "next", "Unknown", "Running").await;
    let good = deployment("web", 2).spec.parameters;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"parameters": good}})).await?;
    until_restarted(&namespace, "next").await;
    assert_eq!(effects.so_far(), [&runs, &next].map(|command| command.uid().unwrap_or_default()));
    let still = namespace.api::<Restart>().get("runs").await?;
    assert_eq!(still.status, ended.status);
    Ok(())
}

#[tokio::test]
async fn a_cancelled_command_that_a_finalizer_holds_is_reported_and_holds_up_no_other() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("held-command").await?;
    let web = commands::ready(&namespace, 1).await?;
    let effects = Effects::record(&namespace).await;
    let made = queue_restarts(&namespace, &web, 2).await?;
    let [held, next] = [0, 1].map(|index: usize| made[index].name_any());
    namespace.merge::<Restart>(&held, json!({"metadata": {"finalizers": ["example.com/hold"]}})).await?;
    namespace.api::<Restart>().delete(&held, &DeleteParams::default()).await?;
    let told = until_restart_outcome(&namespace, &held, "Unknown", "Terminating").await;
    let succeeded = condition_of(&told, SUCCEEDED).context("Succeeded")?;
    assert!(succeeded.message.contains("example.com/hold"), "{succeeded:?}");
    assert!(succeeded.message.ends_with("it is not carried out"), "{succeeded:?}");

    namespace.merge::<BasicDeployment>("web", json!({"spec": {"paused": false}})).await?;
    until_restarted(&namespace, &next).await;
    assert_eq!(effects.so_far(), [made[1].uid().unwrap_or_default()]);
    namespace.merge::<Restart>(&held, json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

#[tokio::test]
async fn a_deadline_ends_also_a_command_that_nobody_has_bound() -> Result<()> {
    let cluster = Cluster::with(&[BINDER, RUNNER, REAPER]).await?;
    let namespace = cluster.namespace("unbound").await?;
    let command = |name: &str, deadline, ttl| {
        let target_ref = TargetRef { name: "nobody".into(), namespace: None };
        let mut command = Restart::new(name, BasicDeploymentRestartSpec { target_ref, ..Default::default() });
        command.spec.active_deadline_seconds = deadline;
        command.spec.ttl_seconds_after_finished = ttl;
        command
    };
    namespace.create(&command("kept", Some(2), None)).await?;
    namespace.create(&command("reaped", Some(2), Some(0))).await?;
    let waits = namespace.create(&command("waits", None, None)).await?;
    assert_eq!(waits.spec.active_deadline_seconds, Some(86_400), "a day, unless it says otherwise");

    let kept = until_restart_outcome(&namespace, "kept", "False", "DeadlineExceeded").await;
    assert!(
        kept.status.is_some_and(|status| status.completion_time.is_some() && status.start_time.is_none())
    );
    namespace.until_gone::<Restart>("reaped").await;
    let waits = namespace.api::<Restart>().get("waits").await?;
    assert!(
        condition_of(&waits, SUCCEEDED).is_none_or(|said| said.status == "Unknown"),
        "its time is not over"
    );
    Ok(())
}

#[tokio::test]
async fn a_command_does_not_wait_for_the_backoff_of_its_parent() -> Result<()> {
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("backoff").await?;
    // Without pods, a restart has ended as soon as its parent is ready.
    let web = commands::ready(&namespace, 0).await?;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"template": "missing"}})).await?;
    namespace
        .until("web", "has stalled", |web: &BasicDeployment| {
            web.status.as_ref().is_some_and(|status| e2e::is_true(&status.conditions, "Stalled"))
        })
        .await;
    let effects = Effects::record(&namespace).await;
    // The controller of the parent retries after 5, 10, 20 s and more.
    let pace = Pace::start(&namespace).await?;
    namespace.create(&restart(&web, "first")).await?;
    effects.until(1).await;
    let took = pace.elapsed();
    assert!(took < Duration::from_secs(12), "it took {took:?} at the cluster's pace");
    until_restart_outcome(&namespace, "first", "Unknown", "Running").await;
    namespace.merge::<BasicDeployment>("web", json!({"spec": {"template": "default"}})).await?;
    until_restarted(&namespace, "first").await;
    Ok(())
}

#[tokio::test]
async fn finished_commands_cost_nothing_and_pods_stay() -> Result<()> {
    e2e::needs!(AuditLog);
    let cluster = Cluster::with(&COMMANDED).await?;
    let namespace = cluster.namespace("quiet").await?;
    let log = e2e::AuditLog::from_now()?;
    let web = commands::ready(&namespace, 2).await?;
    let began = Instant::now();
    namespace.create(&restart(&web, "once")).await?;
    until_restarted(&namespace, "once").await;
    // Progress is reported every five seconds.
    let progress = usize::try_from(began.elapsed().as_secs() / 5)?;
    let pods: Vec<Pod> = namespace.until_ready_pods(2).await;
    let quiet = Duration::from_secs(21);
    log.until_quiet(quiet, 4 * quiet, |request| request.namespace == namespace.name).await;
    let written = log.by(RUNNER, &namespace.name)?;
    let told = written.iter().filter(|request| request.is("patch", "basicdeploymentrestarts/status")).count();
    assert!(
        (1..=2 + progress).contains(&told),
        "{told} writes of the status: {:?}",
        e2e::Tally::of(&written)
    );
    assert_eq!(uids(&pods), uids(&namespace.until_ready_pods(2).await));
    Ok(())
}

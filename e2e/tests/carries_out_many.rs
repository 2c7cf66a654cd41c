//! What a thousand commands cost.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use catena_api::{
    BasicDeployment, BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef, command::SUCCEEDED,
};
use e2e::{
    AuditLog, BINDER, COMMANDED, Cluster, RUNNER, Request, Tally, commands::condition_of, deployment,
    eventually_every,
};
use futures::{TryStreamExt, stream};
use kube::api::ListParams;

/// Requests under way at a time.
const CONNECTIONS: usize = 16;

fn restart(target: &str, number: usize) -> BasicDeploymentRestart {
    let target_ref = TargetRef { name: target.into(), namespace: None };
    let spec = BasicDeploymentRestartSpec { target_ref, ..Default::default() };
    BasicDeploymentRestart::new(&format!("{target}-{number}"), spec)
}

/// Restarts each of so many targets so many times. One command costs two writes of its binder; one patch of its target; and
/// at most four statuses of its runner: that it waits, its start, its progress and its end. Beside them, at most one write for
/// each is refused, because somebody else has written meanwhile.
async fn each_costs_few_writes(targets: usize, for_each: usize) -> Result<()> {
    let cluster = Cluster::changing(&COMMANDED).await?;
    let namespace = cluster.namespace("many").await?;
    let count = targets * for_each;
    let names: Vec<_> = (0..targets).map(|number| format!("web-{number}")).collect();
    let objects = stream::iter(names.iter().map(Ok::<_, anyhow::Error>));
    objects
        .try_for_each_concurrent(CONNECTIONS, async |name| {
            namespace.create(&deployment(name, 1)).await?;
            Ok(())
        })
        .await?;
    for name in &names {
        namespace.until_ready(name).await;
    }
    let mut processes = Vec::new();
    for controller in [BINDER, RUNNER] {
        let process = controller.process(&cluster).await?;
        let before = process.processor_time()?;
        processes.push((controller, process, before));
    }
    let (log, started) = (AuditLog::from_now()?, Instant::now());
    let all = (0..for_each).flat_map(|number| names.iter().map(move |name| restart(name, number)));
    stream::iter(all.map(Ok::<_, anyhow::Error>))
        .try_for_each_concurrent(CONNECTIONS, async |restart| {
            namespace.create(&restart).await?;
            Ok(())
        })
        .await?;
    let (second, limit) = (Duration::from_secs(1), Duration::from_secs(600));
    eventually_every(second, "all of them have succeeded", limit, async || {
        let commands = namespace.api::<BasicDeploymentRestart>().list(&ListParams::default()).await;
        let commands = commands.map_err(|error| error.to_string())?;
        let has_succeeded = |command: &&BasicDeploymentRestart| {
            condition_of(*command, SUCCEEDED).is_some_and(|condition| condition.status == "True")
        };
        let succeeded = commands.iter().filter(has_succeeded).count();
        if succeeded == count { Ok(()) } else { Err(format!("{succeeded} of {}", commands.items.len())) }
    })
    .await;
    let took = started.elapsed();
    println!("{count} commands of {targets} targets took {took:.1?}");
    // One command of each target runs at a time, and tells of its progress every five seconds.
    let progress = targets * usize::try_from(took.as_secs() / 5)?;

    let is_patch = |request: &Request| request.resource == "basicdeployments" && request.code < 300;
    // At least the patch of its target and the end of each, which is its last write.
    let is_written = |request: &Request| {
        request.user == RUNNER.user() && request.is_write() && request.namespace == namespace.name
    };
    log.until_logged(2 * count, is_written).await;
    log.until_logged(count, |request| is_written(request) && is_patch(request)).await;
    for ((controller, process, before), (patches, most)) in
        processes.iter().zip([(0, 2 * count), (1, 5 * count + progress)])
    {
        let mut sent = log.by(*controller, &namespace.name)?;
        sent.retain(|request| request.is_write() && !request.resource.contains("events"));
        let memory = process.resident()? / (1 << 20);
        let busy = process.processor_time()?.checked_sub(*before).context("it was started again")?;
        let (name, tally) = (controller.name(), Tally::of(&sent));
        println!("{name}: {tally:?}; {busy:.1?} of processor time, {memory} MiB");
        let (written, refused): (Vec<_>, Vec<_>) = sent.iter().partition(|request| request.code < 300);
        let patched = written.iter().filter(|request| is_patch(request)).count();
        assert_eq!(patched, patches * count, "{name}: {tally:?}");
        assert!(written.len() <= most && refused.len() <= count, "{name}: {tally:?}");
        assert!(memory <= 48, "{name} needs {memory} MiB");
    }
    let restarted = namespace.api::<BasicDeployment>().list(&ListParams::default()).await?;
    assert!(restarted.iter().all(|target| target.spec.restarted_at.is_some()));
    Ok(())
}

#[tokio::test]
async fn a_command_costs_few_writes_and_little_memory() -> Result<()> {
    e2e::needs!(AuditLog, Processes);
    each_costs_few_writes(10, 5).await
}

#[tokio::test]
#[ignore = "a smaller one is in the default suite"]
async fn a_thousand_commands_cost_few_writes_and_little_memory() -> Result<()> {
    e2e::needs!(AuditLog, Processes);
    each_costs_few_writes(50, 20).await
}

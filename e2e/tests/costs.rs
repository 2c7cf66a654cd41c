//! The load of the chain on the API server: few writes, and none at all while nothing changes.

use std::time::Duration;

use anyhow::Result;
use catena_api::BasicDeployment;
use e2e::{AuditLog, CHAIN, Cluster, Controller, Request, Tally, WAIT_TIMEOUT, deployment, restarts};
use tokio::time::{Instant, sleep_until};

/// Writes in addition to the pods: the child, its revision, and one status each of child and parent.
const OTHER_WRITES: usize = 4;

/// Events of a creation: that the child is created. A value of the chart turns it off.
const EVENTS: usize = 1;

/// Status updates that only change numbers are up to 20 s late.
const QUIET: Duration = Duration::from_secs(21);

async fn costs_at_most_four_writes_more_than_pods(replicas: i32) -> Result<()> {
    let cluster = Cluster::with(&CHAIN).await?;
    let log = AuditLog::from_now()?;
    let namespace = cluster.namespace("writes").await?;
    let began = Instant::now();
    namespace.create(&deployment("web", replicas)).await?;
    let pods = usize::try_from(replicas)?;
    let is_ready = |web: &BasicDeployment| web.status.as_ref().is_some_and(|status| status.ready);
    namespace.until_within(4 * WAIT_TIMEOUT, "web", "is ready", is_ready).await;
    // If pods are slow, both objects report their number every ten seconds; and if a node has to restart one, they report
    // that it does not serve, the reason, and that it serves again.
    let counts = 2 * usize::try_from(began.elapsed().as_secs() / 10)?;
    let again: i32 = namespace.until_ready_pods(pods).await.iter().map(restarts).sum();
    let told = counts + 4 * usize::try_from(again)?;

    let written = log.until_quiet(QUIET, 4 * QUIET, |request| request.namespace == namespace.name).await;
    let (events, written): (Vec<_>, Vec<_>) =
        written.into_iter().partition(|request| request.resource == "events");
    assert!(events.len() <= EVENTS, "{:?}", Tally::of(&events));
    let tally = Tally::of(&written);
    println!("{replicas} replicas: {} writes: {tally:?}", written.len());
    assert!(written.len() <= pods + OTHER_WRITES + told, "{} writes: {tally:?}", written.len());
    assert!(written.iter().all(|request| request.code != 409), "a conflict is a write in vain: {tally:?}");
    let created = written.iter().filter(|request| request.is("create", "pods")).count();
    assert_eq!(created, pods, "{tally:?}");
    Ok(())
}

#[tokio::test]
async fn three_replicas_cost_at_most_four_writes_more_than_pods() -> Result<()> {
    e2e::needs!(AuditLog);
    costs_at_most_four_writes_more_than_pods(3).await
}

#[tokio::test]
async fn two_hundred_and_fifty_replicas_cost_at_most_four_writes_more_than_pods() -> Result<()> {
    e2e::needs!(AuditLog, FakeNodes);
    costs_at_most_four_writes_more_than_pods(250).await
}

#[tokio::test]
async fn nothing_is_asked_for_while_nothing_changes() -> Result<()> {
    e2e::needs!(AuditLog);
    // What refuses the writes of another test is watched in the whole cluster.
    let cluster = Cluster::changing(&CHAIN).await?;
    let namespace = cluster.namespace("steady").await?;
    // Meanwhile, these controllers may end the work of former tests, each in its namespace.
    let may_be_about_it =
        |request: &Request| request.namespace.is_empty() || request.namespace == namespace.name;
    let log = AuditLog::from_now()?;
    for number in 0..3 {
        namespace.create(&deployment(&format!("web-{number}"), 2)).await?;
    }
    namespace.until_ready_pods(6).await;
    log.until_quiet(QUIET, 4 * QUIET, may_be_about_it).await;

    let log = AuditLog::from_now()?;
    // The only place where time has to pass: the absence of an effect has no end to wait for.
    sleep_until(Instant::now() + Duration::from_secs(20)).await;
    let users = CHAIN.map(Controller::user);
    let mut asked = log.requests()?;
    asked.retain(|request| {
        users.contains(&request.user) && may_be_about_it(request) && request.verb != "watch"
    });
    assert!(asked.is_empty(), "{:?}", Tally::of(&asked));
    Ok(())
}

//! Two replicas of every controller, and a leader that is lost in the middle of work: the other one takes over in time,
//! the two never write at once, and nothing is lost.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{
    AuditLog, CONTROLLERS, Cluster, Pace, REAPER, Release, Replicas, Request, Route, Work, doubled, kubectl,
    until_all_are_ready,
};
use futures::future::{join_all, try_join_all};
use jiff::Timestamp;

const SYSTEM: &str = "catena-system";

/// Time limit for the replacement of a lost leader, at the pace of the cluster.
const TAKEOVER: Duration = Duration::from_secs(20);

/// Number of writes of all lost leaders together that may have passed their gate, and not yet reached the network, when the
/// processes were stopped: they are sent when those go on. No client of a Lease can prevent that, so names are computed, and
/// writes carry uids.
const UNDER_WAY: usize = 1;

/// The waves of work: before the loss of the leaders, after it, and when the lost ones return.
const WAVES: [&str; 3] = ["before", "after", "back"];

async fn all(cluster: &Cluster) -> Result<Vec<Replicas>> {
    try_join_all(CONTROLLERS.map(async |controller| Replicas::until_ready(cluster, controller).await)).await
}

/// The writes of the lost leader after the first write of another replica.
///
/// # Errors
/// When none took over in time, or it wrote before it led.
fn late_writes<'r>(
    requests: &'r [Request],
    lost: &Replicas,
    since: Timestamp,
    pace: &Pace,
) -> Result<Vec<&'r Request>> {
    let Replicas { controller, leader, .. } = lost;
    let name = controller.name();
    let renewed = requests.iter().filter(|request| {
        request.user == controller.user()
            && request.is("update", "leases")
            && request.code < 300
            && request.pod != *leader
            && request.at >= since
    });
    let taken =
        renewed.map(|request| request.at).min().with_context(|| format!("nobody took over {name}"))?;
    let (took, seconds) = (pace.between(since, taken), taken.duration_since(since));
    println!("{name}: taken over after {seconds:#}, {took:?} at the cluster's pace");
    ensure!(took < TAKEOVER, "{name} was taken over after {took:?} at the cluster's pace");

    let work: Vec<&Request> = requests.iter().filter(|request| request.is_work_of(*controller)).collect();
    let of_others = work.iter().filter(|request| request.pod != *leader);
    let first = of_others.map(|request| request.at).min();
    let first = first.with_context(|| format!("the other replica of {name} wrote nothing"))?;
    ensure!(first >= taken, "{name}: another replica wrote before it led");
    Ok(work.into_iter().filter(|request| request.pod == *leader && request.at >= first).collect())
}

/// All leaders are lost in the middle of work, and return after the others have taken over.
async fn take_over<L>(
    cluster: &Cluster,
    lose: impl AsyncFnOnce(&[Replicas]) -> Result<L>,
    come_back: impl AsyncFnOnce(L) -> Result<()>,
) -> Result<()> {
    let replicas = all(cluster).await?;
    let work = Work::prepare(cluster, &WAVES).await?;
    let (log, namespace) = (AuditLog::from_now()?, cluster.namespace("pace").await?);
    let pace = Pace::start(&namespace).await?;
    work.begin(WAVES[0]).await?;
    // Commands are deleted after everything else is done.
    for of in replicas.iter().filter(|of| of.controller != REAPER) {
        log.until_logged(1, |request| request.is_work_of(of.controller)).await;
    }
    let since = Timestamp::now();
    let undone = lose(&replicas).await?;
    work.begin(WAVES[1]).await?;
    join_all(replicas.iter().map(|lost| lost.until_taken_over(cluster))).await;
    work.until_done(&WAVES[..2]).await;

    work.begin(WAVES[2]).await?;
    come_back(undone).await?;
    work.until_done(&WAVES).await;
    work.ensure_nothing_is_lost(cluster).await?;
    let after = all(cluster).await?;
    let requests = log.requests()?;
    let (mut late, mut broken) = (Vec::new(), Vec::new());
    for lost in &replicas {
        match late_writes(&requests, lost, since, &pace) {
            Ok(writes) => late.extend(writes),
            Err(error) => broken.push(format!("{error:#}")),
        }
    }
    ensure!(broken.is_empty(), "{broken:#?}");
    ensure!(late.len() <= UNDER_WAY, "two leaders wrote at once: {late:#?}");
    for (before, after) in replicas.iter().zip(&after) {
        ensure!(after.leader != before.leader, "{} leads again", before.leader);
    }
    Ok(())
}

async fn upgraded(cluster: &Cluster) -> Result<Vec<Release>> {
    let upgrade = async |controller| Release::upgrade(cluster, controller, &doubled(controller)?).await;
    try_join_all(CONTROLLERS.map(upgrade)).await
}

async fn restored(cluster: &Cluster, releases: Vec<Release>) -> Result<()> {
    try_join_all(releases.into_iter().map(Release::restore)).await?;
    until_all_are_ready(cluster).await;
    Ok(())
}

mod alone {
    use super::{
        CONTROLLERS, Cluster, Replicas, Result, Route, SYSTEM, doubled, kubectl, restored, take_over,
        try_join_all, upgraded,
    };

    #[tokio::test]
    async fn leaders_that_are_killed_with_their_pods_are_replaced_in_the_middle_of_work() -> Result<()> {
        e2e::needs!(AuditLog, HostProcesses);
        let cluster = Cluster::alone().await?;
        let releases = upgraded(&cluster).await?;
        let lose = async |replicas: &[Replicas]| {
            for lost in replicas {
                lost.process.kill()?;
            }
            // Otherwise they would be restarted at once under their former identity.
            let pods: Vec<&str> = replicas.iter().map(|lost| lost.leader.as_str()).collect();
            let delete = ["delete", "pod", "--namespace", SYSTEM, "--grace-period=0", "--force"];
            kubectl(&[&delete[..], &pods].concat()).await?;
            Ok(())
        };
        take_over(&cluster, lose, async |()| Ok(())).await?;
        restored(&cluster, releases).await
    }

    #[tokio::test]
    async fn leaders_that_are_stopped_for_longer_than_their_lease_never_write_beside_their_successors()
    -> Result<()> {
        e2e::needs!(AuditLog, HostProcesses);
        let cluster = Cluster::alone().await?;
        let releases = upgraded(&cluster).await?;
        let lose = async |replicas: &[Replicas]| {
            replicas.iter().map(|lost| lost.process.freeze()).collect::<Result<Vec<_>>>()
        };
        take_over(&cluster, lose, async |frozen| {
            drop(frozen);
            Ok(())
        })
        .await?;
        restored(&cluster, releases).await
    }

    #[tokio::test]
    async fn leaders_that_are_cut_off_from_the_api_server_never_write_beside_their_successors() -> Result<()>
    {
        e2e::needs!(AuditLog, HostProcesses);
        let cluster = Cluster::alone().await?;
        let route = Route::open().await?;
        let routed = async |controller| route.upgrade(&cluster, controller, &doubled(controller)?).await;
        let releases = try_join_all(CONTROLLERS.map(routed)).await?;
        let lose = async |replicas: &[Replicas]| {
            route.cut(replicas.iter().map(|lost| &lost.process));
            Ok(())
        };
        take_over(&cluster, lose, async |()| {
            route.heal();
            Ok(())
        })
        .await?;
        restored(&cluster, releases).await
    }
}

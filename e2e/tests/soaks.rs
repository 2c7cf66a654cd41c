//! Hours in fast motion: waves of work, each with a fault of a leader or of the control plane that a seed chooses.
//! Its duration is an argument, and so it runs only on request:
//! `CATENA_SOAK_SEED=7 CATENA_SOAK_MINUTES=20 cargo xtask e2e --on local --only soaks -- --include-ignored`.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use e2e::{
    AuditLog, CONTROLLERS, Clocks, Cluster, Component, Controller, DEPLOYMENTS, REAPER, Release, Replicas,
    Route, WAIT_TIMEOUT, Work, delete_namespace, doubled, replace_definition, until_all_are_ready,
};
use futures::future::try_join_all;
use rand::{RngExt, SeedableRng, rngs::StdRng};
use tokio::time::{Instant, sleep};

/// Time without a write at the end.
const QUIET: Duration = Duration::from_secs(8);

/// The first rounds, in which caches and allocators still fill.
const WARM: usize = 3;

/// The time for which a clock is wrong.
const WRONG: Duration = Duration::from_secs(10);

/// The largest jump of a controller's clock, in seconds. The clocks of two of them tell when a command has finished, and when
/// its TTL has expired: it goes as much later as they are wrong.
fn largest_jump(controller: Controller) -> i64 {
    if [DEPLOYMENTS, REAPER].contains(&controller) { 20 } else { 7200 }
}

/// A failure in the middle of a wave of work.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The leader's process is killed, and started again.
    Kill(Controller),
    /// The leader's process is stopped for this number of seconds, which may exceed its Lease.
    Freeze(Controller, u64),
    /// The leader is cut off from the API server for this number of seconds.
    Cut(Controller, u64),
    Etcd,
    ApiServer,
    /// The clock of a controller's node is wrong by this number of seconds, for a while.
    Clock(Controller, i64),
    /// The definition of `BasicReplicaSets` is deleted, and installed again.
    Definition,
    /// The namespace of the wave is deleted.
    Namespace,
    Nothing,
}

/// The means of some faults.
struct Means {
    route: Route,
    clocks: Clocks,
}

impl Means {
    async fn prepare() -> Result<Self> {
        Ok(Self { route: Route::open().await?, clocks: Clocks::make().await? })
    }

    /// Upgrades a controller to two replicas that these means apply to.
    async fn upgrade(&self, cluster: &Cluster, controller: Controller) -> Result<Release> {
        let values = self.clocks.given_to(controller, doubled(controller)?)?;
        self.route.upgrade(cluster, controller, &values).await
    }
}

impl Fault {
    fn choose(chance: &mut impl RngExt) -> Self {
        let controller = CONTROLLERS[chance.random_range(0..CONTROLLERS.len())];
        let seconds = chance.random_range(1..=25);
        match chance.random_range(0..9) {
            0 => Self::Kill(controller),
            1 => Self::Freeze(controller, seconds),
            2 => Self::Cut(controller, seconds),
            3 => Self::Etcd,
            4 => Self::ApiServer,
            5 => Self::Definition,
            6 => Self::Namespace,
            7 => {
                let largest = largest_jump(controller);
                Self::Clock(controller, chance.random_range(-largest..=largest))
            }
            _ => Self::Nothing,
        }
    }

    async fn happen(
        self,
        cluster: &Cluster,
        work: &Work,
        means: &Means,
        replicas: &[Replicas],
    ) -> Result<()> {
        let process = |controller| {
            let of_it = replicas.iter().find(|replicas| replicas.controller == controller);
            of_it.map(|replicas| &replicas.process).context("no leader")
        };
        match self {
            Self::Kill(controller) => process(controller)?.kill()?,
            Self::Freeze(controller, seconds) => {
                let _frozen = process(controller)?.freeze()?;
                sleep(Duration::from_secs(seconds)).await;
            }
            Self::Cut(controller, seconds) => {
                means.route.cut([process(controller)?]);
                sleep(Duration::from_secs(seconds)).await;
                means.route.heal();
            }
            Self::Etcd => Component::kill(cluster, "etcd").await?,
            Self::ApiServer => Component::kill(cluster, "api-server").await?,
            Self::Definition => replace_definition(cluster, work).await?,
            Self::Namespace => delete_namespace(cluster, work).await?,
            Self::Clock(controller, seconds) => {
                means.clocks.set(controller, seconds)?;
                sleep(WRONG).await;
                means.clocks.set(controller, 0)?;
            }
            Self::Nothing => {}
        }
        Ok(())
    }
}

fn number(variable: &str) -> Result<Option<u64>> {
    std::env::var(variable).ok().map(|text| text.parse().context("a number")).transpose()
}

mod alone {
    use super::{
        AuditLog, BTreeMap, CONTROLLERS, Cluster, Duration, Fault, Instant, Means, QUIET, Release, Replicas,
        Result, SeedableRng, StdRng, WAIT_TIMEOUT, WARM, Work, ensure, number, try_join_all,
        until_all_are_ready,
    };

    #[tokio::test]
    #[ignore = "it takes as long as it is told"]
    async fn memory_stays_flat_and_nothing_is_lost_in_a_long_run_of_faults() -> Result<()> {
        e2e::needs!(AuditLog, HostProcesses);
        let seed = number("CATENA_SOAK_SEED")?.unwrap_or_else(rand::random);
        let limit = Duration::from_secs(60 * number("CATENA_SOAK_MINUTES")?.unwrap_or(20));
        println!("CATENA_SOAK_SEED={seed} chooses the same faults");
        let mut chance = StdRng::seed_from_u64(seed);
        let cluster = Cluster::alone().await?;
        let means = Means::prepare().await?;
        let releases =
            try_join_all(CONTROLLERS.map(|controller| means.upgrade(&cluster, controller))).await?;

        let (began, mut rounds) = (Instant::now(), 0);
        let (mut at_first, mut last) = (BTreeMap::new(), BTreeMap::new());
        while began.elapsed() < limit || rounds <= WARM {
            rounds += 1;
            let fault = Fault::choose(&mut chance);
            let ready = async |controller| Replicas::until_ready(&cluster, controller).await;
            let replicas = try_join_all(CONTROLLERS.map(ready)).await?;
            for Replicas { controller, process, .. } in &replicas {
                let resident = process.resident()?;
                let largest: &mut u64 = at_first.entry(controller.name()).or_default();
                if rounds <= WARM {
                    *largest = resident.max(*largest);
                }
                last.insert(controller.name(), resident);
            }
            println!("{:>5} s, round {rounds}: {fault:?}; bytes {last:?}", began.elapsed().as_secs());
            let work = Work::prepare(&cluster, &["wave"]).await?;
            work.begin("wave").await?;
            fault.happen(&cluster, &work, &means, &replicas).await?;
            if !matches!(fault, Fault::Namespace) {
                work.until_done(&["wave"]).await;
            }
            work.ensure_nothing_is_lost(&cluster).await?;
        }
        AuditLog::from_now()?.until_no_work(QUIET, 2 * WAIT_TIMEOUT).await;
        for (name, resident) in &last {
            let before = at_first.get(name).copied().unwrap_or_default();
            ensure!(
                *resident <= before + before / 2,
                "{name}: {before} bytes at first, {resident} after {rounds} rounds"
            );
        }
        try_join_all(releases.into_iter().map(Release::restore)).await?;
        until_all_are_ready(&cluster).await;
        Ok(())
    }
}

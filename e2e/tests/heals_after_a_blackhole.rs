//! An API server that accepts connections and answers nothing, for minutes. The test takes long, and so runs only on request:
//! `cargo xtask test --only e2e -- --ignored blackhole`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use catena_api::{BasicDeploymentRestart, BasicDeploymentRestartSpec, TargetRef};
use e2e::{
    AuditLog, BINDER, Cluster, Component, Controller, DEPLOYMENTS, REAPER, REPLICA_SETS, RUNNER, Tally,
    deployment, uids,
};
use rustix::process::Signal;
use tokio::time::{Instant, sleep_until};

const BLACKHOLE: Duration = Duration::from_secs(120);

/// Time limit for everything after that, on a busy machine.
const HEALED: Duration = Duration::from_secs(90);

/// The cluster's API server, stopped until this is dropped.
struct Frozen(Component);

impl Frozen {
    fn api_server() -> Result<Self> {
        let api_server = Component::running("api-server")?;
        api_server.signal(Signal::STOP)?;
        Ok(Self(api_server))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        if let Err(error) = self.0.signal(Signal::CONT) {
            eprintln!("clean-up failed: the API server stays frozen: {error}");
        }
    }
}

const CONTROLLERS: [Controller; 5] = [DEPLOYMENTS, REPLICA_SETS, BINDER, RUNNER, REAPER];

async fn go_on_after_a_blackhole(cluster: &Cluster) -> Result<()> {
    let namespace = cluster.namespace("blackhole").await?;
    namespace.create(&deployment("web", 2)).await?;
    namespace.until_ready("web").await;
    let before = uids(&namespace.until_ready_pods(2).await);

    let frozen = Frozen::api_server()?;
    sleep_until(Instant::now() + BLACKHOLE).await;
    drop(frozen);
    let began = Instant::now();
    let log = AuditLog::from_now()?;

    // One command passes through all five controllers: bound, run, its pods replaced, and deleted.
    let target_ref = TargetRef { name: "web".into(), namespace: None };
    let spec = BasicDeploymentRestartSpec {
        target_ref,
        ttl_seconds_after_finished: Some(0),
        ..BasicDeploymentRestartSpec::default()
    };
    let restart = BasicDeploymentRestart::new("restart", spec);
    tokio::time::timeout(HEALED, async {
        while namespace.create(&restart).await.is_err() {
            sleep_until(Instant::now() + Duration::from_millis(200)).await;
        }
    })
    .await?;
    let answers = began.elapsed();
    let gone = async {
        while namespace.api::<BasicDeploymentRestart>().get_opt("restart").await?.is_some() {
            sleep_until(Instant::now() + Duration::from_millis(200)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(HEALED, gone).await.context("the restart is not done")??;
    let healed = began.elapsed();
    let after = uids(&namespace.until_ready_pods(2).await);
    ensure!(after.is_disjoint(&before), "not every pod was replaced");
    println!("the API server took a write after {answers:?}, a restart was done and gone after {healed:?}");
    for controller in CONTROLLERS {
        controller.until_ready(cluster).await;
        println!("{}: {:?}", controller.name(), Tally::of(&log.by(controller, &namespace.name)?));
    }
    Ok(())
}

mod alone {
    use super::{CONTROLLERS, Cluster, Result, go_on_after_a_blackhole};

    #[tokio::test]
    #[ignore = "it takes three minutes"]
    async fn controllers_go_on_after_a_blackhole_without_a_restart() -> Result<()> {
        e2e::needs!(AuditLog, HostProcesses);
        let cluster = Cluster::alone().await?;
        let pids = async || {
            let mut pids = Vec::new();
            for controller in CONTROLLERS {
                pids.push(controller.until_ready(&cluster).await.pid);
            }
            pids
        };
        let before = pids().await;
        go_on_after_a_blackhole(&cluster).await?;
        assert_eq!(pids().await, before, "a controller was restarted");
        Ok(())
    }
}

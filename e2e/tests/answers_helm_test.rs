//! `helm test` tests whether the running controller is healthy, by asking it over the network.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{CONTROLLERS, Cluster, Controller, REAPER, helm, kubectl, needs, protect};
use futures::future::try_join_all;
use tokio::time::Instant;

/// The objects that `helm test` creates for these controllers.
async fn leftovers(of: &[Controller]) -> Result<String> {
    let names: Vec<_> = of.iter().map(|controller| controller.name()).collect();
    let selector = format!("--selector=catena.dev/hook-of in ({})", names.join(","));
    kubectl(&["get", "pods,services", "--namespace=catena-system", &selector, "--output=name"]).await
}

#[tokio::test]
async fn every_controller_that_is_ready_passes_and_nothing_is_left() -> Result<()> {
    let cluster = Cluster::shared().await?;
    // At its end, `helm test` writes back the release that it has read, over an upgrade that others start meanwhile.
    protect(&cluster).await?;
    let tests = CONTROLLERS.map(async |controller| {
        controller.until_ready(&cluster).await;
        helm(&["test", controller.name(), "--timeout=60s"]).await
    });
    try_join_all(tests).await?;
    assert_eq!(leftovers(&CONTROLLERS).await?, "");
    Ok(())
}

#[tokio::test]
async fn a_controller_that_hangs_fails_until_it_goes_on() -> Result<()> {
    needs!(Processes);
    let cluster = Cluster::changing(&[REAPER]).await?;
    let process = REAPER.until_ready(&cluster).await;
    let frozen = process.freeze()?;
    let started = Instant::now();
    let said = helm(&["test", REAPER.name(), "--timeout=60s"]).await.err().context("it passed")?;
    drop(frozen);
    // The test ends by itself, without waiting for helm's own limit.
    ensure!(started.elapsed() < Duration::from_secs(55), "{said:#} after {:?}", started.elapsed());
    ensure!(leftovers(&[REAPER]).await?.contains("pod/command-reaper-test"), "its pod is there to be read");

    REAPER.until_ready(&cluster).await;
    helm(&["test", REAPER.name(), "--timeout=60s"]).await?;
    assert_eq!(leftovers(&[REAPER]).await?, "");
    Ok(())
}

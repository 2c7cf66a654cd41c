//! What the API server refuses is tried again within a minute, so that nobody waits long after a fix.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::{
    AuditLog, CHAIN, Cluster, Controller, DEPLOYMENTS, Namespace, Pace, REPLICA_SETS, Tally, WAIT_TIMEOUT,
    deployment, eventually, eventually_every,
};
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ResourceQuota;
use serde_json::json;

/// Number of refusals after which the delay is the longest: the next one would be 80 s without a limit.
const REFUSALS: usize = 5;
/// Time limit for that many.
const LONG: Duration = Duration::from_secs(180);
/// Time limit for a retry after a fix, at the pace of the cluster: a minute, and some time for the passes.
const A_MINUTE: Duration = Duration::from_secs(70);

/// A controller, the resource of the objects that it creates, and its name in a quota.
const CREATE: [(Controller, &str, &str); 2] =
    [(REPLICA_SETS, "pods", "pods"), (DEPLOYMENTS, "basicreplicasets", "count/basicreplicasets.catena.dev")];

/// The writes of a controller in a namespace, by whether they were accepted.
fn writes(
    log: &AuditLog,
    (controller, resource, _): (Controller, &str, &str),
    namespace: &Namespace,
    are_accepted: bool,
) -> Result<usize, String> {
    let requests = log.by(controller, &namespace.name).map_err(|error| error.to_string())?;
    let writes = requests.iter().filter(|request| request.resource == resource && request.is_write());
    let count = writes.filter(|request| (request.code < 400) == are_accepted).count();
    if count == 0 { Err(format!("{:?}", Tally::of(&requests))) } else { Ok(count) }
}

mod long {
    use super::*;

    #[tokio::test]
    async fn a_refused_step_is_tried_again_within_a_minute_also_after_many_refusals() -> Result<()> {
        e2e::needs!(AuditLog);
        let cluster = &Cluster::with(&CHAIN).await?;
        let log = &AuditLog::from_now()?;
        let stories = CREATE.map(async |what| {
            let namespace = cluster.namespace("fixed").await?;
            namespace.limit("none", json!({what.2: "0"})).await?;
            namespace.create(&deployment("web", 2)).await?;
            eventually("it backs off", LONG, async || match writes(log, what, &namespace, false)? {
                refused if refused >= REFUSALS => Ok(()),
                refused => Err(format!("{refused} refusals")),
            })
            .await;

            namespace.delete::<ResourceQuota>("none").await?;
            let pace = Pace::start(&namespace).await?;
            eventually_every(Duration::from_secs(1), "it tries again", 2 * WAIT_TIMEOUT, async || {
                writes(log, what, &namespace, true)
            })
            .await;
            ensure!(pace.elapsed() < A_MINUTE, "{} waited for {:?}", what.1, pace.elapsed());
            namespace.until_ready("web").await;
            anyhow::Ok(())
        });
        try_join_all(stories).await?;
        Ok(())
    }
}

//! The control plane fails, and kinds and namespaces are deleted, in the middle of work: no controller restarts, all work is
//! finished, and no further write follows.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::{
    AuditLog, CONTROLLERS, Cluster, Component, WAIT_TIMEOUT, Work, delete_namespace, deployment, protect,
    replace_definition,
};

/// Time without a write after all work is done.
const QUIET: Duration = Duration::from_secs(8);

const WAVES: [&str; 3] = ["first", "second", "third"];

async fn pids(cluster: &Cluster) -> Vec<i32> {
    let mut pids = Vec::new();
    for controller in CONTROLLERS {
        pids.push(controller.until_ready(cluster).await.pid);
    }
    pids
}

mod alone {
    use super::{
        AuditLog, CONTROLLERS, Cluster, Component, Context, QUIET, Result, WAIT_TIMEOUT, WAVES, Work,
        delete_namespace, deployment, ensure, pids, protect, replace_definition,
    };

    /// The API server answers a watch from a version that it has not reached by silence.
    #[tokio::test]
    #[ignore = "takes two minutes"]
    async fn what_is_created_after_etcd_was_restored_is_served_by_the_same_processes() -> Result<()> {
        e2e::needs!(HostProcesses);
        let cluster = Cluster::alone().await?;
        let before = pids(&cluster).await;
        let namespace = cluster.namespace("restored-etcd").await?;
        namespace.create(&deployment("kept", 1)).await?;
        namespace.until_ready("kept").await;
        Component::save_etcd()?;
        for lost in ["lost", "lost-too"] {
            namespace.create(&deployment(lost, 3)).await?;
            namespace.until_ready(lost).await;
        }
        Component::restore_etcd(&cluster).await?;
        namespace.create(&deployment("new", 1)).await?;
        namespace.until_ready_within(3 * WAIT_TIMEOUT, "new").await;
        namespace.until_ready_pods(2).await;
        assert_eq!(pids(&cluster).await, before, "a controller was restarted");
        Ok(())
    }

    #[tokio::test]
    async fn etcd_and_the_api_server_are_killed_in_the_middle_of_work() -> Result<()> {
        e2e::needs!(AuditLog, HostProcesses);
        let cluster = Cluster::alone().await?;
        protect(&cluster).await?;
        let before = pids(&cluster).await;
        let work = Work::prepare(&cluster, &WAVES).await?;
        work.begin(WAVES[0]).await?;
        Component::kill(&cluster, "etcd").await?;
        work.begin(WAVES[1]).await?;
        Component::kill(&cluster, "api-server").await?;
        work.begin(WAVES[2]).await?;
        work.until_done(&WAVES).await;
        work.ensure_nothing_is_lost(&cluster).await?;
        AuditLog::from_now()?.until_no_work(QUIET, 2 * WAIT_TIMEOUT).await;
        assert_eq!(pids(&cluster).await, before, "a controller was restarted");
        Ok(())
    }

    #[tokio::test]
    async fn a_definition_is_deleted_and_installed_again_in_the_middle_of_work() -> Result<()> {
        e2e::needs!(AuditLog, HostProcesses);
        let cluster = Cluster::alone().await?;
        protect(&cluster).await?;
        let before = pids(&cluster).await;
        let work = Work::prepare(&cluster, &WAVES[..2]).await?;
        work.begin(WAVES[0]).await?;
        replace_definition(&cluster, &work).await?;
        work.begin(WAVES[1]).await?;
        work.until_done(&WAVES[..2]).await;
        work.ensure_nothing_is_lost(&cluster).await?;
        AuditLog::from_now()?.until_no_work(QUIET, 2 * WAIT_TIMEOUT).await;
        assert_eq!(pids(&cluster).await, before, "a controller was restarted");
        Ok(())
    }

    #[tokio::test]
    async fn a_namespace_is_deleted_in_the_middle_of_work() -> Result<()> {
        e2e::needs!(AuditLog, HostProcesses);
        let cluster = Cluster::alone().await?;
        protect(&cluster).await?;
        let before = pids(&cluster).await;
        let work = Work::prepare(&cluster, &WAVES[..2]).await?;
        work.begin(WAVES[0]).await?;
        let name = work.namespace.name.as_str();
        delete_namespace(&cluster, &work).await?;
        work.ensure_nothing_is_lost(&cluster).await?;
        let log = AuditLog::from_now()?;
        log.until_no_work(QUIET, 2 * WAIT_TIMEOUT).await;
        let in_it = log.requests()?.into_iter().find(|request| {
            let is_ours = CONTROLLERS.iter().any(|controller| request.user == controller.user());
            is_ours && request.is_write() && request.namespace == name
        });
        ensure!(in_it.is_none(), "{:?}", in_it.context("a request"));
        assert_eq!(pids(&cluster).await, before, "a controller was restarted");
        Ok(())
    }
}

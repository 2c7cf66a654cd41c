//! A controller reads its settings from a mounted ConfigMap. A kubelet of somebody's cluster checks it for changes once
//! a minute, and at once when the pod itself changes; tests change settings often.

use std::{process::Stdio, time::Duration};

use jiff::Timestamp;
use local_cluster::Access;
use tokio::{process::Command, time::sleep};

use crate::charts::NAMESPACE;

/// An annotation without a meaning.
const TOUCHED: &str = "e2e.catena.dev/touched-at";
/// Time between touches; tests wait for new settings for a minute.
const EVERY: Duration = Duration::from_secs(3);

/// Touches the controllers' pods again and again, until it is dropped. Failures are retried, because a test may have
/// uninstalled a controller.
pub async fn look_often(access: &Access) -> ! {
    loop {
        let touched = format!("{TOUCHED}={}", Timestamp::now());
        Command::from(access.kubectl())
            .args(["annotate", "pods", "--all", "--overwrite", "--namespace", NAMESPACE, &touched])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .status()
            .await
            .ok();
        sleep(EVERY).await;
    }
}
